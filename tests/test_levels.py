"""Levels, their bounds and p-values: exact values, and their risks."""

import time
from itertools import product
from math import comb, inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from random_values import (
    Draw,
    autoregressive,
    bimodal,
    coarse,
    exponential,
    heavy_tail,
    normal,
)
from scipy import stats

from seatrial.criteria.methods import Method, smallest_n
from seatrial.judge.levels import Levels, levels
from seatrial.judge.multiple_testing import holm
from seatrial.judge.order_statistics import Order, fewest, medians, quantiles
from seatrial.judge.scatter import Times, unknown
from seatrial.judge.serial import Correlation, Floats

pytestmark = pytest.mark.filterwarnings("error")

METHODS: list[Method] = ["t", "order"]
MEDIAN = Order(0.0, 0.5)
INDEPENDENT = Times(Correlation(0.0, 0.0))


def row(*values: float) -> Floats:
    return np.array([values], dtype=float)


def one_to(n: int) -> Floats:
    return np.arange(1.0, n + 1)[np.newaxis]


def by_t(values: Floats, floor: float = 0.0) -> Levels:
    """Return levels of places by independent units, with no effect on all."""
    return levels(values, "t", shared=False, floor=floor, times=INDEPENDENT)


def interval(values: Floats, risk: float, order: Order = MEDIAN) -> tuple[float, float]:
    """Return both bounds of a single place by order statistics."""
    return order.lower(values, risk).item(), order.upper(values, risk).item()


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
    if method == "order":
        assert fewest(MEDIAN, risk) == n
        assert np.isfinite(interval(one_to(n), risk)).all()
        assert interval(one_to(n - 1), risk) == (-inf, inf)
    else:
        assert np.isfinite(by_t(one_to(n)).lower(risk)).all()
        assert by_t(one_to(n - 1)).lower(risk) == [-inf]


@pytest.mark.parametrize(
    ("rho", "risk", "n"), [(0.0, 0.05, 5), (0.5, 0.05, 8), (0.5, 0.01, 13)]
)
def test_correlated_units_take_more(rho: float, risk: float, n: int) -> None:
    found = fewest(Order(rho, 0.5), risk)
    assert abs(found - n) <= 1
    assert interval(one_to(found), risk, Order(rho, 0.5))[0] == 1
    assert interval(one_to(found - 1), risk, Order(rho, 0.5)) == (-inf, inf)


def test_t_by_hand() -> None:
    at = by_t(row(9, 10, 11, 12, 13))
    half_width = 2.131847 * sqrt(2.5) / sqrt(5)  # tables: t(0.95, 4) = 2.132
    assert at.centre == [11]
    assert at.lower(0.05) == pytest.approx(11 - half_width, rel=1e-6)
    assert at.upper(0.05) == pytest.approx(11 + half_width, rel=1e-6)
    assert at.p_below(11 + half_width) == pytest.approx(0.05, rel=1e-5)


def test_correlation_widens_t() -> None:
    """AR(1) 0.5 of 3 units: variance by GLS, mean with 3 + 4 * 0.5 + 2 * 0.25 of 9."""
    values = row(9, 11, 10)
    at = levels(values, "t", shared=False, floor=0, times=Times(Correlation(0.5, 0.0)))
    inverse = np.linalg.inv(0.5 ** np.abs(np.subtract.outer(range(3), range(3))))
    rest = values[0] - inverse.sum(axis=0) @ values[0] / inverse.sum()
    error = sqrt(rest @ inverse @ rest / 2 * 5.5 / 9)
    assert at.scatter.error == pytest.approx(error)
    assert at.lower(0.05) == pytest.approx(10 - stats.t.isf(0.05, 2) * error)


