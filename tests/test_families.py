"""Families of hypotheses: exact values, and the declared risks by simulation."""

from math import nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from seatrial.judge.multiple_testing import (
    Floats,
    cauchy,
    discoveries,
    holm,
    holm_adjusted,
    inheritance,
    rank_p,
    share_of_look,
)

pytestmark = pytest.mark.filterwarnings("error")

PS = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array)


def like_each_other(
    rng: np.random.Generator, correlation: float, shape: tuple[int, int]
) -> Floats:
    """Draw standard normal values; those of a row are correlated."""
    common = rng.normal(0, 1, (shape[0], 1))
    own = rng.normal(0, 1, shape)
    return sqrt(correlation) * common + sqrt(1 - correlation) * own


def p_of(z: Floats) -> Floats:
    return np.asarray(stats.norm.cdf(z))


# ---- Holm, and Benjamini and Hochberg


def test_holm_by_hand() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005])
    assert holm_adjusted(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [*holm(p, 0.05)] == [True, False, False, True]
    assert [*discoveries(p, 0.05)] == [True, True, True, True]
    assert [*discoveries(p, 0.039)] == [True, False, False, True]


@pytest.mark.parametrize("hypotheses", [1, 2, 7, 300])
@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_same_as_statsmodels(hypotheses: int, decimals: int) -> None:
    rng = np.random.default_rng(hypotheses)
    p = np.round(rng.random(hypotheses) ** 4, decimals)
    rejected, adjusted, *_ = multipletests(p, 0.049, method="holm")
    assert holm_adjusted(p) == pytest.approx(adjusted)
    assert [*holm(p, 0.049)] == [*rejected]
    rejected, *_ = multipletests(p, 0.049, method="fdr_bh")
    assert [*discoveries(p, 0.049)] == [*rejected]


@given(PS, st.floats(0.001, 0.5))
def test_who_is_convicted_is_suspect(p: Floats, risk: float) -> None:
    rounding = 1 + 1e-9
    assert (discoveries(p, risk * rounding) >= holm(p, risk)).all()
    assert (holm(p, risk * rounding) >= (p <= risk / len(p))).all()


@pytest.mark.parametrize("pick", [holm, discoveries])
def test_none_and_unknown_hypotheses(pick: object) -> None:
    assert pick in (holm, discoveries)
    rule = holm if pick is holm else discoveries
    assert not len(rule(np.array([]), 0.05))
    assert [*rule(np.array([nan, 0.02, nan]), 0.07)] == [False, True, False]
    assert [*rule(np.array([nan, 0.02, nan]), 0.05)] == [False, False, False]
    assert [*rule(np.array([0.04]), 0.05)] == [True]


@pytest.mark.parametrize(
    ("correlation", "least"), [(0.0, 0.8), (0.5, 0.3), (0.95, 0.05)]
)
def test_holm_rarely_convicts_anyone_wrongly(correlation: float, least: float) -> None:
    rng = np.random.default_rng(1)
    tries, hypotheses, guilty, risk = 4000, 60, 5, 0.05
    z = like_each_other(rng, correlation, (tries, hypotheses))
    z[:, :guilty] -= 6
    convicted = np.array([holm(p, risk) for p in p_of(z)])
    error = 3 * sqrt(risk * (1 - risk) / tries)
    wrong = convicted[:, guilty:].any(axis=1).mean()
    assert least * risk - error <= wrong <= risk + error
    assert wrong > 0
    assert convicted[:, :guilty].mean() > 0.95


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_few_suspects_are_wrong(correlation: float) -> None:
    rng = np.random.default_rng(2)
    tries, hypotheses, guilty, risk = 4000, 60, 6, 0.1
    z = like_each_other(rng, correlation, (tries, hypotheses))
    z[:, :guilty] -= 4
    p = p_of(z)
    suspects = np.array([discoveries(row, risk) for row in p])
    wrong = suspects[:, guilty:].sum(axis=1) / np.maximum(suspects.sum(axis=1), 1)
    error = 3 * wrong.std() / sqrt(tries)
    assert 0.2 * risk <= wrong.mean() <= risk * (1 - guilty / hypotheses) + error
    convicted = np.array([holm(row, risk) for row in p])
    assert suspects[:, :guilty].mean() > convicted[:, :guilty].mean() > 0.5


# ---- the Cauchy combination


@pytest.mark.parametrize(
    ("p", "combined"),
    [
        ([0.3], 0.3),
        ([0.2, 0.2, 0.2], 0.2),
        ([0.25, 0.75], 0.5),
        ([0.01, 0.5], stats.cauchy.sf(stats.cauchy.isf(0.01) / 2)),
        ([nan, 0.3, nan], 0.3),
        ([nan, nan], 1),
        ([1e-300, 0.5], 2e-300),
        ([1e-20, 1], 2e-20),
        ([0, 1], 0),
        ([0, 0, nan], 0),
        ([1, 1], 0.99),
    ],
)
def test_cauchy(p: list[float], combined: float) -> None:
    found = cauchy(np.array([p, p[::-1]], dtype=float))
    assert found == pytest.approx([combined] * 2, rel=1e-9, abs=0)


def test_metric_with_p_of_1_does_not_clear_a_place() -> None:
    assert cauchy(np.array([[1e-4, 1.0, 1.0, 1.0]]))[0] < 5e-4


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("metrics", [2, 10])
def test_cauchy_of_metrics_that_depend_on_each_other(
    correlation: float, metrics: int
) -> None:
    rng = np.random.default_rng(3)
    places, level = 100_000, 0.01
    z = like_each_other(rng, correlation, (places, metrics))
    found = np.mean(cauchy(p_of(z)) <= level)
    error = 3 * sqrt(level * (1 - level) / places)
    assert level - error <= found <= 1.25 * level + error


# ---- ranks


def test_ranks_by_hand() -> None:
    values = np.array([[1.0, 5, nan], [2, 6, nan], [3, 6, 1], [4, 7, nan], [nan] * 3])
    shares = [[1 / 4, 1 / 4], [2 / 4, 3 / 4], [3 / 4, 3 / 4, 1.0], [1.0, 1.0]]
    expected = [stats.combine_pvalues(np.array(each)).pvalue for each in shares]
    assert rank_p(values) == pytest.approx([*expected, 1])


def test_nobody_to_rank() -> None:
    assert not len(rank_p(np.zeros((0, 4))))
    assert [*rank_p(np.zeros((2, 0)))] == [1, 1]
    assert [*rank_p(np.full((2, 3), nan))] == [1, 1]
    assert [*rank_p(np.ones((5, 3)))] == [1] * 5


@pytest.mark.parametrize("coarse", [False, True])
def test_places_that_are_alike_are_rarely_picked(coarse: bool) -> None:
    rng = np.random.default_rng(4)
    values = rng.standard_t(2, (20_000, 5)) + rng.normal(0, 9, 5)
    values = np.rint(values) if coarse else values
    values[rng.random(values.shape) < 0.1] = nan
    p = rank_p(values)
    for level in (0.001, 0.01, 0.1):
        error = 4 * sqrt(level / len(values))
        assert np.mean(p <= level) <= level + error
        assert coarse or np.mean(p <= level) >= level - error


def test_worse_place_is_picked_whatever_the_allocations_do() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(0, 1, (2000, 5)) + rng.normal(0, 50, 5)
    values[7] -= 5
    p = rank_p(values)
    assert p.argmin() == 7
    assert p[7] < 1e-9
    assert rank_p(-values)[7] > 0.99


# ---- nodes first, then their metrics


def drawn(rng: np.random.Generator, nodes: int, metrics: int, like: float) -> Floats:
    return p_of(like_each_other(rng, like, (nodes, metrics)))


def by_node(p: Floats, risk: float) -> np.ndarray:
    """Try a table (nodes, metrics); return the marks in its shape."""
    group = np.repeat(np.arange(len(p)), p.shape[1])
    marks, nodes = inheritance(p.ravel(), group, risk)
    assert nodes == np.sum(~np.isnan(p).all(axis=1))
    return marks.reshape(p.shape)


def test_inheritance_by_hand() -> None:
    """Of 3 nodes the first is tried at 0.02, the second at 0.03, with 2 metrics."""
    p = np.array([[1e-4, 0.008], [0.012, 0.5], [0.5, nan], [nan, nan]])
    assert by_node(p, 0.06).tolist() == [
        [True, True],
        [True, False],
        [False, False],
        [False, False],
    ]
    assert by_node(p, 0.02).tolist()[0] == [True, False]
    assert not by_node(p, 1e-4).any()


@given(PS, st.floats(0.001, 0.5))
def test_nodes_with_one_metric_are_tried_by_holm(p: Floats, risk: float) -> None:
    marks = by_node(p[:, np.newaxis], risk)[:, 0]
    assert (marks >= holm(p, risk * (1 - 1e-9))).all()
    assert (marks <= holm(p, risk * (1 + 1e-9))).all()


def test_no_nodes_to_try() -> None:
    for p in (np.array([]), np.array([nan, nan])):
        marks, nodes = inheritance(p, np.arange(len(p)), 0.05)
        assert not marks.any() and nodes == 0


@pytest.mark.parametrize("order", [1, 2])
def test_order_of_hypotheses_changes_nothing(order: int) -> None:
    rng = np.random.default_rng(order)
    p = rng.random(60) ** 4
    group = rng.integers(0, 12, 60)
    marks, nodes = inheritance(p, group, 0.2)
    turn = rng.permutation(60)
    turned, again = inheritance(p[turn], group[turn], 0.2)
    assert marks.any() and not marks.all()
    assert [*turned] == [*marks[turn]]
    assert nodes == again == len(np.unique(group))


@pytest.mark.parametrize("like", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("metrics", [1, 4, 20])
def test_sound_nodes_are_rarely_convicted(like: float, metrics: int) -> None:
    rng = np.random.default_rng(metrics)
    tries, risk = 1500, 0.05
    wrong = np.mean(
        [by_node(drawn(rng, 16, metrics, like), risk).any() for _ in range(tries)]
    )
    error = 3 * sqrt(risk * (1 - risk) / tries)
    assert 0.2 * risk <= wrong <= 1.35 * risk + error


def test_guilty_nodes_do_not_convict_sound_ones() -> None:
    rng = np.random.default_rng(6)
    wrong = named = 0
    for _ in range(1000):
        p = drawn(rng, 16, 4, 0.3)
        p[:3] = 1e-9
        marks = by_node(p, 0.05)
        named += int(marks[:3].any(axis=1).all())
        wrong += int(marks[3:].any())
    assert named == 1000
    assert wrong / 1000 <= 0.05 * 1.35 + 3 * sqrt(0.05 * 0.95 / 1000)


@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0.01, 0.3))
def test_more_damage_is_never_harder_to_convict(
    seed: int, damaged: int, risk: float
) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random((6, 5)) ** 3
    p[2, 0] /= 20
    convicted = by_node(p, risk).any(axis=1)
    worse = p.copy()
    worse[2, :damaged] *= rng.random(damaged)
    later = by_node(worse, risk).any(axis=1)
    assert (later >= convicted).all()


def test_damage_in_several_metrics_convicts_earlier() -> None:
    p = np.full((50, 4), 0.5)
    p[7, 0] = 0.002
    assert not by_node(p, 0.05).any()
    p[7] = 0.0009
    assert [*np.flatnonzero(by_node(p, 0.05).any(axis=1))] == [7]


# ---- looks


def test_shares_of_looks_by_hand() -> None:
    assert share_of_look(1) == pytest.approx(1 / 1.2020569, rel=1e-6)
    assert share_of_look(2) == pytest.approx(share_of_look(1) / 8)
    assert share_of_look(10) == pytest.approx(share_of_look(1) / 1000)


def test_any_number_of_looks_spends_no_more_than_the_risk() -> None:
    parts = np.array([share_of_look(number) for number in range(1, 2001)])
    assert (np.diff(parts) < 0).all()
    assert 1 - 1e-6 < parts.sum() < 1
