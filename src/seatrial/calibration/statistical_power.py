"""Statistical power: slowdowns that allocations detect, levels that pass.

Distances and spreads are on the additive scale of a criterion; the spread is that of
one place from allocation to allocation, taken as known: a plan, no promise. Values are
taken for normal, also where the method takes nothing for granted.
"""

from collections.abc import Callable
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


@dataclass(frozen=True)
class Trial:
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

    def power(self, units: int, below: float) -> float:
        """Return the chance to convict a level at this distance below the limit."""
        if self.alone:
            return clears(self.method, units, below / self.spread, self.risk)
        first = screening(units)
        # The median of three or more scatters more than their mean.
        wider = sqrt(np.pi / 2) if self.method == "order" and first > 2 else 1.0
        noise = wider * self.spread / sqrt(first)
        suspected = float(scipy.special.ndtr((below + self.width) / noise))
        fresh = clears(self.method, units - first, below / self.spread, self.risk)
        return suspected * fresh

    def smallest(self, units: int, power: float) -> float:
        """Return the distance below the limit that convicts; inf: none does."""
        return _smallest(lambda below: self.power(units, below), power, self.spread)

    def repeats(self, below: float, power: float) -> int | None:
        """Return the allocations that convict a level at a distance; None: too many."""
        return _fewest(lambda units: self.power(units, below), power)


@dataclass(frozen=True)
class Passing:
    """How `places` pass together, each at the buyer's `risk`."""

    method: Method
    spread: float
    risk: float
    places: int = 1

    def power(self, units: int, above: float) -> float:
        """Return the chance that all pass, each at this distance above the limit."""
        each = clears(self.method, units, above / self.spread, self.risk)
        return float(each**self.places)

    def smallest(self, units: int, power: float) -> float:
        """Return the distance above the limit at which all pass; inf: none."""
        return _smallest(lambda above: self.power(units, above), power, self.spread)

    def repeats(self, above: float, power: float) -> int | None:
        """Return the allocations after which all pass; None: too many."""
        return _fewest(lambda units: self.power(units, above), power)


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


def _smallest(chance: Callable[[float], float], power: float, spread: float) -> float:
    """Find the smallest distance with this chance, which grows with the distance."""
    if chance(_FURTHEST * spread) < power:
        return inf
    if chance(0.0) >= power:
        return 0.0
    root: float = scipy.optimize.brentq(
        lambda distance: chance(distance * spread) - power, 0.0, _FURTHEST, xtol=1e-4
    )
    return root * spread


def _fewest(chance: Callable[[int], float], power: float) -> int | None:
    """Find the fewest units with this chance.

    It grows with the units, but not in every step: order statistics move in jumps.
    """
    most = 1
    while chance(most) < power:
        if most >= MOST_REPEATS:
            return None
        most = min(2 * most, MOST_REPEATS)
    return next(units for units in range(1, most + 1) if chance(units) >= power)
