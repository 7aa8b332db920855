"""Statistical power: by simulation, by a second library, by hand."""

from itertools import product
from math import inf

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from seatrial.calibration import statistical_power
from seatrial.calibration.statistical_power import Passing, Trial
from seatrial.criteria.methods import Method
from seatrial.judge import order_statistics, serial
from seatrial.judge.levels import levels
from seatrial.judge.screening import screening

SLOWEST = (0.01, "order", 1)
METHODS: tuple[Method, ...] = ("t", "order")


def test_t_has_the_power_of_another_library() -> None:
    """Many places of many values: their correlation is known to be small."""
    trial = Trial("t", 1.0, 0.05, places=20)
    for distance in (0.1, 0.2, 0.3):
        known = TTestPower().power(distance, 200, 0.05, alternative="larger")
        assert trial.power(200, distance) == pytest.approx(known, abs=0.02)


QUICK = {("t", 16, 8), ("order", 2, 6), ("order", 16, 12)}


@pytest.mark.parametrize(
    ("method", "places", "units"),
    [
        pytest.param(*each, marks=[] if each in QUICK else pytest.mark.slow)
        for each in product(METHODS, (2, 16), (6, 8, 12))
    ],
)
def test_power_is_that_of_the_judge(method: Method, places: int, units: int) -> None:
    """Machines with all places 1.5 standard deviations below the limit."""
    generator = np.random.default_rng(1)
    first, found = screening(units), []
    for _ in range(300):
        values = generator.normal(-1.5, 1, (places, units))
        at = levels(values, method, shared=False)
        p = at.p_below(0.0, first)
        if method == "order":
            early = order_statistics.quantiles(at.values[:, :first], 0.5)
            p[early >= 0.3] = 1.0
        found.append(np.mean(p <= 0.05))
    trial = Trial(method, 1.0, 0.05, width=0.3, places=places)
    assert trial.power(units, 1.5) == pytest.approx(np.mean(found), abs=0.1)


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


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("units", [3, 8, 20])
def test_independent_values_seem_to_scatter_more_if_correlation_is_assumed(
    units: int, rho: float
) -> None:
    series = np.random.default_rng(1).normal(0, 1, (40_000, units))
    known = serial.variances(series, rho).mean()
    assert statistical_power.widened(units, rho) == pytest.approx(known, rel=0.02)


@pytest.mark.parametrize(
    ("cv", "slowdown", "normal"),
    [
        (1, 2, 9),
        (2, 2, 35),
        pytest.param(5, 2, 214, marks=pytest.mark.slow),
        (5, 5, 35),
    ],
)
def test_repeats_family_wise(cv: float, slowdown: float, normal: int) -> None:
    """20,000 tests, risk 5 %, power 0.9: z-arithmetic, and what the judge needs.

    One place needs many more: it must learn its scatter and its correlation, as the
    judge shows. Many places teach each other.
    """
    risk = 0.05 / 20_000
    many = Trial("t", cv / 100, risk, places=2000).repeats(slowdown / 100, 0.9)
    assert many is not None
    assert normal <= many <= normal + 2
    alone = Trial("t", cv / 100, risk, alone=True).repeats(slowdown / 100, 0.9)
    assert alone is not None
    generator = np.random.default_rng(1)
    values = generator.normal(-slowdown / 100, cv / 100, (300, 1, alone))
    convicts = [levels(one, "t").p_below(0.0)[0] <= risk for one in values]
    assert np.mean(convicts) == pytest.approx(0.9, abs=0.08)


@pytest.mark.parametrize(
    ("risk", "method", "places"),
    [
        pytest.param(*each, marks=pytest.mark.slow if each == SLOWEST else [])
        for each in product((0.05, 0.01), METHODS, (1, 1000))
    ],
)
def test_too_few_find_nothing(method: Method, risk: float, places: int) -> None:
    """The fewest are those for which the judge convicts places far below the limit."""
    values = np.random.default_rng(1).normal(-100, 1, (60, places, 20))

    def convicts(units: int) -> bool:
        first = screening(units) if method == "order" else 0
        machines = values[: 60 if places == 1 else 5, :, :units]
        found = [levels(one, method).p_below(0.0, first) <= risk for one in machines]
        return bool(np.mean(found) > 0.9)

    fewest = next(units for units in range(1, 21) if convicts(units))
    trial = Trial(method, 1.0, risk, places=places)
    assert trial.repeats(100.0, 0.9) == fewest
    assert trial.smallest(fewest, 0.5) < inf
    assert trial.smallest(2, 0.5) == inf


@pytest.mark.parametrize("method", METHODS)
def test_the_smallest_slowdown_has_the_power(method: Method) -> None:
    trial = Trial(method, 0.03, 0.01, width=0.05, places=50)
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