def test_luck_of_allocations_is_bounded_once_for_all_places() -> None:
    """Of 1,000 nodes in 4 allocations that share 1 %, one 12 % slow is convicted."""
    hits: dict[str, int] = {"once": 0, "each": 0, "sound": 0}
    for seed in range(100):
        draw = np.random.default_rng(seed)
        values = 0.01 * (draw.normal(size=(1000, 4)) + draw.normal(size=4))
        values[0] -= 0.12
        at = levels(values, "t")
        once = holm(at.p_below(0.0, common_risk=0.05), 0.05)
        hits["once"] += int(once[0])
        hits["sound"] += int(once[1:].any())
        hits["each"] += int(holm(at.p_below(0.0), 0.05)[0])
    assert hits["once"] >= 90
    assert hits["each"] <= 75
    assert hits["sound"] <= 5


def test_few_units_have_a_scatter_of_5_percent() -> None:
    """Below 20 degrees of freedom, 3 for each of 7 but one; 4 units halve it."""
    near = 100 + np.array([[0.0, 0.001, -0.001, 0.0]])
    floor = 0.05 * 1.644854 / 2
    assert by_t(near, 0.05).lower(0.05) == pytest.approx(100 - floor, abs=1e-6)
    assert by_t(near, 0.05).upper(0.05) == pytest.approx(100 + floor, abs=1e-6)
    assert by_t(near, 0.05).p_below(100 + floor) == pytest.approx(0.05, rel=1e-4)
    many = np.tile(near, (8, 1))
    assert by_t(many, 0.05).lower(0.05) == pytest.approx(100, abs=0.05)
    assert (by_t(many, 0.05).scatter.floor == 0).all()
    assert (by_t(many[:7], 0.05).scatter.floor == 0.025).all()


def test_equal_values_never_lose_the_floor() -> None:
    at = by_t(np.full((50, 6), 3.0), 0.05)
    assert (at.lower(0.05) < 3.0).all()
    assert (at.upper(0.05) > 3.0).all()


@pytest.mark.parametrize(
    ("n", "critical"),
    [(5, 0), (6, 0), (7, 0), (8, 1), (10, 1), (12, 2), (15, 3), (20, 5), (30, 10)],
)
def test_order_by_tables_of_the_sign_test(n: int, critical: int) -> None:
    rank = critical + 1
    values = np.random.default_rng(1).permuted(one_to(n), axis=1)
    assert interval(values, 0.05) == (rank, n + 1 - rank)
    assert [*quantiles(values, 0.5)] == [(n + 1) / 2]


@pytest.mark.parametrize("n", [*range(1, 31), 59])
def test_order_by_whole_numbers(n: int) -> None:
    counts = np.cumsum([comb(n, j) for j in range(n + 1)])
    for risk in (1e-6, 0.001, 0.01, 0.0249, 0.05, 0.1, 0.3):
        rank = np.sum(counts <= risk * 2**n)
        expected = (rank, n + 1 - rank) if rank else (-inf, inf)
        assert interval(one_to(n), risk) == expected
    tests = [MEDIAN.sign_test(one_to(n), limit, 0)[0] for limit in range(n + 1, 0, -1)]
    assert tests == pytest.approx([count / 2**n for count in counts])


@pytest.mark.parametrize("units", [1, 2, 7, 8])
def test_medians_are_those_of_numpy(units: int) -> None:
    """Rows may lack numbers, or all of them; -inf is one."""
    generator = np.random.default_rng(units)
    values = generator.normal(size=(50, units))
    values[generator.random(values.shape) < 0.3] = nan
    values[generator.random(values.shape) < 0.1] = -inf
    known = ~np.isnan(values).all(axis=1)
    assert (medians(values[known]) == np.nanmedian(values[known], axis=1)).all()
    assert np.isnan(medians(values[~known])).all()
    assert np.isnan(medians(values[:, :0])).all()


def test_other_quantiles_by_scipy() -> None:
    values = np.random.default_rng(2).normal(0, 1, (200, 20))
    for below in (0.1, 0.25, 0.5):
        order = Order(0.0, below)
        tests = [
            stats.quantile_test(x, q=0, p=below, alternative="less") for x in values
        ]
        p = [test.pvalue for test in tests]
        assert order.sign_test(values, 0, 0) == pytest.approx(p)
        ends = np.array([test.confidence_interval(0.95) for test in tests])[:, 1]
        assert order.upper(values, 0.05) == pytest.approx(ends)


