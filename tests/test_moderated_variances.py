"""Variances of places that strengthen each other."""

from math import nan

import numpy as np
import pytest

from seatrial.judge.moderated_variances import Floats, Moderated, moderated

pytestmark = pytest.mark.filterwarnings("error")


def drawn(places: int, freedom: float, prior: float, seed: int = 1) -> Floats:
    """Draw variances whose true values scatter; `prior` inf: all are 1."""
    rng = np.random.default_rng(seed)
    true = np.ones(places)
    if np.isfinite(prior):
        true = prior / rng.chisquare(prior, places)
    return np.asarray(true * rng.chisquare(freedom, places) / freedom)


def of(variance: Floats, freedom: float = 5, apart: tuple[int, ...] = ()) -> Moderated:
    marks = np.isin(np.arange(len(variance)), apart)
    return moderated(variance, np.full(len(variance), float(freedom)), marks)


def test_equal_variances_are_pooled() -> None:
    result = of(np.full(12, 4.0))
    assert [*result.variance] == [4.0] * 12
    assert [*result.freedom] == [60.0] * 12
    assert (result.pooled, result.total) == (4.0, 60.0)


def test_variances_that_differ_by_chance_are_pooled() -> None:
    """No scatter beyond chance is seen in half of all machines."""
    pooled = [of(drawn(30, 5, np.inf, seed)).freedom.min() > 30 for seed in range(60)]
    assert np.mean(pooled) > 0.4
    some = of(drawn(4000, 5, np.inf))
    assert some.pooled == pytest.approx(1, abs=0.03)
    assert np.median(some.freedom) > 300


def test_a_wild_place_keeps_its_own_variance_and_does_not_widen_the_others() -> None:
    variance = np.append(np.linspace(0.8, 1.2, 20), 1000.0)
    result = of(variance)
    assert (result.variance[-1], result.freedom[-1]) == (1000.0, 5.0)
    assert result.pooled == pytest.approx(1.0)
    assert (result.variance[:-1] < 1.3).all()
    assert result.total == 100


def test_a_place_of_three_is_not_set_aside() -> None:
    result = of(np.array([1.0, 1.0, 1000.0]))
    assert result.pooled == pytest.approx(334)
    assert (result.variance >= 334).all()


def test_places_that_differ_are_moderated_by_how_much_they_do() -> None:
    variance = drawn(20_000, 6, 20.0)
    result = of(variance, 6)
    high = variance > 1.1 * result.pooled
    own, moved = variance[high], result.variance[high]
    prior = result.freedom[high] - 6
    near = result.variance[high & (variance < 6 * result.pooled)]
    assert np.median(prior) == pytest.approx(20, rel=0.2)
    assert (moved <= own).all()
    assert (near > result.pooled).all()


def test_a_variance_never_moves_below_that_of_all_places() -> None:
    for prior in (3.0, 20.0, np.inf):
        result = of(drawn(500, 4, prior), 4)
        assert (result.variance >= result.pooled * (1 - 1e-12)).all()
        assert (result.freedom <= result.total).all()
        assert (result.freedom >= 4).all()


def test_places_apart_keep_theirs_if_it_is_larger() -> None:
    variance = np.array([1.0, 1.0, 1.0, 1.0, 9.0, 0.01])
    result = of(variance, apart=(4, 5))
    assert result.pooled == 1.0
    assert [*result.variance] == [1, 1, 1, 1, 9, 1]
    assert [*result.freedom] == [20, 20, 20, 20, 5, 20]


def test_only_places_apart() -> None:
    result = of(np.array([2.0, 4.0]), apart=(0, 1))
    assert result.pooled == 3.0
    assert (result.variance >= 3.0).all()


def test_unknown_variances() -> None:
    result = moderated(
        np.array([nan, 2.0, 4.0]), np.array([0.0, 3.0, 3.0]), np.zeros(3, dtype=bool)
    )
    assert np.isnan(result.variance[0]) and np.isnan(result.freedom[0])
    assert (result.pooled, result.total) == (3.0, 6.0)
    nothing = of(np.full(3, nan))
    assert np.isnan(nothing.variance).all()
    assert nothing.total == 0


def test_equal_values_in_some_places_have_no_logarithm() -> None:
    result = of(np.array([0.0, 0.0, 1.0, 1.1]))
    assert (result.variance >= result.pooled).all()
    assert result.pooled == pytest.approx(0.525)
