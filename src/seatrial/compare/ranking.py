"""The ranking, and the test for a winner.

The bootstrap draws repeats of each side with replacement, all numbers of a repeat
together, and counts how often each side comes first. Its deviations are the influences
of `ratios`: whitened, so that they may be drawn one by one, and with the variance of
the score. Plain resampling of three repeats would be too sure by a fifth.

There is a winner only if nothing speaks against it; see `reasons`. The lower bound of
its ratio to each other side, together at the confidence (two-sided, Bonferroni over the
other sides), must be above 1 + margin: two-sided because the side was chosen by its
score. So of systems that are equal, one is wrongly given the win in at most 1 -
confidence of all bake-offs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from seatrial.compare.pairing import Floats
from seatrial.compare.ratios import Score, between, score_ratio
from seatrial.compare.records import Ratio, Side, Standing
from seatrial.compare.serial import Correlation
from seatrial.criteria.weights import RankBy
from seatrial.errors import SeatrialError
from seatrial.judge.serial import mean_variance

MOST_REPEATS = 1000
_POWER = 0.8
"""How sure `more_repeats` is to separate two sides that differ as seen."""


@dataclass(frozen=True)
class Ranking:
    """The order of the sides and the winner; for the fields see `Comparison`."""

    ranking: tuple[Standing, ...]
    ahead: str
    winner: str | None
    why: tuple[str, ...]
    more_repeats: int | None
    lead: Ratio


@dataclass(frozen=True)
class Rules:
    """By what to rank, and what a winner must reach."""

    rank_by: RankBy
    margin: float
    confidence: float
    resamples: int
    seed: int
    correlation: Correlation


def ranked(
    sides: Sequence[Side],
    performance: Sequence[Score],
    rules: Rules,
    *,
    bars: Sequence[str],
    lacking: Sequence[str],
    against: Sequence[str],
) -> Ranking:
    """Rank sides by their scores.

    `bars` says of each side why it cannot win, `lacking` what it lacks of the numbers
    that count, '' for nothing; `against` is what speaks against any winner. What one
    side lacks speaks against any winner, too: the score is without it.
    """
    costs = np.array([_cost(side, rules.rank_by) for side in sides])
    per_cost = [
        Score(score.value - math.log(cost), score.influences, score.freedom)
        for score, cost in zip(performance, costs, strict=True)
    ]
    order = sorted(range(len(sides)), key=lambda at: (-per_cost[at].value, at))
    selected = _selected(per_cost, rules)
    first, rest = order[0], order[1:]
    standings = tuple(
        Standing(
            side=sides[at].name,
            rank=1 + sum(score.value > per_cost[at].value for score in per_cost),
            score=_over_first(per_cost, at, rules),
            performance=_over_first(performance, at, rules),
            selected=None if selected is None else float(selected[at]),
            excluded="; ".join(
                filter(None, [bars[at], lacking[at] and f"it {lacking[at]}"])
            ),
        )
        for at in order
    )
    lead = score_ratio(between(per_cost[first], per_cost[rest[0]]), rules.confidence)
    if all(side.published for side in sides):
        history = "these are published systems, which are history: no winner"
        return Ranking(standings, sides[first].name, None, (history,), None, lead)
    pairs = zip(sides, lacking, strict=True)
    why = [*against, *(f"{side.name} {lack}" for side, lack in pairs if lack)]
    if bars[first]:
        why.append(f"{sides[first].name} cannot win: {bars[first]}")
    level = 1 - (1 - rules.confidence) / len(rest)
    why += _not_sure(sides, per_cost, order, selected, level, rules)
    more = None
    if why and selected is not None:
        more = more_repeats(per_cost[first], per_cost[rest[0]], level, rules)
    name = sides[first].name
    return Ranking(standings, name, None if why else name, tuple(why), more, lead)


def _not_sure(
    sides: Sequence[Side],
    scores: Sequence[Score],
    order: Sequence[int],
    selected: Floats | None,
    level: float,
    rules: Rules,
) -> list[str]:
    """Return why the first side may be ahead by chance; nothing if it is not."""
    first, *rest = order
    if selected is None:
        unknown = [
            side.name
            for side, score in zip(sides, scores, strict=True)
            if score.influences is None
        ]
        names = " and ".join(unknown)
        needed = "every number that counts in at least 2 repeats"
        return [f"the scatter of {names} is unknown: that takes {needed}"]
    reasons = []
    for other in rest:
        difference = between(scores[first], scores[other])
        ahead = math.exp(float(difference.value))
        lower = score_ratio(difference, level).lower
        if lower is None:  # no scatter: the difference is exact
            lower = ahead
        if lower > 1 + rules.margin:
            continue
        surely = f"surely by no more than {100 * (lower - 1):.1f} %"
        if lower <= 1:
            surely = "that may be chance"
        reasons.append(
            f"{sides[first].name} is ahead of {sides[other].name} by "
            f"{100 * (ahead - 1):.1f} %, {surely}; a winner is ahead by more than "
            f"{100 * rules.margin:g} %"
        )
    if selected[first] < rules.confidence:
        reasons.append(
            f"{sides[first].name} comes first in {100 * selected[first]:.1f} % of "
            f"{rules.resamples:,} resamples, not in {100 * rules.confidence:g} %"
        )
    return reasons


def _over_first(scores: Sequence[Score], at: int, rules: Rules) -> Ratio:
    if at == 0:
        return Ratio(1.0)
    return score_ratio(between(scores[at], scores[0]), rules.confidence)


def _cost(side: Side, rank_by: RankBy) -> float:
    """Return the divisor of the performance: 1, price or power."""
    if rank_by == "performance":
        return 1.0
    cost = side.price if rank_by == "price" else side.power_kw
    if cost is None:
        unit = "AMOUNT" if rank_by == "price" else "KW"
        raise SeatrialError(
            f"the weights rank by {rank_by}, and that of {side.name} is unknown; say "
            f"--{rank_by} {side.name}={unit}, or leave that side out"
        )
    return cost


def _selected(scores: Sequence[Score], rules: Rules) -> Floats | None:
    """Return the share of resamples in which each side comes first; ties are shared."""
    if any(score.influences is None for score in scores):
        return None
    generator = np.random.default_rng(rules.seed)
    drawn = np.empty((rules.resamples, len(scores)))
    for at, score in enumerate(scores):
        assert score.influences is not None
        repeats = len(score.influences)
        times = generator.multinomial(
            repeats, np.full(repeats, 1 / repeats), rules.resamples
        )
        drawn[:, at] = score.value + times @ _centred(score.influences)
    best = drawn == drawn.max(axis=1, keepdims=True)
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))


def _centred(influences: Floats) -> Floats:
    """Subtract the mean, and keep the sum of squares."""
    rest = influences - influences.mean()
    left = float(np.sum(rest**2))
    scale = math.sqrt(float(np.sum(influences**2)) / left) if left > 0 else 1.0
    return np.asarray(rest * scale)


def more_repeats(first: Score, second: Score, level: float, rules: Rules) -> int | None:
    """Estimate how many more repeats of each side would separate two.

    They do with a chance of 80 % if scatter, difference and correlation stay as seen.
    None if they are separated already, if more than `MOST_REPEATS` would be needed, or
    if unknown.
    """
    apart = first.value - second.value - math.log1p(rules.margin)
    total = first.variance + second.variance
    if not (apart > 0 and total > 0):
        return None
    now = between(first, second)
    if apart > float(now.half_width(level)):
        return None
    more = np.arange(1, MOST_REPEATS + 1)
    rho = rules.correlation.used
    parts = [
        (
            score.variance
            * mean_variance(score.repeats + more, rho)
            / mean_variance(np.array(score.repeats), rho),
            score.repeats + more,
        )
        for score in (first, second)
    ]
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / (n - 1) for part, n in parts)
    needed = scipy.special.stdtrit(freedom, (1 + level) / 2)
    needed += scipy.special.stdtrit(freedom, _POWER)
    enough = np.flatnonzero(apart > needed * np.sqrt(variance))
    return int(more[enough[0]]) if len(enough) else None