def test_the_units_that_chose_a_place_do_not_convict_it() -> None:
    values = row(1, 1, 1, 9, 1, 1, 1, 1)
    assert MEDIAN.sign_test(values, 5, 0) == pytest.approx(9 / 2**8)
    assert MEDIAN.sign_test(values, 5, 4) == pytest.approx(1 / 2**4)
    follows = Order(0.5, 0.5).sign_test(values, 5, 4)
    assert follows > 1 / 2**4, "units after a bad one are likely bad"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("values", "level"),
    [((nan,) * 8, nan), ((nan, 3, nan), 3), ((3, nan, 4), 3.5), ((3,) * 2, 3)],
)
def test_what_says_nothing_of_a_level(
    method: Method, values: tuple[float, ...], level: float
) -> None:
    at = levels(np.array([values, values], dtype=float), method)
    assert at.centre == pytest.approx(level, nan_ok=True)
    assert not (at.lower(0.05) > -inf).any()
    assert not (at.upper(0.05) < inf).any()
    assert (at.p_below(1e9) >= 0.25).all()
    assert (at.more(1, (0.05, 0.05), 0.01) != 0).all()


def test_equal_values_are_judged_by_their_number() -> None:
    """They are rounded: of 8 none is beyond the level by chance of 1 / 2^8."""
    this = np.array([(0.1, nan) + (0.1,) * 7])
    assert interval(this, 0.05) == (0.1, 0.1)
    assert MEDIAN.sign_test(this, 0.2, 0) == pytest.approx(2**-8)
    assert MEDIAN.sign_test(this, 0.1, 0) == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_no_places(method: Method) -> None:
    at = levels(np.zeros((0, 5)), method)
    for result in (
        at.centre,
        at.lower(0.05),
        at.upper(0.05),
        at.p_below(1),
        at.more(1, (0.05, 0.05), 0.01),
    ):
        assert not len(result)


# ---- values that count as worst


def with_holes(holes: int) -> Levels:
    """Return levels of 9 places of 16 units, about 0; the first has -inf."""
    values = np.random.default_rng(3).normal(0.3, 0.02, (9, 16))
    values[0, 3 : 3 + holes] = -inf
    return levels(values, "t", shared=False, worst=-2.0)


def test_a_place_with_a_hole_passes_by_order_statistics_only() -> None:
    at = with_holes(1)
    assert [*at.holed] == [True] + [False] * 8
    by_order = at.order.lower(at.values, 0.05)
    assert at.lower(0.05)[0] == by_order[0] > 0
    assert (at.lower(0.05)[1:] != by_order[1:]).all()
    assert with_holes(9).lower(0.05)[0] == -inf


def test_a_place_of_holes_is_convicted_as_the_worst_value() -> None:
    at = with_holes(13)
    assert at.centre[0] == pytest.approx((13 * -2 + 3 * 0.3) / 16, abs=0.02)
    assert at.p_below(0)[0] < 1e-4
    assert with_holes(1).p_below(0)[0] > 0.05
    assert (at.lower(0.05)[1:] > 0).all(), "it does not widen the others' bounds"


def test_the_least_value_of_order_statistics_is_minus_infinity() -> None:
    values = row(-inf, 1, 2, 3, 4, 5, 6)
    assert interval(values, 0.05) == (-inf, 6)
    assert MEDIAN.sign_test(values, 7, 0) == [1 / 2**7]


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
    at = levels(values, method)
    convicted, below = at.p_below(limit) <= risk, at.upper(risk) < limit
    near = np.isclose(at.p_below(limit), risk, rtol=1e-6)
    near |= np.isclose(at.upper(risk), limit, rtol=1e-9)
    assert [*(convicted | near)] == [*(below | near)]


