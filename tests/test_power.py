"""Statistical power: by simulation, by a second library, by hand."""

from math import inf

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from seatrial.calibration.statistical_power import Passing, Trial
from seatrial.criteria.methods import Method
from seatrial.judge import order_statistics
from seatrial.judge.levels import levels
from seatrial.judge.screening import screening

METHODS: tuple[Method, ...] = ("t", "order")


def test_t_has_the_power_of_another_library() -> None:
    """Many places of many values: their correlation is known to be small."""
    trial = Trial("t", 1.0, 0.05, places=2)
    for distance in (0.1, 0.2, 0.3):
        known = TTestPower().power(distance, 200, 0.05, alternative="larger")
        assert trial.power(200, distance) == pytest.approx(known, abs=0.02)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("units", [6, 12])
def test_power_is_that_of_the_judge(method: Method, units: int) -> None:
    """Machines of 16 places, all of them 1.5 standard deviations below the limit."""
    generator = np.random.default_rng(1)
    first, found = screening(units), []
    for _ in range(300):
        at = levels(generator.normal(-1.5, 1, (16, units)), method)
        p = at.p_below(0.0, first)
        if method == "order":
            early = order_statistics.quantiles(at.values[:, :first], 0.5)
            p[early >= 0.3] = 1.0
        found.append(np.mean(p <= 0.05))
    trial = Trial(method, 1.0, 0.05, width=0.3, places=16)
    assert trial.power(units, 1.5) == pytest.approx(np.mean(found), abs=0.06)


@pytest.mark.parametrize("method", METHODS)
def test_passing_is_that_of_the_judge(method: Method) -> None:
    generator = np.random.default_rng(1)
    passed = []
    for _ in range(400):
        at = levels(generator.normal(1.5, 1, (8, 10)), method, shared=False)
        passed.append(np.mean(at.lower(0.05) >= 0))
    one = Trial(method, 1.0, 0.05, alone=True, places=8)
    assert one.power(10, 1.5) == pytest.approx(np.mean(passed), abs=0.06)
    eight = Passing(method, 1.0, 0.05, places=8)
    assert eight.power(10, 1.5) == pytest.approx(one.power(10, 1.5) ** 8)


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
