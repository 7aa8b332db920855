"""Serial correlation: exact values by dense matrices, and by simulation."""

from math import inf, nan, sqrt

import numpy as np
import pytest
from random_values import autoregressive
from scipy import stats

from seatrial.judge import serial
from seatrial.judge.serial import UNKNOWN, Correlation, Floats

pytestmark = pytest.mark.filterwarnings("error")

RHOS = [-0.4, 0.0, 0.3, 0.5, 0.9]


def dense(n: int, rho: float) -> Floats:
    """Return the correlation matrix of an AR(1) series."""
    return np.asarray(rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))))


# ---- variances of units and of means


@pytest.mark.parametrize("rho", RHOS)
def test_variances_by_dense_matrices(rho: float) -> None:
    values = np.random.default_rng(1).normal(7, 2, (40, 9))
    lengths = np.arange(40) % 10
    values[np.arange(9) >= lengths[:, np.newaxis]] = nan
    found = serial.variances(values, rho)
    for n, series, variance in zip(lengths.tolist(), values, found, strict=True):
        if n < 2:
            assert np.isnan(variance)
            continue
        inverse = np.linalg.inv(dense(n, rho))
        mean = inverse.sum(axis=0) @ series[:n] / inverse.sum()
        rest = series[:n] - mean
        assert variance == pytest.approx(rest @ inverse @ rest / (n - 1))


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_variances_have_no_bias_and_n_minus_1_degrees_of_freedom(rho: float) -> None:
    values = 3 * autoregressive(np.random.default_rng(2), (20_000, 6), rho)
    found = serial.variances(values, rho)
    assert found.mean() == pytest.approx(9, rel=4 * sqrt(2 / 5 / 20_000))
    assert stats.kstest(5 * found / 9, stats.chi2(5).cdf).pvalue > 1e-4


@pytest.mark.parametrize("rho", RHOS)
def test_inflation_by_dense_matrices(rho: float) -> None:
    n = np.arange(1, 30)
    expected = [dense(units, rho).sum() / units for units in n.tolist()]
    assert serial.inflation(n, rho) == pytest.approx(expected)
    assert serial.inflation(np.array([0]), rho) == pytest.approx([1])


def test_inflation_of_many_units() -> None:
    assert serial.inflation(np.array([10**6]), 0.5) == pytest.approx(3, rel=1e-5)


# ---- the estimate


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.5])
@pytest.mark.parametrize("n", [3, 6, 12, 20])
def test_correlation_of_many_places_has_no_bias(n: int, rho: float) -> None:
    """Demeaned short series look anticorrelated: by -1/2 at n = 3."""
    values = autoregressive(np.random.default_rng(n), (40_000, n), rho)
    values += np.random.default_rng(3).normal(0, 99, (40_000, 1))
    assert serial.correlation(values).rho == pytest.approx(rho, abs=0.05)


@pytest.mark.parametrize("n", [3, 6, 12, 20])
@pytest.mark.parametrize("places", [1, 16])
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_half_of_the_estimates_are_too_high(n: int, places: int, rho: float) -> None:
    rng = np.random.default_rng(100 * n + places)
    found = [
        serial.correlation(autoregressive(rng, (places, n), rho), places)
        for _ in range(400)
    ]
    median = np.median([each.rho for each in found])
    error = np.median([each.error for each in found])
    assert abs(median - rho) < 0.25 * error + 0.05
    if places > 1 and n > 3:
        spread = np.std([each.rho for each in found])
        assert 0.6 * spread < error < 1.6 * spread


def test_places_that_share_their_noise_count_as_one() -> None:
    rng = np.random.default_rng(4)
    own = rng.normal(size=(16, 12))
    same = np.tile(own[:1], (16, 1))
    assert serial.correlation(same).error == pytest.approx(
        serial.correlation(own[:1]).error
    )
    assert 2 * serial.correlation(own).error < serial.correlation(same).error


def test_a_wild_place_does_not_set_the_correlation() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(16, 12))
    before = serial.correlation(values).rho
    values[0] = 1000 * np.arange(12)
    assert abs(serial.correlation(values).rho - before) < 0.1


@pytest.mark.parametrize(
    "series",
    [
        np.zeros((0, 5)),
        np.zeros((5, 0)),
        np.ones((3, 8)),
        np.full((3, 8), nan),
        np.array([[1.0, 2.0], [2.0, 5.0]]),
    ],
)
def test_nothing_shows_a_correlation(series: Floats) -> None:
    assert serial.correlation(series) == UNKNOWN


