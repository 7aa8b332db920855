"""Statistical power: by simulation, by a second library, by hand."""

from math import inf

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from seatrial.calibration.group_sequential import looks_of, outcome
from seatrial.calibration.statistical_power import Passing, Trial, clears
from seatrial.criteria.methods import Method
from seatrial.judge import bounds
from seatrial.judge.screening import screening

METHODS: tuple[Method, ...] = ("t", "order")


@pytest.mark.parametrize("units", [3, 6, 20])
@pytest.mark.parametrize("distance", [0.5, 1.0, 3.0])
def test_t_has_the_power_of_another_library(units: int, distance: float) -> None:
    known = TTestPower().power(distance, units, 0.05, alternative="larger")
    assert clears("t", units, distance, 0.05) == pytest.approx(known, abs=3e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("units", [6, 12])
def test_power_is_that_of_the_judge(method: Method, units: int) -> None:
    values = np.random.default_rng(1).normal(-1.2, 1, (20_000, units))
    first = screening(units)
    suspected = bounds.centre(values[:, :first], method) < 0.3
    p = bounds.p_below(values[:, first:], 0.0, method)
    trial = Trial(method, 1.0, 0.05, width=0.3)
    found = np.mean(suspected & (p <= 0.05))
    assert trial.power(units, 1.2) == pytest.approx(found, abs=0.015)
    alone = Trial(method, 1.0, 0.05, alone=True)
    convicted = bounds.p_below(values, 0.0, method) <= 0.05
    assert alone.power(units, 1.2) == pytest.approx(np.mean(convicted), abs=0.015)


@pytest.mark.parametrize("method", METHODS)
def test_passing_is_that_of_the_judge(method: Method) -> None:
    values = np.random.default_rng(1).normal(1.0, 1, (20_000, 8))
    passed = np.mean(bounds.lower_bound(values, method, 0.05) >= 0)
    one, three = (Passing(method, 1.0, 0.05, places) for places in (1, 3))
    assert one.power(8, 1.0) == pytest.approx(passed, abs=0.015)
    assert three.power(8, 1.0) == pytest.approx(passed**3, abs=0.03)


@pytest.mark.parametrize(
    ("cv", "slowdown", "normal", "student"),
    [(1, 2, 9, 18), (1, 5, 2, 9), (2, 2, 35, 45), (5, 2, 214, 224), (5, 5, 35, 45)],
)
def test_repeats_family_wise(
    cv: float, slowdown: float, normal: int, student: int
) -> None:
    """20,000 tests, risk 5 %, power 0.9: z-arithmetic, and what Student's t needs.

    It needs about ten more, for it must learn the scatter of each place.
    """
    trial = Trial("t", cv / 100, 0.05 / 20_000, alone=True)
    assert trial.repeats(slowdown / 100, 0.9) == student
    assert student >= normal


@pytest.mark.parametrize(
    ("method", "risk", "least"),
    [("t", 0.05, 4), ("order", 0.05, 6), ("order", 0.01, 9)],
)
def test_too_few_find_nothing(method: Method, risk: float, least: int) -> None:
    trial = Trial(method, 0.02, risk)
    assert trial.smallest(least - 1, 0.5) == inf
    assert trial.smallest(least, 0.5) < inf
    assert trial.repeats(10.0, 0.9) == least


@pytest.mark.parametrize("method", METHODS)
def test_the_smallest_slowdown_has_the_power(method: Method) -> None:
    trial = Trial(method, 0.03, 0.01, width=0.05)
    for power in (0.5, 0.9):
        below = trial.smallest(14, power)
        assert trial.power(14, below) == pytest.approx(power, abs=1e-3)
        needed = trial.repeats(below * 1.001, power)
        assert needed is not None
        assert needed <= 14
    passing = Passing(method, 0.03, 0.05, places=100)
    above = passing.smallest(14, 0.9)
    assert passing.power(14, above) == pytest.approx(0.9, abs=1e-3)


def test_no_number_of_repeats_finds_next_to_nothing() -> None:
    assert Trial("t", 1.0, 0.05).repeats(1e-3, 0.9) is None
    assert Passing("t", 1.0, 0.05).repeats(1e-3, 0.9) is None


@pytest.mark.parametrize("looks", [1, 2, 4])
def test_looks_spend_no_more_than_the_risk(looks: int) -> None:
    laid = looks_of(5, looks, 20)
    assert [look.units for look in laid] == [5 * each for each in range(1, looks + 1)]
    assert sum(look.share for look in laid) == pytest.approx(1.0)


def test_looks_end_at_the_cap() -> None:
    assert [look.units for look in looks_of(8, 4, 20)] == [8, 16, 20, 20]


@pytest.mark.parametrize("method", METHODS)
def test_several_looks_err_no_more_often(method: Method) -> None:
    """At the limit each verdict errs with its risk; looks save allocations off it."""
    looks = looks_of(8, 3, 24)
    at_limit = outcome(looks, method, 0.0, 0.05, 0.05)
    assert at_limit.failed <= 0.06
    assert at_limit.passed <= 0.06
    slow = outcome(looks, method, -2.0, 0.05, 0.05)
    assert slow.units < 17
    assert slow.failed > 0.95
    shares = (slow.passed, slow.failed, slow.undecided)
    assert sum(shares) == pytest.approx(1.0)
    one = outcome(looks_of(8, 1, 24), method, -2.0, 0.05, 0.05)
    assert one.units == 8
