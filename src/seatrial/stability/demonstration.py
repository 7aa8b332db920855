"""Demonstration tests of reliability, at declared risks.

A machine that has the accepted quality fails at most with the seller's (producer's)
risk, one that has the rejected quality passes at most with the buyer's (consumer's)
risk. Between both lies what the test cannot tell. `MtbfTest` assumes that failures are
a Poisson process: exponential times between them (fixed-duration plans of
MIL-HDBK-781A and IEC 61124, by the chi-square distribution). `IntervalTest` assumes no
distribution of lives: an interval is good or bad, independently of others (binomial
test; without a bad one it is the success-run test).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, inf
from typing import NamedTuple

from seatrial.model.units import rounded

MOST_FAILURES = 1_000
"""Most failures of a test; one that needs more cannot separate its qualities."""

_ROUNDING = 1e-9
_MOST_INTERVALS = 20_000
_BELOW, _ABOVE, _STEPS = 4.0, 4.0, 24


class Numbers(NamedTuple):
    """Decision numbers: the most failures that pass, the fewest that fail.

    `passes` is -1 if no number passes. A number between both decides nothing.
    """

    passes: int
    fails: int

    @property
    def decides(self) -> bool:
        """Return True if every number of failures has a verdict."""
        return self.fails == self.passes + 1


class Point(NamedTuple):
    """The chances of a machine of some quality: to pass, to fail."""

    quality: float
    passes: float
    fails: float


class Decision(NamedTuple):
    """The verdict of a test: pass, fail or undecided, with the reason.

    `counted` are the failures, or the bad intervals.
    """

    verdict: str
    reason: str
    counted: int


@dataclass(frozen=True)
class MtbfTest:
    """A fixed-duration test of the mean time between failures, in hours.

    `accepted` (m0) is that of a machine to accept, `rejected` (m1) that of one to
    reject. With `per_node` both are of a node, and each hour counts for all `nodes`.
    """

    accepted: float
    rejected: float
    seller: float
    buyer: float
    nodes: float = 1.0

    def numbers(self, hours: float) -> Numbers:
        """Return the decision numbers for these hours."""
        return _of_failures(self, hours)

    def _numbers(self, hours: float) -> Numbers:
        from scipy.stats import poisson

        good, bad = (hours * self.nodes / m for m in (self.accepted, self.rejected))
        # Largest number that the bad machine reaches at most at the buyer's risk.
        passes = int(poisson.ppf(self.buyer, bad)) if bad else 0
        if poisson.cdf(passes, bad) > self.buyer:
            passes -= 1
        # Smallest number that the good machine reaches at most at the seller's risk.
        fails = max(int(poisson.isf(self.seller, good)) + 1, 1)
        while fails > 1 and poisson.sf(fails - 2, good) <= self.seller:
            fails -= 1
        if fails > passes + 1:
            return Numbers(passes, fails)
        limits = range(fails - 1, passes + 1)
        limit = min(
            limits,
            key=lambda c: max(
                poisson.sf(c, good) / self.seller, poisson.cdf(c, bad) / self.buyer
            ),
        )
        return Numbers(limit, limit + 1)

    def decide(self, times: Sequence[float], hours: float) -> Decision:
        """Decide by the number of failures."""
        numbers, count = self.numbers(hours), len(times)
        bounds = self.bounds(count, hours)
        failures = f"{count} failure{'s' * (count != 1)}"
        seen = f"{failures} in {rounded(hours)} h{self._nodes}; MTBF {bounds}"
        if count >= numbers.fails:
            reason = f"{seen}; {numbers.fails} or more fail"
            return Decision("fail", reason, count)
        if count <= numbers.passes:
            reason = f"{seen}; at most {numbers.passes} pass"
            return Decision("pass", reason, count)
        reason = f"{seen}; {self.words(hours)}; {self._needs()}"
        return Decision("undecided", reason, count)

    def bounds(self, count: int, hours: float) -> str:
        """Describe the confidence bounds of the MTBF, one-sided at both risks."""
        low, high = self.interval(count, hours)
        above = f", below {rounded(high)} h" if high < inf else ""
        return f"above {rounded(low)} h{above}"

    def interval(self, count: int, hours: float) -> tuple[float, float]:
        """Return the exact bounds of the MTBF in hours, each one-sided."""
        from scipy.stats import chi2

        total = 2 * hours * self.nodes
        low = total / chi2.isf(self.buyer, 2 * count + 2)
        high = total / chi2.ppf(self.seller, 2 * count) if count else inf
        return float(low), float(high)

    def needed_hours(self) -> float:
        """Return the shortest time with a number that keeps both risks."""
        from scipy.stats import chi2

        for limit in range(MOST_FAILURES):
            least = self.rejected * chi2.isf(self.buyer, 2 * limit + 2) / 2
            least *= 1 + _ROUNDING
            if least <= self.accepted * chi2.ppf(self.seller, 2 * limit + 2) / 2:
                return float(least) / self.nodes
        return inf

    def curve(self, hours: float) -> list[Point]:
        """Return the chances by the true MTBF."""
        from scipy.stats import poisson

        numbers = self.numbers(hours)
        points = []
        for mtbf in qualities(self.rejected, self.accepted):
            mean = hours * self.nodes / mtbf
            passes = float(poisson.cdf(numbers.passes, mean))
            fails = float(poisson.sf(numbers.fails - 1, mean))
            points.append(Point(mtbf, passes, fails))
        return points

    def words(self, hours: float) -> str:
        """Describe the decision numbers."""
        return numbers_in_words(self.numbers(hours), "failures")

    @property
    def _nodes(self) -> str:
        return f" of {rounded(self.nodes)} nodes" if self.nodes != 1 else ""

    def _needs(self) -> str:
        return needs_in_words(self.needed_hours())


@dataclass(frozen=True)
class IntervalTest:
    """A binomial test of the share of intervals without a failure.

    `accepted` and `rejected` are shares of good intervals, each of `length` hours.
    """

    accepted: float
    rejected: float
    length: float
    seller: float
    buyer: float

    def numbers(self, intervals: int) -> Numbers:
        """Return the decision numbers of bad intervals."""
        return _of_intervals(self, intervals)

    def _numbers(self, intervals: int) -> Numbers:
        from scipy.stats import binom

        good, bad = 1 - self.accepted, 1 - self.rejected
        passes = int(binom.ppf(self.buyer, intervals, bad)) if intervals else -1
        if passes >= 0 and binom.cdf(passes, intervals, bad) > self.buyer:
            passes -= 1
        fails = max(int(binom.isf(self.seller, intervals, good)) + 1, 1)
        while fails > 1 and binom.sf(fails - 2, intervals, good) <= self.seller:
            fails -= 1
        if fails > passes + 1:
            return Numbers(passes, fails)
        limit = min(
            range(fails - 1, passes + 1),
            key=lambda c: max(
                binom.sf(c, intervals, good) / self.seller,
                binom.cdf(c, intervals, bad) / self.buyer,
            ),
        )
        return Numbers(limit, limit + 1)

    def decide(self, times: Sequence[float], hours: float) -> Decision:
        """Decide by the number of bad intervals; a last part of one does not count."""
        intervals = int(hours / self.length + 1e-9)
        bad = len({int(t / self.length) for t in times if t < intervals * self.length})
        numbers = self.numbers(intervals)
        seen = (
            f"{bad} of {intervals} intervals of {rounded(self.length)} h had failures"
        )
        if bad >= numbers.fails:
            return Decision("fail", f"{seen}; {numbers.fails} or more fail", bad)
        if bad <= numbers.passes:
            return Decision("pass", f"{seen}; at most {numbers.passes} pass", bad)
        reason = f"{seen}; {self.words(hours)}; {needs_in_words(self.needed_hours())}"
        return Decision("undecided", reason, bad)

    def needed_hours(self) -> float:
        """Return the shortest time with a number that keeps both risks."""
        low, high = 1, 2
        while not self.numbers(high).decides:
            low, high = high, 2 * high
            if high > _MOST_INTERVALS:
                return inf
        # Not monotonous: some larger numbers do not decide. Take the first that does.
        first = next(n for n in range(low, high + 1) if self.numbers(n).decides)
        return first * self.length

    def curve(self, hours: float) -> list[Point]:
        """Return the chances by the true share of good intervals."""
        from scipy.stats import binom

        intervals = int(hours / self.length + 1e-9)
        numbers = self.numbers(intervals)
        low = max(0.0, 1 - 2 * (1 - self.rejected))
        shares = [low + (1 - low) * step / _STEPS for step in range(_STEPS + 1)]
        return [
            Point(
                share,
                float(binom.cdf(numbers.passes, intervals, 1 - share)),
                float(binom.sf(numbers.fails - 1, intervals, 1 - share)),
            )
            for share in sorted({*shares, self.rejected, self.accepted})
        ]

    def words(self, hours: float) -> str:
        """Describe the decision numbers."""
        numbers = self.numbers(int(hours / self.length + 1e-9))
        return numbers_in_words(numbers, "bad intervals")

    def share_of(self, mtbf: float) -> float:
        """Return the share of good intervals of exponential lives of this MTBF."""
        return exp(-self.length / mtbf)


@cache
def _of_failures(test: MtbfTest, hours: float) -> Numbers:
    return test._numbers(hours)


@cache
def _of_intervals(test: IntervalTest, intervals: int) -> Numbers:
    return test._numbers(intervals)


def qualities(rejected: float, accepted: float) -> list[float]:
    """Return MTBFs for a curve: both of the test, and some below, between, above."""
    low, high = rejected / _BELOW, accepted * _ABOVE
    ratio = (high / low) ** (1 / _STEPS)
    grid = [low * ratio**step for step in range(_STEPS + 1)]
    return sorted({*grid, rejected, accepted})


def numbers_in_words(numbers: Numbers, unit: str) -> str:
    """Describe decision numbers: `at most 3 failures pass, 4 or more fail`."""
    passes = f"at most {numbers.passes} {unit} pass"
    if numbers.passes < 0:
        passes = f"no number of {unit} passes"
    return f"{passes}, {numbers.fails} or more fail"


def needs_in_words(hours: float) -> str:
    """Describe the time from which both risks are kept."""
    if hours == inf:
        return "no duration keeps both risks: accepted and rejected are too close"
    return f"both risks are kept from {rounded(hours)} h"
