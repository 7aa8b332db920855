"""Typical times and nodes of cases that never ran."""

from pathlib import Path

import pytest

from seatrial.checks.typical import Place, Stated, typical_cases

HOME = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def stated() -> Stated:
    return typical_cases(HOME / "reframe-checks" / "checks", HOME)


def test_checks_state_time_and_nodes_of_each_case(stated: Stated) -> None:
    nodes = {
        name: typical.nodes_on(Place(512))
        for cases in stated.values()
        for name, typical in cases.items()
    }
    expected = {
        "Registration": 1,
        "OsuLatency %between=cores": 1,
        "OsuLatency %between=nodes": 2,
        "LogP": 2,
        "NodeSweep": 512,
        "Npb %benchmark=CG": 512,
    }
    assert {name: nodes[name] for name in expected} == expected
    assert all(
        typical.seconds > 0 for cases in stated.values() for typical in cases.values()
    )
