"""The chance of machines inside their limits to pass: by formula, and by the judge."""

from collections.abc import Sequence
from dataclasses import replace
from math import log1p
from typing import Any

import numpy as np
import pytest
from criteria_samples import criteria, criterion

from seatrial.calibration.detection_limits import Prospect, prospects
from seatrial.calibration.pass_chances import INSIDE, Chance, chances
from seatrial.calibration.statistical_power import Passing
from seatrial.criteria.methods import Method
from seatrial.judge.levels import levels


def asked(
    *rules: Any, repeats: int, nodes: int = 1, scatter: float | None = 0.03
) -> list[Chance]:
    """Return the chances of criteria that were recorded with this scatter."""
    file = criteria(*rules)
    found = prospects(file, ["ImbRing"], [], {}, repeats)
    known = [replace(each, scatter=scatter) for each in found]
    return chances(file, known, nodes, shared=0.0)


def passing(found: Sequence[Chance], noise: str = "independent") -> list[float]:
    return [each.verdicts["pass"] for each in found if each.noise == noise]


@pytest.mark.parametrize(
    ("model", "method", "places"),
    [
        ("any", "order", 1),
        pytest.param("lognormal", "t", 1, marks=pytest.mark.slow),
        pytest.param("any", "order", 8, marks=pytest.mark.slow),
    ],
)
def test_a_chance_is_that_of_the_formula(
    model: str, method: Method, places: int
) -> None:
    """Within 0.15: it is the mean of 50 machines."""
    found = asked(criterion(model=model), repeats=8, nodes=places)
    assert [each.inside for each in found] == [*INSIDE] * 2
    planned = Passing(method, 0.03, 0.05, places)
    known = [planned.power(8, log1p(inside)) for inside in INSIDE]
    assert passing(found) == pytest.approx(known, abs=0.15)
    assert all(sum(each.verdicts.values()) == pytest.approx(1) for each in found)


@pytest.mark.parametrize(
    ("places", "repeats"),
    [
        (8, 7),
        pytest.param(3, 10, marks=pytest.mark.slow),
        pytest.param(40, 9, marks=pytest.mark.slow),
    ],
)
def test_a_chance_is_that_of_the_judge_for_so_many_places(
    places: int, repeats: int
) -> None:
    """Few places know their scatter and what they share less well than many."""
    found = asked(criterion(), repeats=repeats, nodes=places)
    generator = np.random.default_rng(1)
    values = generator.normal(log1p(0.05), 0.03, (200, places, repeats))
    passed = [(levels(one, "t").lower(0.05) >= 0).all() for one in values]
    assert passing(found)[3] == pytest.approx(np.mean(passed), abs=0.15)


@pytest.mark.parametrize(
    ("model", "method"),
    [("any", "order"), pytest.param("lognormal", "t", marks=pytest.mark.slow)],
)
def test_the_fewest_repeats_are_those_of_the_formula(
    model: str, method: Method
) -> None:
    found = asked(criterion(model=model), repeats=8)
    known = Passing(method, 0.03, 0.05).repeats(log1p(0.05), 0.9)
    assert known is not None
    (independent,) = [
        each.needed
        for each in found
        if each.inside == 0.05 and each.noise == "independent"
    ]
    assert independent is not None
    assert abs(independent - known) <= 2
    assert all(each.needed is None for each in found if each.inside < 0.05)


@pytest.mark.slow
def test_a_scatter_that_no_repeats_overcome() -> None:
    found = asked(criterion(model="any"), repeats=6, scatter=0.5)
    assert {each.needed for each in found} == {None}


@pytest.mark.slow
def test_what_no_run_recorded_is_stated() -> None:
    found = asked(criterion(), repeats=6, nodes=32, scatter=None)
    assert {each.scatter for each in found} == {0.01, 0.05}
    narrow, wide = passing(found)[3], passing(found)[7]
    assert narrow > 0.9 > 0.8 > wide
    recorded = asked(criterion(), criterion(name="n", model="every"), repeats=6)
    assert len(recorded) == 2 * len(INSIDE)


def test_more_criteria_and_places_are_harder_to_pass() -> None:
    few = asked(criterion(model="any"), repeats=12)
    many = asked(criterion(model="any"), repeats=12, nodes=5000)
    rules = [criterion(model="any", name=f"{n}") for n in range(5)]
    several = asked(*rules, repeats=12)
    assert passing(many)[3] < passing(several)[3] < passing(few)[3]


@pytest.mark.parametrize(
    ("cap", "stays"),
    [(6, "not shown"), pytest.param(7, "undecided", marks=pytest.mark.slow)],
)
def test_what_does_not_pass_is_not_shown_at_the_cap(cap: int, stays: str) -> None:
    rule = criterion(model="any", cap=cap)
    found = asked(rule, repeats=6, nodes=100)
    assert found[0].verdicts[stays] == pytest.approx(1, abs=0.1)


@pytest.mark.slow
def test_places_of_all_cases_count() -> None:
    rule = criterion(model="any")
    plain = Prospect(rule.name, rule.check, "any", "nodes", 12, 6, 5, scatter=0.02)
    one = chances(criteria(rule), [replace(plain, places=50, cases=1)], 4, 0.0)
    ten = chances(criteria(rule), [replace(plain, places=50, cases=10)], 4, 0.0)
    assert passing(ten)[2] < passing(one)[2]


def test_without_criteria_there_is_nothing_to_pass() -> None:
    assert chances(criteria(), [], 4) == []


def test_convictions_are_a_risk_of_the_machine_and_do_not_grow_with_it() -> None:
    found = asked(criterion(), repeats=12, nodes=20_000, scatter=0.01)
    assert found[0].noise == "independent"
    assert found[0].verdicts["fail"] < 0.5


def test_places_beyond_those_judged_count_as_independent() -> None:
    rule = criterion(model="any")
    once, twice = (
        passing(asked(rule, repeats=12, nodes=nodes, scatter=0.01))[2]
        for nodes in (512, 1024)
    )
    assert 0 < once < 1
    assert twice == pytest.approx(once**2)
