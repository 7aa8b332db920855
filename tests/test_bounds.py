"""Bounds, p-values and what they take for granted: exact values, and their risks."""

import time
from collections.abc import Callable
from math import comb, inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from random_values import (
    Draw,
    bimodal,
    coarse,
    exponential,
    heavy_tail,
    log_of_lognormal,
    normal,
)
from scipy import stats

from seatrial.criteria.methods import Method, smallest_n
from seatrial.judge.bounds import (
    Floats,
    centre,
    lower_bound,
    more_units,
    p_below,
    upper_bound,
)

pytestmark = pytest.mark.filterwarnings("error")

METHODS: list[Method] = ["t", "order"]


def row(*values: float) -> Floats:
    return np.array([values], dtype=float)


def one_to(n: int) -> Floats:
    return np.arange(1.0, n + 1)[np.newaxis]


def bounds(values: Floats, method: Method, risk: float) -> tuple[Floats, Floats]:
    return lower_bound(values, method, risk), upper_bound(values, method, risk)


def interval(values: Floats, method: Method, risk: float) -> tuple[float, float]:
    """Return both bounds of a single place."""
    lower, upper = bounds(values, method, risk)
    return lower.item(), upper.item()


# ---- exact values


@pytest.mark.parametrize(
    ("method", "risk", "n"),
    [
        ("t", 0.05, 3),
        ("t", 1e-9, 3),
        ("order", 0.05, 5),
        ("order", 1 / 32, 5),
        ("order", 0.031, 6),
        ("order", 0.05 / 20_000, 19),
    ],
)
def test_smallest_n(method: Method, risk: float, n: int) -> None:
    assert smallest_n(method, risk) == n
    assert np.isfinite(interval(one_to(n), method, risk)).all()
    assert interval(one_to(n)[:, 1:], method, risk) == (-inf, inf)


def test_t_by_hand() -> None:
    values = row(9, 10, 11, 12, 13)
    half_width = 2.131847 * sqrt(2.5) / sqrt(5)  # tables: t(0.95, 4) = 2.132
    lower, upper = bounds(values, "t", 0.05)
    assert centre(values, "t") == [11]
    assert lower == pytest.approx(11 - half_width, rel=1e-6)
    assert upper == pytest.approx(11 + half_width, rel=1e-6)
    assert p_below(values, 11 + half_width, "t") == pytest.approx(0.05, rel=1e-5)


@pytest.mark.parametrize(
    ("n", "critical"),
    [(5, 0), (6, 0), (7, 0), (8, 1), (10, 1), (12, 2), (15, 3), (20, 5), (30, 10)],
)
def test_order_by_tables_of_the_sign_test(n: int, critical: int) -> None:
    rank = critical + 1
    rng = np.random.default_rng(1)
    values = rng.permuted(one_to(n), axis=1)
    assert interval(values, "order", 0.05) == (rank, n + 1 - rank)
    assert centre(values, "order") == [(n + 1) / 2]


@pytest.mark.parametrize("n", [*range(1, 31), 59])
def test_order_by_whole_numbers(n: int) -> None:
    counts = np.cumsum([comb(n, j) for j in range(n + 1)])
    for risk in (1e-6, 0.001, 0.01, 0.0249, 0.05, 0.1, 0.3):
        rank = np.sum(counts <= risk * 2**n)
        expected = (rank, n + 1 - rank) if rank else (-inf, inf)
        assert interval(one_to(n), "order", risk) == expected
    if n > 1:
        p = [p_below(one_to(n), limit, "order")[0] for limit in range(n + 1, 0, -1)]
        assert p == pytest.approx([count / 2**n for count in counts])


