"""Typical times and nodes of cases that never ran."""

from pathlib import Path
from typing import Any

import pytest

from seatrial.campaign.campaign_file import load_campaign
from seatrial.checks.growth import Place
from seatrial.checks.typical import Stated, typical_cases

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


@pytest.mark.parametrize("nodes", [4, 64, 256, 1024])
def test_times_grow_with_the_nodes(stated: Stated, nodes: int) -> None:
    place = Place(nodes)
    (sweep,) = stated["PairSweep"].values()
    (startup,) = stated["Startup"].values()
    (link,) = stated["LogP"].values()
    found = (
        sweep.seconds_on("PairSweep", place),
        sweep.seconds_on("PairSweep", place, {"PairSweep.rounds": 3}),
        startup.seconds_on("Startup", place),
        link.seconds_on("LogP", place),
    )
    counts = {4: 3, 64: 4, 256: 5, 1024: 6}[nodes]  # 1, 4, 16 and so on
    expected = (10 + 0.4 * (nodes - 4), 10, 5 * counts, 5)
    assert found == pytest.approx(expected)


def test_times_of_programs_by_memory_are_those_of_their_sizes(stated: Stated) -> None:
    """1,024 nodes of 128 cores and 256 GiB: HPL of an hour, NPB of ten minutes."""
    place = Place(1024, 128, 256 * 1024)
    chosen = {"memory_fraction": 0.5, "ppn": 0, "Hpcc.longest_s": 3600}
    seconds = {
        name: typical.seconds_on(check, place, chosen)
        for check in ("Hpcc", "Npb", "LammpsFixed", "LammpsRhodo")
        for name, typical in stated[check].items()
    }
    assert 0.95 * 3600 < seconds.pop("Hpcc") < 3780
    assert all(0 < value <= 1200 for value in seconds.values())
    (hpcc,) = stated["Hpcc"].values()
    free = hpcc.seconds_on("Hpcc", place, {**chosen, "Hpcc.longest_s": 0})
    assert free == pytest.approx(2 / 3 * 4177920**3 / (1e10 * 1024 * 128) + 180)
    assert hpcc.seconds_on("Hpcc", place) == 15  # a fixed size
    assert hpcc.seconds_on("Hpcc", Place(1024), chosen) == 15  # unknown memory


def test_hpl_of_a_node_grows_with_its_memory(stated: Stated) -> None:
    (sweep,) = stated["NodeSweep"].values()
    few, many = (
        sweep.seconds_on("NodeSweep", Place(nodes, 128, 256 * 1024))
        for nodes in (4, 1024)
    )
    large = sweep.seconds_on("NodeSweep", Place(4, 192, 768 * 1024))
    assert 300 < few == many < large


@pytest.mark.parametrize(
    ("check", "bounded_min", "free_min"),
    [("HplNodes", 44, 44), ("HplRacks", 69, 355), ("Hpl", 69, 1418), ("Hpcg", 33, 33)],
)
def test_full_size_loads_cost_what_their_page_says(
    stated: Stated, check: str, bounded_min: int, free_min: int
) -> None:
    """1,024 nodes of 128 cores and 256 GiB in racks of 64, as in docs/campaigns.md."""
    campaign = load_campaign(HOME, "fullsize")
    bounded: dict[str, Any] = {}
    for block in campaign.blocks:
        bounded |= block.variables
    free = {
        name: 0 if name.endswith("longest_s") else value
        for name, value in bounded.items()
    }
    place = Place(1024, 128, 256 * 1024, 64)
    (typical,) = stated[check].values()
    minutes = [typical.seconds_on(check, place, v) / 60 for v in (bounded, free)]
    assert [round(value) for value in minutes] == [bounded_min, free_min]
    for value in minutes:
        node_hours = f"{value / 60 * 1024:,.0f}"
        assert node_hours in (HOME / "docs" / "campaigns.md").read_text()
    small = typical.seconds_on(check, place)
    assert small == typical.seconds


def test_racks_cost_nothing_where_there_are_none(stated: Stated) -> None:
    (racks,) = stated["HplRacks"].values()
    chosen = {"HplRacks.memory_fraction": 0.5}
    assert racks.seconds_on("HplRacks", Place(64, 128, 1 << 18), chosen) == 0


def test_time_that_a_campaign_sets_counts_before_the_nodes_are_known(
    stated: Stated,
) -> None:
    """Before the lab is provisioned its plan is that of four nodes without a size."""
    machine = load_campaign(HOME, "fullsize").blocks[-1].variables
    for place in (Place(), Place(4), Place(4, 2)):
        (hpcg,) = stated["Hpcg"].values()
        assert hpcg.seconds_on("Hpcg", place, machine) == 15 + 1800 - 5
        (job,) = stated["StabilityJob"].values()
        assert job.seconds_on("StabilityJob", place, {"mix": "2x90-1"}) == 90
    for cases in stated.items():
        for typical in cases[1].values():
            known = typical.seconds_on(cases[0], Place(4))
            assert typical.seconds_on(cases[0], Place()) == known > 0
