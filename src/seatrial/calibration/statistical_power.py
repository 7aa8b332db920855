"""Statistical power: slowdowns that allocations detect, levels that pass.

Distances and spreads are on the additive scale of a criterion; the spread is that of
one place from allocation to allocation, taken as known: a plan, no promise. Values are
taken for normal, also where the method takes nothing for granted.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from seatrial.criteria.methods import Method, smallest_n
from seatrial.judge.screening import screening

MOST_REPEATS = 1000
"""More are never planned."""

_FURTHEST = 1e4
"""Distances in standard deviations beyond this are as good as infinite."""

_STEPS = 2000
"""Points of the distribution of s in an integral: right to four digits."""


class _Planned(ABC):
    """Distances and repeats of a decision, from its power."""

    spread: float

    @abstractmethod
    def power(self, units: int, distance: float) -> float:
        """Return the chance of the decision at a distance from the limit."""

    def smallest(self, units: int, power: float) -> float:
        """Return the smallest distance with this chance; inf: none has it."""

        def chance(distance: float) -> float:
            return self.power(units, distance * self.spread) - power

        if chance(_FURTHEST) < 0:
            return inf
        if chance(0.0) >= 0:
            return 0.0
        root: float = scipy.optimize.brentq(chance, 0.0, _FURTHEST, xtol=1e-4)
        return root * self.spread

    def repeats(self, distance: float, power: float) -> int | None:
        """Return the fewest allocations with this chance; None: too many.

        It grows with them, but not in every step: order statistics move in jumps.
        """
        most = 1
        while self.power(most, distance) < power:
            if most >= MOST_REPEATS:
                return None
            most = min(2 * most, MOST_REPEATS)
        return next(
            units
            for units in range(1, most + 1)
            if self.power(units, distance) >= power
        )


@dataclass(frozen=True)
class Trial(_Planned):
    """How one place is judged.

    `risk` is what convicting it may cost. The first allocations suspect a level that is
    less than `width` above the limit: 0 but for places that are to be alike, of which a
    slow one is taken to rank low. A place that is `alone` on its machine needs no
    suspicion.
    """

    method: Method
    spread: float
    risk: float
    width: float = 0.0
    alone: bool = False

    def power(self, units: int, distance: float) -> float:
        """Return the chance to convict a level at this distance below the limit."""
        if self.alone:
            return clears(self.method, units, distance / self.spread, self.risk)
        first = screening(units)
        # The median of three or more scatters more than their mean.
        wider = sqrt(np.pi / 2) if self.method == "order" and first > 2 else 1.0
        noise = wider * self.spread / sqrt(first)
        suspected = float(scipy.special.ndtr((distance + self.width) / noise))
        fresh = clears(self.method, units - first, distance / self.spread, self.risk)
        return suspected * fresh


@dataclass(frozen=True)
class Passing(_Planned):
    """How `places` pass together, each at the buyer's `risk`."""

    method: Method
    spread: float
    risk: float
    places: int = 1

    def power(self, units: int, distance: float) -> float:
        """Return the chance that all pass, each at this distance above the limit."""
        chance = clears(self.method, units, distance / self.spread, self.risk)
        return float(chance**self.places)


def clears(method: Method, units: int, distance: float, risk: float) -> float:
    """Return the chance that the bound of a level clears the limit.

    `distance` is in standard deviations of a value. t: the mean over the distribution
    of s of P(mean > limit + t s / sqrt(n)), which is the noncentral t's probability;
    order: the binomial probability that few enough values lie beyond the limit.
    """
    if units < smallest_n(method, risk):
        return 0.0
    if method == "t":
        t = float(scipy.special.stdtrit(units - 1, 1 - risk))
        return float(
            np.mean(scipy.special.ndtr(distance * sqrt(units) - t * _scales(units)))
        )
    most = int(scipy.stats.binom.ppf(risk, units, 0.5))
    most -= int(scipy.special.bdtr(most, units, 0.5) > risk)
    return float(scipy.special.bdtr(most, units, scipy.special.ndtr(-distance)))


@lru_cache(maxsize=2048)
def _scales(units: int) -> NDArray[np.float64]:
    """Return s / sigma of n normal values at even steps of its probability."""
    shares = (np.arange(_STEPS) + 0.5) / _STEPS
    return np.sqrt(scipy.special.chdtri(units - 1, 1 - shares) / (units - 1))
