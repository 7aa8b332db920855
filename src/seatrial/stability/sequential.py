"""A sequential test of the mean time between failures (Wald; IEC 61124).

The ratio of the likelihoods of both MTBFs is compared with 1/seller and the buyer's
risk, not with Wald's approximations: so both risks hold exactly at any time and for
any end (Ville's inequality), at the price of a little time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, log

import numpy as np

from seatrial.model.units import rounded
from seatrial.stability.demonstration import (
    MOST_FAILURES,
    Decision,
    MtbfTest,
    Point,
    qualities,
)

_MOST_LOOKS = 30
_SURE = 0.9
"""Chance of a verdict, at both MTBFs, from the needed time on."""


@dataclass(frozen=True)
class SequentialTest:
    """A test that may end at each moment; MTBFs in hours as in `MtbfTest`."""

    accepted: float
    rejected: float
    seller: float
    buyer: float
    nodes: float = 1.0

    @property
    def _step(self) -> float:
        """The hours that each failure moves the bounds."""
        ratio = log(self.accepted / self.rejected)
        return ratio / (1 / self.rejected - 1 / self.accepted) / self.nodes

    @property
    def passes_from(self) -> float:
        """The hours from which a phase without a failure passes."""
        slope = (1 / self.rejected - 1 / self.accepted) * self.nodes
        return -log(self.buyer) / slope

    @property
    def fails_before(self) -> float:
        """The hours, below 0, before which no failure at all would fail."""
        slope = (1 / self.rejected - 1 / self.accepted) * self.nodes
        return log(self.seller) / slope

    def decide(self, times: Sequence[float], hours: float) -> Decision:
        """Decide at the first bound that the failures reach."""
        for count, time in enumerate([*sorted(times), inf], 1):
            passes = self.passes_from + (count - 1) * self._step
            if passes <= min(time, hours):
                reason = f"{count - 1} failures until {rounded(passes)} h pass"
                return Decision("pass", reason, len(times))
            if time <= hours and time <= self.fails_before + count * self._step:
                reason = f"{count} failures until {rounded(time)} h fail"
                return Decision("fail", reason, len(times))
        next_pass = self.passes_from + len(times) * self._step
        reason = (
            f"{len(times)} failures in {rounded(hours)} h; without a further one it "
            f"passes at {rounded(next_pass)} h; {self._needs()}"
        )
        return Decision("undecided", reason, len(times))

    def interval(self, count: int, hours: float) -> tuple[float, float]:
        """Return bounds of the MTBF as of a test of fixed duration."""
        return self._fixed.interval(count, hours)

    def needed_hours(self) -> float:
        """Return the hours after which both machines have a verdict, mostly."""
        return _needed_hours(self)

    def curve(self, hours: float) -> list[Point]:
        """Return the chances by the true MTBF."""
        return [self.chances(m, hours) for m in qualities(self.rejected, self.accepted)]

    def chances(self, mtbf: float, hours: float) -> Point:
        """Return the chances of exponential lives, exactly.

        The count at each bound decides: a bound for passing is reached in time, one for
        failing by a failure before it.
        """
        moments = self._moments(hours)
        most = sum(not is_pass for _, is_pass, _ in moments) + len(moments) + 2
        alive = np.zeros(most)
        alive[0] = 1.0
        before = passed = failed = 0.0
        for time, is_pass, count in moments:
            alive = _later(alive, (time - before) * self.nodes / mtbf)
            before = time
            if is_pass:
                passed += float(alive[: count + 1].sum())
                alive[: count + 1] = 0
            else:
                failed += float(alive[count:].sum())
                alive[count:] = 0
        return Point(mtbf, passed, failed)

    def words(self, hours: float) -> str:
        """Describe the bounds."""
        return (
            f"passes from {rounded(self.passes_from)} h without a failure, "
            f"{rounded(self._step)} h later for each; until {rounded(hours)} h at most"
        )

    @property
    def _fixed(self) -> MtbfTest:
        return MtbfTest(
            self.accepted, self.rejected, self.seller, self.buyer, self.nodes
        )

    def _moments(self, hours: float) -> list[tuple[float, bool, int]]:
        """Return the bounds within these hours: time, for passing, and count."""
        moments = []
        for count in range(MOST_FAILURES):
            passes = self.passes_from + count * self._step
            fails = self.fails_before + count * self._step
            if fails > hours:
                # So many failures fail at the end; fewer stay undecided.
                moments.append((hours, False, count))
                break
            if passes <= hours:
                moments.append((passes, True, count))
            if fails > 0:
                moments.append((fails, False, count))
        return sorted(moments)

    def _needs(self) -> str:
        return f"a verdict is likely from {rounded(self.needed_hours())} h"


@cache
def _needed_hours(test: SequentialTest) -> float:
    hours = test.passes_from
    for _ in range(_MOST_LOOKS):
        good, bad = (test.chances(m, hours) for m in (test.accepted, test.rejected))
        if min(good.passes, bad.fails) >= _SURE * (1 - max(test.seller, test.buyer)):
            return hours
        hours *= 1.25
    return inf


def _later(alive: np.ndarray, mean: float) -> np.ndarray:
    """Return the chances of counts after a time in which `mean` failures come.

    Counts beyond the last one are added to it.
    """
    from scipy.stats import poisson

    more = poisson.pmf(np.arange(len(alive)), mean)
    later = np.convolve(alive, more)[: len(alive)]
    later[-1] += max(float(alive.sum() - later.sum()), 0.0)
    return later