def test_same_as_scipy_place_by_place() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(10, rng.lognormal(0, 1, (200, 1)), (200, 12))
    values[rng.random(values.shape) < 0.3] = nan
    places = [place[~np.isnan(place)] for place in values]
    t = [stats.ttest_1samp(x, 10.5, alternative="less") for x in places]
    assert p_below(values, 10.5, "t") == pytest.approx([x.pvalue for x in t])
    highs = [x.confidence_interval(0.95).high for x in t]
    assert upper_bound(values, "t", 0.05) == pytest.approx(highs)
    assert centre(values, "t") == pytest.approx(np.nanmean(values, axis=1))
    sign = [stats.quantile_test(x, q=10.5, alternative="less") for x in places]
    assert p_below(values, 10.5, "order") == pytest.approx([x.pvalue for x in sign])
    ends = np.array([x.confidence_interval(0.95) for x in sign])[:, 1]
    ends[np.isnan(ends)] = inf
    assert upper_bound(values, "order", 0.05) == pytest.approx(ends)
    assert centre(values, "order") == pytest.approx(np.nanmedian(values, axis=1))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("values", "level"),
    [
        ((nan,) * 8, nan),
        ((nan, 3, nan), 3),
        ((3, nan, 4), 3.5),
        ((3,) * 2, 3),
        ((), nan),
    ],
)
def test_what_says_nothing_of_a_level(
    method: Method, values: tuple[float, ...], level: float
) -> None:
    this = np.array([values, values], dtype=float)
    assert centre(this, method) == pytest.approx(level, nan_ok=True)
    assert [*lower_bound(this, method, 0.05)] == [-inf, -inf]
    assert [*upper_bound(this, method, 0.05)] == [inf, inf]
    assert (p_below(this, 1e9, method) >= 0.25).all()
    assert (more_units(this, 1, method, 0.05, 0.05, 0.01) > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_equal_values_are_judged_by_their_number(method: Method) -> None:
    """They are rounded: of 8 none is beyond the level by chance of 1 / 2^8."""
    this = np.array([(0.1, nan) + (0.1,) * 7])
    assert lower_bound(this, method, 0.05) == upper_bound(this, method, 0.05) == 0.1
    assert p_below(this, 0.2, method) == pytest.approx(2**-8)
    assert p_below(this, 0.1, method) == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_no_places(method: Method) -> None:
    none = np.zeros((0, 5))
    assert not len(centre(none, method))
    assert not len(upper_bound(none, method, 0.05))
    assert not len(p_below(none, 1, method))
    assert not len(more_units(none, 1, method, 0.05, 0.05, 0.01))


def test_infinite_value_is_an_extreme_one_or_none() -> None:
    values = row(-inf, 1, 2, 3, 4, 5, 6)
    assert interval(values, "order", 0.05) == (-inf, 6)
    assert p_below(values, 7, "order") == [1 / 2**7]
    assert interval(values, "t", 0.05) == (-inf, 6), "by order statistics"
    assert p_below(values, 7, "t") == [1 / 2**7]
    assert centre(row(-inf, -inf, -inf, 1, 2), "t") == [-inf]


# ---- properties

SOME = st.integers(0, 6).map(float) | st.just(nan)
TABLES = st.tuples(st.integers(1, 5), st.integers(1, 12)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=SOME)
)
RISKS = st.floats(0.001, 0.4)
EITHER: st.SearchStrategy[Method] = st.sampled_from(METHODS)


@given(TABLES, EITHER, RISKS, st.integers(-1, 7))
def test_p_and_bound_say_the_same(
    values: Floats, method: Method, risk: float, limit: int
) -> None:
    below = upper_bound(values, method, risk) < limit
    assert [*(p_below(values, limit, method) <= risk)] == [*below]
    above = lower_bound(values, method, risk) > -limit
    assert [*(p_below(-values, limit, method) <= risk)] == [*above]


