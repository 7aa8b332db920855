"""Bake-offs whose repeats resemble their neighbours: seeded AR(1) machines.

The table of docs/compare.md is what the slow test measures.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from bakeoff_samples import Rows, drawn, entrant, run_of, vendor
from scipy.stats import binomtest, chi2, kstest

from seatrial.compare.compare import compare
from seatrial.compare.pairing import Floats
from seatrial.compare.ranking import Ranking, Rules, more_repeats, ranked
from seatrial.compare.ratios import Score, scores, serial_correlation
from seatrial.compare.records import Side
from seatrial.compare.serial import (
    Correlation,
    correlation,
    innovations,
)
from seatrial.compare.wording import correlation_words
from seatrial.judge.serial import ASSUMED, mean_variance


def ar1(
    generator: np.random.Generator, shape: tuple[int, ...], rho: float | Floats
) -> Floats:
    """Draw stationary AR(1) series of variance 1 along the last axis."""
    series = generator.standard_normal(shape)
    for at in range(1, shape[-1]):
        fresh = np.sqrt(1 - rho**2) * series[..., at]
        series[..., at] = rho * series[..., at - 1] + fresh
    return series


# ---- the model


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_innovations_have_one_degree_less_than_repeats(rho: float) -> None:
    series = ar1(np.random.default_rng(1), (4000, 6), rho)
    squares = np.sum(innovations(series + 7.0, rho) ** 2, axis=1)
    assert kstest(squares, chi2(5).cdf).pvalue > 0.01


def test_innovations_of_independent_repeats_are_deviations() -> None:
    series = np.array([[1.0, np.nan, 3.0, 8.0]])
    assert innovations(series, 0.0).tolist() == [[-3.0, 0.0, -1.0, 4.0]]


def test_equal_repeats_scatter_by_nothing() -> None:
    assert not innovations(np.full((1, 7), 0.1), 0.3).any()
    assert correlation([np.full((1, 7), 0.1)]) == Correlation()


@pytest.mark.parametrize("rho", [-0.4, 0.0, 0.5, 0.9])
def test_variance_of_a_mean(rho: float) -> None:
    for n in (1, 2, 6, 20):
        steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        expected = np.mean(rho**steps)
        assert mean_variance(np.array(n), rho) == pytest.approx(expected)


@pytest.mark.parametrize("repeats", [3, 6, 20])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_short_series_have_little_bias(repeats: int, rho: float) -> None:
    """A plain lag-1 correlation of 3 repeats would be 0.3 to 0.9 too low."""
    generator = np.random.default_rng(2)
    sides = [ar1(generator, (20_000, repeats), rho) for _ in range(2)]
    assert correlation(sides).estimate == pytest.approx(rho, abs=0.05)


def test_gaps_are_left_out() -> None:
    generator = np.random.default_rng(3)
    series = ar1(generator, (5, 6), 0.5)
    spread = np.full((5, 9), np.nan)
    spread[:, [0, 1, 3, 4, 6, 8]] = series
    assert correlation([spread]) == correlation([series])
    expected = innovations(series, 0.5)
    assert innovations(spread, 0.5)[:, [0, 1, 3, 4, 6, 8]] == pytest.approx(expected)


USED = [
    (0.0, 3, 0.45, 0.55),  # three repeats exclude nothing
    (0.0, 200, 0.0, 0.15),
    (0.8, 200, 0.7, 0.9),
]


@pytest.mark.parametrize(("rho", "repeats", "least", "most"), USED)
def test_correlation_that_counts(
    rho: float, repeats: int, least: float, most: float
) -> None:
    generator = np.random.default_rng(4)
    used = [
        correlation([ar1(generator, (1, repeats), rho) for _ in range(2)]).used
        for _ in range(200)
    ]
    assert least <= np.median(used) <= most


def test_correlation_of_the_mean_is_not_hidden_by_noise() -> None:
    """Luck that all numbers share resembles its neighbour; their own noise does not."""
    generator = np.random.default_rng(5)
    sides = [
        ar1(generator, (1, 100), 0.8) + 2 * generator.standard_normal((50, 100))
        for _ in range(2)
    ]
    assert correlation(sides).used < 0.4
    assert serial_correlation(drawn(sides), np.full(50, 1 / 50)).used > 0.6


WORDS = [
    (Correlation(), "0.50, assumed: fewer than 3 repeats cannot show it"),
    (
        Correlation(0.5, 0.12, 0.29),
        "0.50, assumed: the repeats (0.12 ± 0.29) do not exclude it",
    ),
    (
        Correlation(0.31, 0.02, 0.176),
        "0.31, the upper 95 % bound of the repeats (0.02 ± 0.18)",
    ),
    (Correlation(0.7, 0.7, 0.1), "0.70, the estimate of the repeats (0.70 ± 0.10)"),
]


@pytest.mark.parametrize(("found", "words"), WORDS)
def test_words(found: Correlation, words: str) -> None:
    assert correlation_words(found) == words


# ---- the order of the repeats


def started(rows: Rows, starts: Sequence[float]) -> Rows:
    """Set the start of each repeat."""
    return rows[0], [replace(row, start_time=starts[row.repeat - 1]) for row in rows[1]]


def test_repeats_are_in_the_order_of_their_start() -> None:
    """The same repeats under other numbers give the same comparison."""
    order = [3, 1, 6, 2, 5, 4]
    plain = [started(vendor(seed=seed), range(6)) for seed in (1, 2)]
    shuffled = [
        (
            [replace(case, repeat=order[case.repeat - 1]) for case in cases],
            [replace(row, repeat=order[row.repeat - 1]) for row in rows],
        )
        for cases, rows in plain
    ]
    found, other = (
        compare([entrant("a", run_of(*one, "a")), entrant("b", run_of(*two, "b"))])
        for one, two in (plain, shuffled)
    )
    assert found.correlation.estimate == pytest.approx(other.correlation.estimate)
    assert found.lead == other.lead


# ---- winners


def bakeoff(
    generator: np.random.Generator,
    shape: tuple[int, int, int],
    rho: float,
    better: float = 0.0,
) -> Ranking:
    """Compare sides of (sides, metrics, repeats) with CV 1 %, the first is better.

    Half of the variance of a metric is luck that all metrics of a repeat share.
    """
    sides, metrics, repeats = shape
    shared = ar1(generator, (sides, 1, repeats), rho)
    own = ar1(generator, (sides, metrics, repeats), rho)
    times = 0.01 * math.sqrt(0.5) * (shared + own)
    times[0] -= math.log1p(better)
    numbers, weights = drawn(list(times)), np.full(metrics, 1 / metrics)
    found = serial_correlation(numbers, weights)
    rules = Rules("performance", 0.0, 0.95, 500, 1, found)
    names = [f"s{at}" for at in range(sides)]
    return ranked(
        [Side(name, name, name, "c", "", "", repeats, 4) for name in names],
        scores(numbers, weights, found.used),
        rules,
        bars=[""] * sides,
        lacking=[""] * sides,
        against=(),
    )


def require_few_false_winners(shape: tuple[int, int, int], rho: float, n: int) -> None:
    generator = np.random.default_rng(21)
    false = sum(bakeoff(generator, shape, rho).winner is not None for _ in range(n))
    assert binomtest(false, n).proportion_ci(0.95).low <= 0.05, false / n


def require_winner(
    repeats: int, rho: float, better: float, least: float, n: int
) -> None:
    generator = np.random.default_rng(22)
    shape = (2, 5, repeats)
    won = sum(bakeoff(generator, shape, rho, better).winner == "s0" for _ in range(n))
    assert binomtest(won, n).proportion_ci(0.95).low >= least, won / n


@pytest.mark.parametrize("rho", [pytest.param(0.0, marks=pytest.mark.slow), 0.5])
def test_equal_systems_hardly_ever_win(rho: float) -> None:
    """Without a model of time, 24 % of these have a false winner at rho 0.5."""
    require_few_false_winners((2, 5, 6), rho, 400)


@pytest.mark.parametrize(("repeats", "better"), [(6, 0.1), (12, 0.05)])
def test_better_system_wins(repeats: int, better: float) -> None:
    require_winner(repeats, 0.5, better, 0.8, 200)


EQUAL = [
    (sides, metrics, repeats)
    for sides in (2, 3)
    for metrics in (1, 5, 20)
    for repeats in (6, 12, 20)
]


@pytest.mark.slow
@pytest.mark.parametrize("shape", EQUAL)
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_false_winners_of_the_table(shape: tuple[int, int, int], rho: float) -> None:
    require_few_false_winners(shape, rho, 2000)


POWER = [
    (6, 0.05, 0.8),
    (6, 0.1, 0.9),
    (12, 0.02, 0.5),
    (12, 0.05, 0.9),
    (20, 0.02, 0.8),
]


@pytest.mark.slow
@pytest.mark.parametrize(("repeats", "better", "least"), POWER)
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_power_of_the_table(
    repeats: int, better: float, least: float, rho: float
) -> None:
    require_winner(repeats, rho, better, least, 2000)


def test_resemblance_takes_more_repeats() -> None:
    influences = 0.01 * np.array([1.0, -1.0, 1.0, -1.0])
    one, other = Score(0.02, influences, 3), Score(0.0, influences, 3)
    independent, resembling = (
        more_repeats(
            one, other, 0.95, Rules("performance", 0.0, 0.95, 1, 1, Correlation(rho))
        )
        for rho in (0.0, ASSUMED)
    )
    assert independent is not None
    assert resembling is not None
    assert resembling > independent
