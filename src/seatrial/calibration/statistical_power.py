"""Statistical power: slowdowns that allocations detect, levels that pass.

Distances and spreads are on the additive scale of a criterion; the spread is that of
one place from allocation to allocation, taken as known: a plan, no promise. Values are
taken for normal and independent, also where the method takes nothing for granted. The
bounds allow for the correlation that so many values cannot exclude, as the judge does.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from seatrial.criteria.methods import T_SMALLEST_N, Method
from seatrial.judge import serial
from seatrial.judge.scatter import FREEDOM_FOR_SHAPE, SCATTER_FLOOR
from seatrial.judge.screening import screening

MOST_REPEATS = 1000
"""More are never planned."""

_FURTHEST = 1e4
"""Distances in standard deviations beyond this are as good as infinite."""

_LUCKS: list[float] = scipy.special.ndtri((np.arange(5) + 0.5) / 5).tolist()
"""Errors of an estimate, in standard errors, all equally likely."""

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
    """The trial of one place.

    `risk` is what convicting it may cost; `places` like it show the scatter. Of order
    statistics, the first allocations suspect a level that is less than `width` above
    the limit. It is 0, but for sameness, where a slow place is taken to rank low. A
    place that is `alone` on its machine needs no suspicion.
    """

    method: Method
    spread: float
    risk: float
    width: float = 0.0
    alone: bool = False
    places: int = 1

    def power(self, units: int, distance: float) -> float:
        """Return the chance to convict a level at this distance below the limit."""
        if self.alone or self.method == "t":
            return _clears(self, units, distance, self.places)
        first = screening(units)
        # The median of three or more scatters more than their mean.
        wider = sqrt(np.pi / 2) if first > 2 else 1.0
        noise = wider * self.spread / sqrt(first)
        suspected = float(scipy.special.ndtr((distance + self.width) / noise))
        return suspected * _clears(self, units, distance, self.places, first)


@dataclass(frozen=True)
class Passing(_Planned):
    """How `places` pass together, each at the buyer's `risk`."""

    method: Method
    spread: float
    risk: float
    places: int = 1

    def power(self, units: int, distance: float) -> float:
        """Return the chance that all pass, each at this distance above the limit."""
        return float(_clears(self, units, distance, self.places) ** self.places)


def _clears(
    how: Trial | Passing, units: int, distance: float, places: int, first: int = 0
) -> float:
    """Return the chance that the bound of a level clears the limit.

    The mean over the correlations that the judge may estimate. The `first` units have
    chosen the place, and do not count for order statistics.
    """
    chances = [
        _clears_by_t(how, units, distance, places, rho)
        if how.method == "t"
        else _clears_by_order(how, units - first, distance, rho, follows=first > 0)
        for rho in _correlations(units, places)
    ]
    return float(np.mean(chances))


def _clears_by_t(
    how: Trial | Passing, units: int, distance: float, places: int, rho: float
) -> float:
    """Return the mean over the distribution of s of P(mean > limit + t s sqrt(k / n)).

    k allows for correlation, and so does s: it widens the scatter of independent
    values.
    """
    if units < T_SMALLEST_N:
        return 0.0
    freedom = (units - 1) * max(places - 1, 1)
    width = np.sqrt(serial.inflation(np.array(units), rho) / units)
    half = scipy.special.stdtrit(freedom, 1 - how.risk) * _scales(freedom)
    half = half * sqrt(widened(units, rho))
    if freedom < FREEDOM_FOR_SHAPE:
        floor = -scipy.special.ndtri(how.risk) * SCATTER_FLOOR / how.spread
        half = np.maximum(half, floor)
    away = distance / how.spread - half * width
    return float(np.mean(scipy.special.ndtr(away * sqrt(units))))


def _clears_by_order(
    how: Trial | Passing, units: int, distance: float, rho: float, *, follows: bool
) -> float:
    """Return the binomial probability that few enough values lie beyond the limit."""
    size = serial.MOST_EXACT if units <= serial.MOST_EXACT else MOST_REPEATS
    counts = serial.at_most(size, rho, 0.5, follows=follows)[units, : units + 1]
    most = int(np.sum(counts <= how.risk)) - 1
    beyond = scipy.special.ndtr(-distance / how.spread)
    return float(scipy.special.bdtr(most, units, beyond)) if most >= 0 else 0.0


@lru_cache(maxsize=8192)
def _correlations(units: int, places: int) -> tuple[float, ...]:
    """Return correlations that the judge allows for, equally likely ones.

    Values are independent, but it knows that by its estimate only.
    """
    if units < 3:
        return (serial.ASSUMED,)
    expected = serial.expected_ratio(units)
    slope = np.interp(0.0, serial.GRID, np.gradient(expected, serial.GRID))
    error = float(1 / (slope * sqrt(max(places - 1, 1) * (units - 1))))
    used = [serial.Correlation(luck * error, error).used for luck in _LUCKS]
    return tuple(used)


def widened(units: int, rho: float) -> float:
    """Return what `serial.variances` of independent values are on average.

    By the trace of the matrix of its quadratic form.
    """
    inner = units - 2
    squares = (2 + inner * (1 + rho**2)) / (1 - rho**2)
    means = (2 + inner * (1 - rho) ** 2) / ((1 + rho) * (2 + inner * (1 - rho)))
    return (squares - means) / (units - 1)


@lru_cache(maxsize=2048)
def _scales(freedom: int) -> NDArray[np.float64]:
    """Return s / sigma with so many degrees of freedom, at even steps of its risk."""
    shares = (np.arange(_STEPS) + 0.5) / _STEPS
    return np.sqrt(scipy.special.chdtri(freedom, 1 - shares) / freedom)
