"""Ratios of sides with confidence intervals, on logarithms.

**One number.** A side's value is the geometric mean over its repeats. The ratio to the
baseline is above 1 where the side is better, for any metric; its interval is
Welch's (t on the logarithms, variances of each side its own). Each interval holds by
itself: of a hundred at 95 %, five are wrong. Which of all are more than chance is told
by `marks`: Benjamini and Hochberg, 5 %.

**Groups and the whole.** The score of side s is the weighted mean of logarithms,
S = sum_c w_c m_c, where m_c is the mean over repeats of x_cr, the mean of number c over
the allocations of repeat r, signed so that more is better. What is sampled is the
repeat: all that was measured in one shares its luck (the day, the neighbours, the
temperature), so numbers are not independent and must not be counted as such. With n_c
repeats that have c, the influence of a repeat is

    D_r = sum_c w_c u_cr sqrt(v_c / (n_c - 1))

with the whitened deviations u and the variance v of a mean of n_c repeats, both of the
module `serial`, and the variance of S is sum_r D_r^2. If repeats are independent, u_cr
is x_cr - m_c and v_c is 1 / n_c. If each repeat has all numbers, this is the variance
of a mean of per-repeat scores. Its degrees of freedom are the least n_c - 1; two sides
come together by Welch and Satterthwaite. If a number was measured in one repeat only,
the variance is unknown, and so is any interval.

Assumed: repeats of a side are alike (no drift) and resemble their neighbours no more
than `serial` allows for, those of different sides are independent, and their scores are
near enough to normal on logarithms. Two
environments of one run share its repeats; their interval is then too wide where luck is
shared, which is the safe side.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from seatrial.compare.pairing import Floats, Paired
from seatrial.compare.records import Ratio
from seatrial.compare.serial import (
    Correlation,
    correlation,
    innovations,
)
from seatrial.judge.multiple_testing import Flags, discoveries
from seatrial.judge.serial import mean_variance

FALSE_DISCOVERIES = 0.05
"""Expected share of wrong ones among the numbers that are marked."""


@dataclass(frozen=True)
class Difference:
    """Differences of logarithms with standard errors; NaN where unknown."""

    value: Floats
    error: Floats
    freedom: Floats

    def half_width(self, confidence: float) -> Floats:
        """Return half the width of the two-sided intervals."""
        factor = scipy.special.stdtrit(self.freedom, (1 + confidence) / 2)
        return np.asarray(factor * self.error)

    def p(self) -> Floats:
        """Return the two-sided p of 'there is no difference'."""
        return np.asarray(
            2 * scipy.stats.t.sf(np.abs(self.value) / self.error, self.freedom)
        )


def number_differences(numbers: Paired, rho: float) -> Difference:
    """Compare each number of each side with the baseline's, (numbers, sides).

    `rho` is the correlation of successive repeats.
    """
    signs = numbers.signs[:, None]
    value = signs * (numbers.means - numbers.means[:, :1])
    n = np.stack([np.sum(~np.isnan(x), axis=1) for x in numbers.repeats], axis=1)
    squares = [np.sum(innovations(x, rho) ** 2, axis=1) for x in numbers.repeats]
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.stack(squares, axis=1) / (n - 1) * mean_variance(n, rho)
        total = own + own[:, :1]
        freedom = total**2 / (own**2 / (n - 1) + own[:, :1] ** 2 / (n[:, :1] - 1))
    error = np.sqrt(np.where(total > 0, total, np.nan))
    return Difference(value, error, np.where(total > 0, freedom, np.nan))


def ratios_of(differences: Difference, confidence: float) -> list[list[Ratio | None]]:
    """Write differences as ratios, [number][side]; None of the baseline."""
    value, half = differences.value, differences.half_width(confidence)
    with np.errstate(over="ignore"):
        ends = (value, value - half, value + half)
        columns = [np.exp(logs).tolist() for logs in ends]
    return [
        [
            None if side == 0 else _ratio(value, lower, upper)
            for side, (value, lower, upper) in enumerate(zip(*row, strict=True))
        ]
        for row in zip(*columns, strict=True)
    ]


def _ratio(value: float, lower: float, upper: float) -> Ratio | None:
    if math.isnan(value):
        return None
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return Ratio(value)
    return Ratio(value, lower, upper)


def marked(differences: Difference) -> Flags:
    """Pick what is more than chance over all numbers and sides, (numbers, sides)."""
    p = differences.p()
    p[:, 0] = np.nan
    known = ~np.isnan(p)
    flags = np.zeros(p.shape, dtype=bool)
    if known.any():
        flags[known] = discoveries(p[known], FALSE_DISCOVERIES)
    return flags


@dataclass(frozen=True)
class Score:
    """A weighted mean of logarithms, more is better; see the module.

    `influences` (repeats,) are None if the scatter is unknown.
    """

    value: float
    influences: Floats | None
    freedom: int

    @property
    def variance(self) -> float:
        """Return the variance of the value; NaN if unknown."""
        if self.influences is None:
            return math.nan
        return float(np.sum(self.influences**2))

    @property
    def repeats(self) -> int:
        """Count the repeats that are known to scatter."""
        return 0 if self.influences is None else len(self.influences)


def scores(numbers: Paired, weights: Floats, rho: float) -> list[Score]:
    """Score every side by weights (numbers,); those above 0 are on all sides.

    `rho` is the correlation of successive repeats.
    """
    used = np.flatnonzero(weights > 0)
    factors = weights[used] * numbers.signs[used]
    results = []
    for side, repeats in enumerate(numbers.repeats):
        x = repeats[used]
        measured = ~np.isnan(x)
        n = measured.sum(axis=1)
        fewest = int(n.min()) if len(n) else 0
        middle = numbers.means[used, side]
        if fewest > 0:
            middle = np.nansum(x, axis=1) / n
        influences = None
        if fewest > 1:
            scale = np.sqrt(mean_variance(n, rho) / (n - 1))
            influences = (factors * scale) @ innovations(x, rho)
        results.append(Score(float(factors @ middle), influences, max(fewest - 1, 0)))
    return results


def serial_correlation(numbers: Paired, weights: Floats) -> Correlation:
    """Estimate the correlation of successive repeats from what has a weight.

    Of the single numbers and the whole scores: the larger one counts. Noise of single
    numbers hides a correlation that their mean has; a mean may hide theirs.
    """
    used = np.flatnonzero(weights > 0)
    factors = weights[used] * numbers.signs[used]
    single = [repeats[used] for repeats in numbers.repeats]
    whole = [factors @ x[:, ~np.isnan(x).any(axis=0)] for x in single]
    estimates = (correlation([x[None] for x in whole]), correlation(single))
    return max(estimates, key=lambda each: each.used)


def between(side: Score, other: Score) -> Difference:
    """Compare two scores, by Welch and Satterthwaite."""
    own, its = side.variance, other.variance
    total = own + its
    value = side.value - other.value
    if not total > 0:  # NaN, or no scatter at all
        return Difference(*map(np.array, (value, math.nan, math.nan)))
    freedom = total**2 / (own**2 / side.freedom + its**2 / other.freedom)
    return Difference(*map(np.array, (value, math.sqrt(total), freedom)))


def score_ratio(difference: Difference, confidence: float) -> Ratio:
    """Write a difference of scores as a ratio."""
    value, half = float(difference.value), float(difference.half_width(confidence))
    with np.errstate(over="ignore"):
        lower, upper = np.exp([value - half, value + half]).tolist()
    ratio = _ratio(math.exp(value), lower, upper)
    assert ratio is not None
    return ratio