@given(TABLES, EITHER, RISKS, RISKS)
def test_less_risk_is_a_wider_bound(
    values: Floats, method: Method, one: float, other: float
) -> None:
    less, more = sorted([one, other])
    at = levels(values, method)
    there = ~np.isnan(at.centre)
    assert (at.lower(less) <= at.lower(more))[there].all()
    assert (at.upper(less) >= at.upper(more))[there].all()
    assert (at.lower(more)[there] <= at.centre[there] + 1e-12).all()
    assert (at.upper(more)[there] >= at.centre[there] - 1e-12).all()


@given(TABLES, EITHER, RISKS, st.floats(0.1, 10), st.floats(-100, 100))
def test_bounds_move_with_the_values(
    values: Floats, method: Method, risk: float, scale: float, shift: float
) -> None:
    values = np.rint(values)
    this = levels(values, method, floor=0.1)
    moved = levels(scale * values + shift, method, floor=0.1 * scale)
    for one, other in (
        (this.lower(risk), moved.lower(risk)),
        (this.upper(risk), moved.upper(risk)),
    ):
        assert other == pytest.approx(
            scale * one + shift, rel=1e-5, abs=1e-5, nan_ok=True
        )


# ---- risks, by simulation: how often a bound misses the true level

MACHINES, RISK = 500, 0.05


QUICK = {(1, 6, 0.5, 0.0), (4, 6, 0.5, 1.0), (16, 12, 0.0, 1.0)}


@pytest.mark.parametrize(
    ("places", "n", "rho", "shared"),
    [
        pytest.param(*each, marks=[] if each in QUICK else pytest.mark.slow)
        for rho, shared in product((0.0, 0.5), (0.0, 1.0))
        for each in ((1, 6, rho, shared), (4, 6, rho, shared), (16, 12, rho, shared))
    ],
)
def test_t_misses_no_more_often_than_its_risk(
    places: int, n: int, rho: float, shared: float
) -> None:
    """One place of each machine counts, whose level is 0."""
    rng = np.random.default_rng(places + n)
    misses = np.zeros(3)
    for _ in range(MACHINES):
        values = autoregressive(rng, (places, n), rho)
        values = values + shared * autoregressive(rng, (1, n), rho)
        at = levels(values, "t")
        lower, upper = at.lower(RISK)[0], at.upper(RISK)[0]
        misses += [lower > 0, upper < 0, at.p_below(0)[0] <= RISK]
    for count in misses.astype(int).tolist():
        above = stats.binomtest(count, MACHINES, RISK, alternative="greater").pvalue
        assert above > 1e-3, f"{count} of {MACHINES}"


def test_t_of_many_independent_places_spends_most_of_its_risk() -> None:
    rng = np.random.default_rng(8)
    values = [rng.normal(0, 1, (64, 12)) for _ in range(60)]
    misses = np.mean([levels(one, "t").lower(RISK) > 0 for one in values])
    assert 0.5 * RISK < misses < 1.3 * RISK


@pytest.mark.parametrize("draw", [normal, heavy_tail, exponential, bimodal, coarse])
@pytest.mark.parametrize(("n", "risk"), [(6, 0.05), (8, 0.05), (20, 0.01)])
def test_order_misses_no_more_often_than_its_risk(
    draw: Draw, n: int, risk: float
) -> None:
    places = 20_000
    values = draw(np.random.default_rng(n), (places, n))
    error = 3 * sqrt(risk * (1 - risk) / places)
    lower, upper = MEDIAN.lower(values, risk), MEDIAN.upper(values, risk)
    least = 0.05 if draw is coarse else 0.25
    for misses in (lower > 0, upper < 0, MEDIAN.sign_test(values, 0, 0) <= risk):
        assert least * risk - error <= misses.mean() <= risk + error


@pytest.mark.parametrize("n", [8, 12, 20])
def test_order_of_correlated_units_misses_no_more_often(n: int) -> None:
    values = autoregressive(np.random.default_rng(n), (20_000, n), 0.5)
    error = 3 * sqrt(RISK * (1 - RISK) / len(values))
    for draw in (values, np.exp(2 * values) - 1):
        assert np.mean(Order(0.5, 0.5).lower(draw, RISK) > 0) <= RISK + error
        assert np.mean(Order(0.5, 0.5).upper(draw, RISK) < 0) <= RISK + error
    assert np.mean(MEDIAN.lower(values, RISK) > 0) > RISK + error, "it matters"


