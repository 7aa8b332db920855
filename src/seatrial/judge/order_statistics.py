"""Order statistics of quantiles: bounds, the sign test, and further units.

Values have the shape (places, units), higher is better, NaN was not measured. Any
distribution will do.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from seatrial.judge import serial
from seatrial.judge.serial import Floats, Integers

MOST_FURTHER_UNITS = 1000

HALF = 0.5
"""Share of values below the median."""


def quantiles(values: Floats, below: float) -> Floats:
    """Return the level of each place: the value at its rank, or between two."""
    ordered = np.sort(values, axis=1)
    rank = np.maximum(below * (_measured(values) - 1), 0)
    low = _column(ordered, np.floor(rank).astype(np.int64))
    high = _column(ordered, np.ceil(rank).astype(np.int64))
    with np.errstate(invalid="ignore"):
        return np.where(low == high, low, (low + high) / 2)


def medians(values: Floats) -> Floats:
    """Return the median of the numbers in each row, NaN where there is none.

    np.nanmedian is several times slower: it takes masked arrays, or a loop over rows.
    """
    return quantiles(values, HALF)


def scores(values: Floats) -> Floats:
    """Return normal scores of the ranks within each place, packed."""
    ranks = scipy.stats.rankdata(values, axis=1, nan_policy="omit")
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (ranks - 0.5) / _measured(values)[:, np.newaxis]
    return serial.packed(np.asarray(scipy.special.ndtri(shares)))


@dataclass(frozen=True)
class Order:
    """The level of a place is the value that a share `below` of its values misses.

    1/2 is the median. `rho` is the correlation of successive units.
    """

    rho: float
    below: float

    def lower(self, values: Floats, risk: float) -> Floats:
        """Return lower bounds, each wrong at this risk; -inf with too few units.

        The largest value that at most j values miss, with the largest j for which so
        few misses of the level have at most the risk (Hahn and Meeker, Statistical
        Intervals, section 5.4). Equal values make it cautious.
        """
        most = _most(values.shape[1], self.rho, self.below, risk)[_measured(values)]
        return np.where(most >= 0, _column(np.sort(values, axis=1), most), -np.inf)

    def upper(self, values: Floats, risk: float) -> Floats:
        """Return upper bounds, each wrong at this risk; inf with too few units."""
        n = _measured(values)
        most = _most(values.shape[1], self.rho, 1 - self.below, risk)[n]
        bound = _column(np.sort(values, axis=1), n - 1 - most)
        return np.where(most >= 0, bound, np.inf)

    def sign_test(self, values: Floats, limit: float, first: int) -> Floats:
        """Return p of 'the level reaches the limit'; small: it is below.

        The first units chose the place, since it missed the limit there, and do not
        count. p is that of at most so many values that reach the limit (Conover,
        Practical Nonparametric Statistics, section 3.4).
        """
        fresh = values[:, first:]
        table = serial.at_most(
            fresh.shape[1], self.rho, 1 - self.below, follows=first > 0
        )
        return np.asarray(table[_measured(fresh), np.sum(fresh >= limit, axis=1)])

    def further(
        self, values: Floats, limit: float, risks: tuple[float, float]
    ) -> Floats:
        """Return how many further units probably decide, at the risks of pass and fail.

        The chance is one half, if the share of further values on the side of the limit
        that has k of the n present ones is (k + 1) / (n + 2). inf: more than 1000.
        """
        n, reach = _measured(values), np.sum(values >= limit, axis=1)
        states, place = np.unique(
            np.column_stack([n, reach]), axis=0, return_inverse=True
        )
        of_state = [
            _further(n, n - reach, self.below, risks[0], self.rho)
            if n - reach <= self.below * n
            else _further(n, reach, 1 - self.below, risks[1], self.rho)
            for n, reach in states.tolist()
        ]
        return np.array(of_state, dtype=np.float64)[place]


def fewest(order: Order, risk: float) -> int:
    """Return the fewest units for a lower bound at this risk; more than 1000: -1."""
    for units in (serial.MOST_EXACT, MOST_FURTHER_UNITS):
        bounded = _most(units, order.rho, order.below, risk) >= 0
        if bounded.any():
            return int(bounded.argmax())
    return -1


@lru_cache(maxsize=4096)
def _further(n: int, minority: int, share: float, risk: float, rho: float) -> float:
    """Return the further units that probably decide; `minority` of n are opposed."""
    more = np.arange(1, MOST_FURTHER_UNITS + 1)
    counted = np.floor((n + more) / serial.count_inflation(rho)).astype(np.int64)
    spare = np.asarray(scipy.stats.binom.ppf(risk, counted, share))
    spare = spare - (scipy.stats.binom.cdf(spare, counted, share) > risk)
    opposed = (minority + 1) / (n + 2)
    chance = np.asarray(scipy.stats.binom.cdf(spare - minority, more, opposed))
    decides = (chance >= 0.5) & (counted > 0)
    return float(more[decides.argmax()]) if decides.any() else np.inf


def _most(units: int, rho: float, share: float, risk: float) -> Integers:
    """Return the largest j with P(at most j of n units) <= risk, by n; -1 without."""
    return np.asarray(np.sum(serial.at_most(units, rho, share) <= risk, axis=1) - 1)


def _measured(values: Floats) -> Integers:
    return np.asarray(np.sum(~np.isnan(values), axis=1))


def _column(ordered: Floats, column: Integers) -> Floats:
    """Return one value of each row; any value, or NaN, without such a column."""
    if not ordered.shape[1]:
        return np.full(len(ordered), np.nan)
    column = np.maximum(np.minimum(column, ordered.shape[1] - 1), 0)
    return np.asarray(ordered[np.arange(len(ordered)), column])