@given(TABLES, EITHER, RISKS, st.integers(0, 99))
def test_order_of_units_and_gaps_change_nothing(
    values: Floats, method: Method, risk: float, seed: int
) -> None:
    gap = np.full((len(values), 1), nan)
    rng = np.random.default_rng(seed)
    other = rng.permuted(np.hstack([values, gap, gap]), axis=1)
    for result in (
        lambda x: centre(x, method),
        lambda x: lower_bound(x, method, risk),
        lambda x: p_below(x, 2.5, method),
        lambda x: more_units(x, 2.3, method, risk, 0.05, 0.011),
    ):
        assert result(other) == pytest.approx(result(values), nan_ok=True)


@given(TABLES, EITHER, RISKS, st.floats(0.1, 10), st.floats(-100, 100))
def test_bounds_move_with_the_values(
    values: Floats, method: Method, risk: float, scale: float, shift: float
) -> None:
    for bound in (lower_bound, upper_bound):
        moved = bound(scale * values + shift, method, risk)
        expected = scale * bound(values, method, risk) + shift
        assert moved == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(TABLES, EITHER, RISKS, RISKS)
def test_less_risk_is_a_wider_bound(
    values: Floats, method: Method, one: float, other: float
) -> None:
    less, more = sorted([one, other])
    middle = centre(values, method)
    there = ~np.isnan(middle)
    lower, upper = bounds(values, method, more)
    wide_lower, wide_upper = bounds(values, method, less)
    assert (wide_lower <= lower).all()
    assert (wide_upper >= upper).all()
    assert (lower[there] <= middle[there] + 1e-12).all()
    assert (upper[there] >= middle[there] - 1e-12).all()


# ---- risks, by simulation: how often a bound misses the true level

PLACES = 40_000


@pytest.mark.parametrize(
    ("method", "draw", "least"),  # least: share of the risk that is used
    [
        ("t", normal, 0.95),
        ("t", log_of_lognormal, 0.95),
        ("t", heavy_tail, 0.25),
        ("order", normal, 0.25),
        ("order", heavy_tail, 0.25),
        ("order", exponential, 0.25),
        ("order", bimodal, 0.25),
        ("order", coarse, 0.05),
    ],
)
@pytest.mark.parametrize(("n", "risk"), [(6, 0.05), (8, 0.05), (20, 0.01)])
def test_bound_misses_no_more_often_than_its_risk(
    method: Method, draw: Draw, least: float, n: int, risk: float
) -> None:
    values = draw(np.random.default_rng(n), (PLACES, n))
    error = 3 * sqrt(risk * (1 - risk) / PLACES)
    lower, upper = bounds(values, method, risk)
    for misses in (lower > 0, upper < 0, p_below(values, 0, method) <= risk):
        assert least * risk - error <= misses.mean() <= risk + error


def test_t_is_not_for_skewed_values_and_order_is() -> None:
    rng = np.random.default_rng(4)
    values = rng.lognormal(0, 1.5, (PLACES, 8))
    mean = np.exp(1.5**2 / 2)
    assert (upper_bound(values, "t", 0.05) < mean).mean() > 0.2
    assert (upper_bound(values, "order", 0.05) < 1).mean() <= 0.05


@pytest.mark.parametrize("method", METHODS)
def test_place_that_is_clearly_below_is_seen(method: Method) -> None:
    values = np.random.default_rng(5).normal(9, 0.5, (1000, 10))
    assert (p_below(values, 10, method) < 0.05).mean() > 0.95
    assert (lower_bound(values, method, 0.05) < 10).all()


# ---- further units


