"""Families of hypotheses: exact values, and the declared risks by simulation."""

from math import e, log, nan, sqrt

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


# ---- looks


def spent(shares: list[float]) -> float:
    """Return the part of the last look, if more looks are allowed after it."""
    return share_of_look(shares, len(shares) + 1, 1)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([1.0], 1),
        ([0.5], log(1 + (e - 1) / 2)),
        ([0.5, 1.0], 1 - log(1 + (e - 1) / 2)),
        ([0.5, 3.0], 1 - log(1 + (e - 1) / 2)),
        ([1.0, 1.2], 0),
        ([0.5, 0.5], 0),
        ([0.5, 0.25], 0),
        ([0.0], 0),
    ],
)
def test_spent(shares: list[float], expected: float) -> None:
    assert spent(shares) == pytest.approx(expected, abs=1e-15)


def test_last_look_spends_the_rest() -> None:
    assert share_of_look([1, 2], 2, 4) == 1 - share_of_look([1], 2, 4)


def test_no_look() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        spent([])


@given(st.lists(st.floats(0, 2), min_size=1, max_size=12))
def test_looks_never_spend_more_than_the_risk(shares: list[float]) -> None:
    parts = [spent(shares[: last + 1]) for last in range(len(shares))]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(spent([max(shares)]), abs=1e-14)
    assert sum(parts) <= 1 + 1e-12


def test_equal_looks_spend_less_and_less() -> None:
    parts = [share_of_look(range(1, look + 1), 6, 5) for look in range(1, 6)]
    assert parts == sorted(parts, reverse=True)
    assert parts[0] < 2 / 5
    assert parts[-1] > 0.5 / 5
