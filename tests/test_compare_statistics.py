"""Intervals cover, winners are right: seeded bake-offs whose truth is known."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from bakeoff_samples import drawn
from scipy import stats

from seatrial.compare.pairing import Floats, Paired
from seatrial.compare.ranking import Ranking, Rules, more_repeats, ranked
from seatrial.compare.ratios import (
    Score,
    between,
    marked,
    number_differences,
    ratios_of,
    score_ratio,
    scores,
)
from seatrial.compare.records import Side
from seatrial.compare.serial import Correlation

NUMBERS = 12
WEIGHTS = np.arange(1.0, NUMBERS + 1) / np.arange(1.0, NUMBERS + 1).sum()


def bakeoffs(
    count: int,
    repeats: int,
    better: tuple[float, ...] = (1.0, 1.0),
    *,
    shared: float = 0.02,
    own: float = 0.02,
) -> Iterator[Paired]:
    """Draw times of sides that are so much better than 1, with luck that is shared."""
    generator = np.random.default_rng(7)
    for _ in range(count):
        sides: list[Floats] = []
        for factor in better:
            luck = shared * generator.standard_normal((1, repeats))
            noise = own * generator.standard_normal((NUMBERS, repeats))
            sides.append(luck + noise - math.log(factor))
        yield drawn(sides)


def naive(numbers: Paired) -> tuple[float, float]:
    """Return the difference and its standard error as if numbers were independent."""
    first, second = scores(numbers, WEIGHTS, 0.0)
    variances = np.stack([x.var(axis=1, ddof=1) for x in numbers.repeats], axis=1)
    own = WEIGHTS[:, None] ** 2 * variances / numbers.counts
    return second.value - first.value, math.sqrt(float(own.sum()))


@pytest.mark.parametrize("repeats", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_intervals_of_the_whole_score_cover(repeats: int) -> None:
    covered = ignored = 0
    count = 2000
    for numbers in bakeoffs(count, repeats, (1.0, 1.1)):
        first, second = scores(numbers, WEIGHTS, 0.0)
        ratio = score_ratio(between(second, first), 0.95)
        assert ratio.lower is not None
        assert ratio.upper is not None
        covered += ratio.lower <= 1.1 <= ratio.upper
        value, error = naive(numbers)
        ignored += abs(value - math.log(1.1)) <= 1.96 * error
    assert 0.93 <= covered / count <= 0.975
    assert ignored / count < 0.7


def test_score_is_the_mean_of_the_repeats() -> None:
    """With every number in every repeat, it is a t interval of per-repeat scores."""
    (numbers,) = bakeoffs(1, 5)
    for score, repeats in zip(
        scores(numbers, WEIGHTS, 0.0), numbers.repeats, strict=True
    ):
        each = -(WEIGHTS @ repeats)
        assert score.value == pytest.approx(each.mean())
        assert score.variance == pytest.approx(each.var(ddof=1) / 5)
        assert score.freedom == 4


def test_number_in_one_repeat_only_leaves_the_scatter_unknown() -> None:
    (numbers,) = bakeoffs(1, 4)
    numbers.repeats[1][3, 1:] = np.nan
    first, second = scores(numbers, WEIGHTS, 0.0)
    assert first.influences is not None
    assert second.influences is None
    assert score_ratio(between(second, first), 0.95).lower is None


def test_number_in_some_repeats_widens_and_never_narrows() -> None:
    (numbers,) = bakeoffs(1, 6)
    whole = scores(numbers, WEIGHTS, 0.0)[0]
    numbers.repeats[0][NUMBERS - 1, 2:] = np.nan
    some = scores(numbers, WEIGHTS, 0.0)[0]
    assert some.freedom == 1
    assert whole.freedom == 5
    single = drawn([numbers.repeats[0][-1:, :2], numbers.repeats[1][-1:, :2]])
    alone = scores(single, np.ones(1), 0.0)[0]
    assert some.variance > WEIGHTS[-1] ** 2 * alone.variance / 2


def test_interval_of_a_number_is_welch() -> None:
    generator = np.random.default_rng(3)
    one, other = generator.normal(3, 0.1, 5), generator.normal(2.9, 0.2, 4)
    padded = np.append(other, np.nan)
    numbers = drawn([one[None], padded[None]])
    found = ratios_of(number_differences(numbers, 0.0), 0.95)[0]
    expected = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert found[0] is None
    assert found[1] is not None
    assert found[1].value == pytest.approx(math.exp(one.mean() - other.mean()))
    assert found[1].lower == pytest.approx(math.exp(expected.low))
    assert found[1].upper == pytest.approx(math.exp(expected.high))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1.0, 1.1, 1.2], [1.0, np.nan, np.nan]),
        ([1.0, np.nan, np.nan], [1.0, 1.1, 1.2]),
        ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]),
    ],
    ids=["other alone", "baseline alone", "no scatter"],
)
def test_number_without_known_scatter_has_no_interval(
    one: list[float], other: list[float]
) -> None:
    numbers = drawn([np.array([one]), np.array([other])])
    differences = number_differences(numbers, 0.0)
    found = ratios_of(differences, 0.95)[0][1]
    assert found is not None
    assert (found.lower, found.upper) == (None, None)
    assert not marked(differences).any()


def test_marks_hold_their_rate() -> None:
    """Of equal numbers hardly ever one is marked; of different ones most are."""
    false = sum(
        bool(marked(number_differences(numbers, 0.0)).any())
        for numbers in bakeoffs(500, 6, shared=0.0)
    )
    assert false / 500 <= 0.07
    found = [
        marked(number_differences(numbers, 0.0))[:, 1].mean()
        for numbers in bakeoffs(50, 6, (1.0, 1.1), shared=0.0)
    ]
    assert np.mean(found) > 0.95


# ---- the ranking


def rules(margin: float = 0.0, resamples: int = 300, rho: float = 0.0) -> Rules:
    return Rules("performance", margin, 0.95, resamples, 1, Correlation(rho))


def side(name: str, **more: Any) -> Side:
    return Side(name, name, name, "c", "", "", 6, 4, **more)


def rank(numbers: Paired, rules: Rules) -> Ranking:
    sides = [side(f"s{at}") for at in range(numbers.means.shape[1])]
    none = [""] * len(sides)
    rated = scores(numbers, WEIGHTS, rules.correlation.used)
    return ranked(sides, rated, rules, bars=none, lacking=none, against=())


@pytest.mark.parametrize(
    ("repeats", "sides"),
    [
        (3, 2),
        pytest.param(6, 2, marks=pytest.mark.slow),
        pytest.param(4, 3, marks=pytest.mark.slow),
    ],
)
def test_equal_systems_hardly_ever_win(repeats: int, sides: int) -> None:
    """Even without any margin; with one, next to never."""
    count = 600
    won = sum(
        rank(numbers, rules()).winner is not None
        for numbers in bakeoffs(count, repeats, (1.0,) * sides)
    )
    assert won / count <= 0.06
    won = sum(
        rank(numbers, rules(margin=0.05)).winner is not None
        for numbers in bakeoffs(200, repeats, (1.0,) * sides)
    )
    assert won / 200 <= 0.02


@pytest.mark.parametrize("better", [(1.0, 1.1), (1.1, 1.0), (1.0, 1.0, 1.1)])
def test_much_better_system_wins(better: tuple[float, ...]) -> None:
    winners = [
        rank(numbers, rules(0.02)).winner for numbers in bakeoffs(200, 6, better)
    ]
    assert winners.count(f"s{better.index(1.1)}") >= 198


def test_no_winner_if_the_first_two_are_equal() -> None:
    winners = [
        rank(numbers, rules()).winner for numbers in bakeoffs(300, 6, (1.0, 1.2, 1.2))
    ]
    assert winners.count(None) >= 0.94 * 300
    assert "s0" not in winners


def test_selection_is_shared_between_equals() -> None:
    zero = Score(0.0, np.zeros(3), 2)
    found = ranked(
        [side("a"), side("b")],
        [zero, zero],
        rules(),
        bars=["", ""],
        lacking=["", ""],
        against=(),
    )
    assert [each.selected for each in found.ranking] == [0.5, 0.5]
    assert [each.rank for each in found.ranking] == [1, 1]
    assert found.winner is None


def test_resampling_is_as_wide_as_the_variance() -> None:
    """The better comes first as often as its distance in standard errors says."""
    (numbers,) = bakeoffs(1, 6, (1.0, 1.01))
    found = rank(numbers, rules(resamples=20_000))
    first, second = scores(numbers, WEIGHTS, 0.0)
    z = (second.value - first.value) / math.sqrt(first.variance + second.variance)
    by_name = {each.side: each.selected for each in found.ranking}
    assert by_name["s1"] == pytest.approx(stats.norm.cdf(z), abs=0.03)


def test_more_repeats_would_do() -> None:
    """With as many more as it says, four of five bake-offs separate the two."""
    influences = np.array([0.02, -0.02, 0.0]) / 3 * math.sqrt(3 / 2)
    one, other = Score(0.04, influences, 2), Score(0.0, influences, 2)
    more = more_repeats(one, other, 0.95, rules())
    assert more is not None
    assert 1 <= more <= 20
    spread = math.sqrt(one.variance * 3)
    repeats = 3 + more
    generator = np.random.default_rng(1)
    separated = 0
    for _ in range(1000):
        a, b = 0.04 + spread * generator.standard_normal((2, repeats))
        b -= 0.04
        low = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95).low
        separated += low > 0
    assert 0.75 <= separated / 1000 <= 0.95


@pytest.mark.parametrize(
    ("gap", "margin"), [(1e-6, 0.0), (0.01, 0.02), (1.0, 0.0), (0.0, 0.0)]
)
def test_more_repeats_are_not_promised(gap: float, margin: float) -> None:
    """Not where they are hopeless, nor where nothing is missing."""
    influences = np.array([0.01, -0.01, 0.0])
    one, other = Score(gap, influences, 2), Score(0.0, influences, 2)
    assert more_repeats(one, other, 0.95, rules(margin)) is None