@pytest.mark.parametrize(
    ("values", "limit", "method", "expected"),
    [
        ((9, 10, 11, 12, 13), 9.4, "t", 0),  # passes
        ((9, 10, 11, 12, 13), 12.6, "t", 0),  # is below
        ((9, 10, 11, 12, 13), 10, "t", 9 - 5),  # t(0.95, 8) s / 3 = 0.98 <= 1 < n = 8
        ((9, 10, 11, 12, 13), 12, "t", 9 - 5),
        ((9, 10, 11, 12, 13), 11, "t", 622 - 5),  # t(0.95, 621) s = 2.605
        ((9,), 10, "t", 2),
        ((9, 13), 12, "t", 24 - 2),
        ((1, 2, 3, 4, 5), 0.5, "order", 0),
        ((1, 2, 3, 4, 5), 5.5, "order", 0),
        ((1, 2, 3, 4), 0.5, "order", 1),
        ((1, 2, 3, 4), 4.5, "order", 1),
        ((1, 2, 3, 4, 5), 1.5, "order", 13 - 5),
        ((1, 2, 3, 4, 5, 6), 3.5, "order", -1),
        ((nan, nan), 3.5, "order", 5),
        ((nan, nan), 3.5, "t", 3),
    ],
)
def test_further_units(
    values: tuple[float, ...], limit: float, method: Method, expected: int
) -> None:
    assert more_units(row(*values), limit, method, 0.05, 0.05, 0.1045) == [expected]


def test_further_units_by_t_are_the_fewest_whose_half_width_is_small_enough() -> None:
    values = np.random.default_rng(6).normal(0, 1, (300, 5))
    mean, sd = values.mean(axis=1), values.std(axis=1, ddof=1)
    further = more_units(values, 0, "t", 0.05, 0.01, 0.2)
    for this, level, s in zip(further, mean, sd, strict=True):
        risk, wanted = 0.05 if level >= 0 else 0.01, max(abs(level), 0.2)
        n = 5 + np.array([this - 1, this])
        wide, narrow = stats.t.isf(risk, n - 1) * s / np.sqrt(n)
        assert narrow <= wanted
        assert wide > wanted or this == 0
    assert {*np.sign(further)} == {0, 1}


@pytest.mark.parametrize("method", METHODS)
def test_each_side_has_its_own_risk(method: Method) -> None:
    values = row(-1, 2, 3, 4, 5, -1.5)
    further = [
        more_units(values, 0, method, risk, 0.5, 0.0).item()
        for risk in (0.2, 0.05, 0.01, 1e-5)
    ]
    assert further == sorted({*further})
    for risk, expected in zip((0.2, 0.05, 0.01, 1e-5), further, strict=True):
        assert more_units(-values, 0, method, 0.5, risk, 0.0) == expected


def test_nothing_is_asked_of_a_level_that_is_known_to_be_near_the_limit() -> None:
    near = row(*np.tile([9.9, 10.1], 10))
    for method in METHODS:
        lower, upper = interval(near, method, 0.05)
        known_to = (upper - lower) / 2
        assert more_units(near, 10, method, 0.05, 0.05, 1.01 * known_to) == 0
        assert more_units(near, 10, method, 0.05, 0.05, 0.99 * known_to) != 0
        assert more_units(near, 10, method, 0.05, 0.05, 1e-6) == -1


@pytest.mark.parametrize("method", METHODS)
def test_projected_units_probably_decide(method: Method) -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(0.6, 1, (5000, 8))
    further = more_units(values, 0, method, 0.05, 0.05, 0.0)
    projected = (further > 0) & (centre(values, method) > 0)
    later = rng.normal(0.6, 1, (5000, further.max()))
    later[np.arange(further.max()) >= further[:, np.newaxis]] = nan
    decided = lower_bound(np.hstack([values, later]), method, 0.05) >= 0
    assert 0.5 < decided[projected].mean() < 0.95
    assert np.median(further[projected]) < 30


# ---- speed


@pytest.mark.parametrize("method", METHODS)
def test_places_are_not_gone_through_one_by_one(method: Method) -> None:
    values = np.random.default_rng(15).normal(0, 1, (20_000, 20))

    def seconds(work: Callable[[], object]) -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    all_of_them = seconds(
        lambda: (
            upper_bound(values, method, 0.05),
            p_below(values, 0, method),
            more_units(values, 0, method, 0.05, 0.05, 0.1),
        )
    )
    a_tenth = seconds(
        lambda: [p_below(place[np.newaxis], 0, method) for place in values[:2000]]
    )
    assert all_of_them < a_tenth * 10
