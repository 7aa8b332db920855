"""Estimates of spread: right without outliers, and robust to a bad node."""

import time
from collections.abc import Callable
from itertools import combinations
from math import hypot, isnan, nan

import numpy as np
import pytest

from seatrial.judge import variance_components
from seatrial.judge.variance_components import Spread, components, set_aside

ROSNER = [
    *(-0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49),
    *(1.55, 1.56, 1.58, 1.65, 1.69, 1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96),
    *(1.99, 2.06, 2.09, 2.10, 2.14, 2.15, 2.23, 2.24, 2.26, 2.35, 2.37, 2.40),
    *(2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59),
    *(3.68, 4.30, 4.64, 5.34, 5.42, 6.01),
]
"""The published example of the generalized ESD test: three outliers at 5 %."""


def drawn(
    places: int, units: int, spread: tuple[float, float, float], seed: int
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    place, unit, rest = spread
    values: np.ndarray = (
        place * rng.standard_normal((places, 1))
        + unit * rng.standard_normal((1, units))
        + rest * rng.standard_normal((places, units))
    )
    return values


def typical(found: list[Spread]) -> tuple[float, float, float]:
    """Return the root of the mean variances, which are without bias."""
    variances = np.array([(s.place, s.unit, s.rest) for s in found]) ** 2
    place, unit, rest = np.sqrt(variances.mean(axis=0))
    return float(place), float(unit), float(rest)


@pytest.mark.parametrize(
    ("places", "units", "spread", "tolerance"),
    [
        (4, 10, (2, 1, 1), 0.08),
        (16, 5, (2, 1, 1), 0.08),
        (100, 3, (1, 3, 1), 0.12),
        (100, 10, (2, 1, 0.5), 0.06),
        (3, 4, (1, 1, 1), 0.17),
    ],
)
def test_components_are_found(
    places: int, units: int, spread: tuple[float, float, float], tolerance: float
) -> None:
    found = typical(
        [components(drawn(places, units, spread, seed)) for seed in range(400)]
    )
    assert found == pytest.approx(spread, rel=tolerance)


def test_one_slow_node_does_not_blow_them_up() -> None:
    found = []
    for seed in range(200):
        values = drawn(16, 5, (1, 1, 1), seed)
        values[3] -= 40
        found.append(components(values))
        assert 3 in found[-1].aside
    assert typical(found) == pytest.approx((1, 1, 1), rel=0.12)


def test_one_node_that_scatters_does_not_either() -> None:
    found = []
    for seed in range(200):
        values = drawn(16, 5, (0, 1, 1), seed)
        values[3] *= 20
        found.append(components(values))
    assert typical(found)[1:] == pytest.approx((1, 1), rel=0.12)


def test_sound_levels_are_rarely_set_aside() -> None:
    rng = np.random.default_rng(1)
    wrong = [bool(set_aside(rng.standard_normal(20))) for _ in range(1000)]
    assert 0.02 < np.mean(wrong) < 0.1


def test_the_published_example_of_outliers() -> None:
    rng = np.random.default_rng(1)
    order = rng.permutation(len(ROSNER))
    values = np.array(ROSNER)[order]
    assert sorted(values[list(set_aside(values))]) == [5.34, 5.42, 6.01]


def test_several_outliers_do_not_hide_each_other() -> None:
    levels = np.random.default_rng(1).standard_normal(20)
    levels[[2, 7, 11]] = [-30, -60, 120]
    assert set_aside(levels) == (2, 7, 11)


@pytest.mark.parametrize("levels", [[], [1.0, 2.0, 99.0], [5.0] * 8])
def test_nothing_is_set_aside_of_three_or_of_equal_levels(levels: list[float]) -> None:
    assert set_aside(np.array(levels)) == ()


def test_one_place_has_all_in_rest() -> None:
    found = components(np.array([[1.0, 2.0, 4.0]]))
    assert found == Spread(0.0, 0.0, float(np.std([1, 2, 4], ddof=1)), 3)
    assert found.within == found.rest


def test_one_allocation_tells_nothing_of_allocations() -> None:
    found = components(np.array([[1.0], [2.0], [4.0]]))
    assert found.place == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert isnan(found.unit)
    assert isnan(found.rest)
    assert isnan(found.within)


def test_what_was_not_measured_does_not_count() -> None:
    values = drawn(12, 6, (1, 1, 1), 5)
    holes = np.full((14, 7), nan)
    holes[1:13, 1:] = values
    whole, found = components(values), components(holes)
    assert (found.place, found.unit, found.rest) == pytest.approx(
        (whole.place, whole.unit, whole.rest)
    )
    assert found.units == 6
    holes[4, 2] = nan
    assert components(holes).rest == pytest.approx(whole.rest, rel=0.3)


def test_indices_of_places_set_aside_are_those_given() -> None:
    values = drawn(16, 5, (1, 1, 1), 1)
    values[7] -= 50
    values[2] = nan
    assert components(values).aside == (7,)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 4)])
def test_nothing_measured(shape: tuple[int, int]) -> None:
    found = components(np.full(shape, nan))
    assert isnan(found.within)
    assert found.units == 0


def test_no_scatter_at_all() -> None:
    found = components(np.full((5, 4), 7.0))
    assert (found.place, found.unit, found.rest) == (0.0, 0.0, 0.0)


def test_units_that_share_no_place_are_borne() -> None:
    values = np.array([[1.0, 2.0, nan, nan], [nan, nan, 3.0, 5.0]])
    assert components(values).units == 4


def test_scatter_of_one_place() -> None:
    assert Spread(place=3.0, unit=2.0, rest=1.0, units=5).within == hypot(2, 1)


def shifts_by_loop(values: np.ndarray) -> np.ndarray:
    """Return the shifts by their definition: a median for each pair of units."""
    units = values.shape[1]
    difference = np.zeros((units, units))
    for earlier, later in combinations(range(units), 2):
        pairs = values[:, later] - values[:, earlier]
        pairs = pairs[~np.isnan(pairs)]
        median = np.median(pairs) if pairs.size else nan
        difference[later, earlier], difference[earlier, later] = median, -median
    return np.asarray(np.nanmean(difference, axis=1))


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("units", [2, 3, 12, 31])
@pytest.mark.parametrize("places", [2, 3, 4, 17, 100])
def test_shifts_are_those_of_a_loop(places: int, units: int, missing: float) -> None:
    """Equal to the last bit, also where two units share no place."""
    rng = np.random.default_rng([places, units, int(10 * missing)])
    for digits in (1, 16):  # with ties and without
        values = rng.normal(100, 1, (places, units)).round(digits)
        values[rng.random(values.shape) < missing] = nan
        found = variance_components._shifts(values)
        np.testing.assert_array_equal(found, shifts_by_loop(values))


def test_shifts_of_many_units_take_no_loop_over_their_pairs() -> None:
    values = np.random.default_rng(5).normal(100, 1, (16, 200))

    def least(function: Callable[[np.ndarray], np.ndarray]) -> float:
        times = []
        for _ in range(3):
            began = time.process_time()
            function(values)
            times.append(time.process_time() - began)
        return min(times)

    assert 4 * least(variance_components._shifts) < least(shifts_by_loop)