@pytest.mark.parametrize(
    ("rho", "error", "used"),
    [
        (0.0, 0.0, 0.0),
        (0.0, 0.1, 0.0),
        (0.3, 0.1, 0.3),
        (0.3, 0.15, 0.425),
        (0.45, 0.2, 0.5),
        (0.0, inf, 0.5),
        (-0.5, 0.2, 0.0),
        (-0.5, 0.4, 0.25),
        (0.9, 0.05, 0.9 - 1.645 * 0.05),
        (0.9, 0.5, 0.5),
        (0.9, inf, 0.5),
        (0.99, 0.0, 0.95),
    ],
)
def test_used_correlation(rho: float, error: float, used: float) -> None:
    assert Correlation(rho, error).used == pytest.approx(used)


@pytest.mark.parametrize(
    ("rho", "step"),
    [(0, 0), (0.01, 0.05), (0.05, 0.05), (0.3, 0.3), (0.501, 0.55), (0.99, 0.95)],
)
def test_steps_are_rounded_up(rho: float, step: float) -> None:
    assert serial.stepped(rho) == step


# ---- counts of units that reach a level


@pytest.mark.parametrize("share", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("units", [0, 1, 8, 30, 150])
def test_at_most_is_binomial_without_correlation(units: int, share: float) -> None:
    table = serial.at_most(units, 0.0, share)
    n = np.arange(units + 1)[:, np.newaxis]
    assert table == pytest.approx(stats.binom.cdf(np.arange(units + 1), n, share))


@pytest.mark.parametrize("share", [0.5, 0.25, 0.9])
@pytest.mark.parametrize("follows", [False, True])
def test_at_most_by_simulation(share: float, follows: bool) -> None:
    series = autoregressive(np.random.default_rng(6), (200_000, 9), 0.5)
    reach = series >= stats.norm.isf(share)
    if follows:
        reach = reach[~reach[:, 0]]
    counts = np.cumsum(reach[:, 1:], axis=1)
    table = serial.at_most(8, 0.5, share, follows=follows)
    for n in (1, 2, 5, 8):
        for k in range(n + 1):
            p = float(np.mean(counts[:, n - 1] <= k))
            error = 4 * sqrt((p * (1 - p) + 1e-6) / len(counts))
            assert table[n, k] == pytest.approx(p, abs=error)


def test_correlation_makes_extreme_counts_more_frequent() -> None:
    none = [float(serial.at_most(12, rho, 0.5)[12, 0]) for rho in (0.0, 0.3, 0.5, 0.9)]
    assert none == sorted({*none})
    assert serial.at_most(12, 0.46, 0.5) is serial.at_most(12, 0.5, 0.5), "rounded up"


def test_many_units_count_as_fewer_independent_ones() -> None:
    inflation = serial.count_inflation(0.5)
    of_all = serial.at_most(200, 0.5, 0.5)[200]
    counted = int(200 / inflation)
    for k in (0, 50, 100, 180):
        assert of_all[k] == pytest.approx(
            stats.binom.cdf(int(k / inflation), counted, 0.5)
        )


def test_count_inflation_by_simulation() -> None:
    series = autoregressive(np.random.default_rng(7), (20_000, 200), 0.5)
    variance = 200 * np.mean(series >= 0, axis=1).var() / 0.25
    assert serial.count_inflation(0.0) == 1
    assert variance == pytest.approx(serial.count_inflation(0.5), rel=0.06)


# ---- series


def test_whitened_series_are_white_and_keep_their_variance() -> None:
    values = autoregressive(np.random.default_rng(8), (4000, 10), 0.5)
    white = serial.whitened(values, 0.5)
    assert white.shape == (4000, 9)
    assert white.var() == pytest.approx(1, abs=0.05)
    assert abs(np.mean(white[:, 1:] * white[:, :-1])) < 4 / sqrt(4000 * 8)
    assert np.mean(values[:, 1:] * values[:, :-1]) > 0.4


def test_whitened_loses_a_unit_and_its_follower() -> None:
    values = np.array([[1.0, 2.0, nan, 4.0, 5.0, 6.0]])
    lost = [False, True, True, False, False]
    assert [*np.isnan(serial.whitened(values, 0.5)[0])] == lost
    assert serial.whitened(values, 0.0) is values


def test_packed_moves_gaps_to_the_end() -> None:
    values = np.array([[nan, 3, nan, 1, 2], [5, 4, 3, 2, 1], [nan] * 5])
    expected = [[3, 1, 2, nan, nan], [5, 4, 3, 2, 1], [nan] * 5]
    np.testing.assert_array_equal(serial.packed(values), np.array(expected))