@pytest.mark.parametrize("method", METHODS)
def test_place_that_is_clearly_below_is_seen(method: Method) -> None:
    values = np.random.default_rng(5).normal(9, 0.5, (1000, 10))
    at = levels(values, method)
    assert (at.p_below(10) < 0.05).mean() > 0.95
    assert (at.lower(0.05) < 10).all()


# ---- further units


@pytest.mark.parametrize(
    ("values", "limit", "expected"),
    [
        ((9, 10, 11, 12, 13), 9.4, 0),  # passes
        ((9, 10, 11, 12, 13), 12.6, 0),  # is below
        ((9, 10, 11, 12, 13), 10, 12 - 5),  # half width 1.507: 5 * 1.507^2 = 11.4
        ((9, 10, 11, 12, 13), 12, 12 - 5),
        ((9, 10, 11, 12, 13), 11, -1),  # 5 * (1.507 / 0.1045)^2 = 1040
        ((9,), 10, 2),
        ((nan, nan), 3.5, 3),
    ],
)
def test_further_units_by_t(
    values: tuple[float, ...], limit: float, expected: int
) -> None:
    assert by_t(row(*values)).more(limit, (0.05, 0.05), 0.1045) == [expected]


@pytest.mark.parametrize(
    ("values", "limit", "expected"),
    [
        ((1, 2, 3, 4, 5), 0.5, 0),
        ((1, 2, 3, 4, 5), 5.5, 0),
        ((1, 2, 3, 4), 0.5, 1),
        ((1, 2, 3, 4), 4.5, 1),
        ((1, 2, 3, 4, 5), 1.5, 13 - 5),
        ((1, 2, 3, 4, 5, 6), 3.5, -1),
    ],
)
def test_further_units_by_order(
    values: tuple[float, ...], limit: float, expected: int
) -> None:
    this = row(*values)
    n = np.sum(~np.isnan(this), axis=1)
    at = Levels(
        this,
        this,
        n,
        quantiles(this, 0.5),
        unknown(1),
        np.array([False]),
        ordered=True,
        order=MEDIAN,
        own_part=0.0,
    )
    assert at.more(limit, (0.05, 0.05), 0.1045) == [expected]


@pytest.mark.parametrize("method", METHODS)
def test_each_side_has_its_own_risk(method: Method) -> None:
    values = row(-1, 2, 3, 4, 5, -1.5)
    risks = (0.2, 0.05, 0.01, 1e-5)
    up, down = levels(values, method), levels(-values, method)
    further = [up.more(0, (risk, 0.5), 0.0).item() for risk in risks]
    assert [each for each in further if each > 0] == sorted(
        {each for each in further if each > 0}
    )
    assert [down.more(0, (0.5, risk), 0.0).item() for risk in risks] == further


def test_nothing_is_asked_of_a_level_that_is_known_to_be_near_the_limit() -> None:
    near = row(*np.tile([9.9, 10.1], 10))
    for method in METHODS:
        at = levels(near, method, floor=0.0)
        known_to = (at.upper(0.05).item() - at.lower(0.05).item()) / 2
        assert at.more(10, (0.05, 0.05), 1.01 * known_to) == 0
        assert at.more(10, (0.05, 0.05), 0.99 * known_to) != 0
        assert at.more(10, (0.05, 0.05), 1e-6) == -1


# ---- speed


@pytest.mark.parametrize("method", METHODS)
def test_places_are_not_gone_through_one_by_one(method: Method) -> None:
    values = np.random.default_rng(15).normal(0, 1, (20_000, 20))
    begin = time.process_time()
    at = levels(values, method)
    at.upper(0.05), at.p_below(0), at.more(0, (0.05, 0.05), 0.1)
    all_of_them = time.process_time() - begin
    begin = time.process_time()
    for place in values[:500]:
        levels(place[np.newaxis], method).p_below(0)
    assert all_of_them < (time.process_time() - begin) * 40
