"""Serial correlation: successive allocations of a machine resemble each other.

Values of a place follow an AR(1) process: neighbours in time have the correlation rho,
values j steps apart rho**j. A positive rho makes a mean, and a count of values below a
limit, scatter more than independent values do. Series have the shape (places, units),
in the order of time; NaN was not measured and is left out, which is cautious.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ASSUMED = 0.5
"""Correlation that is assumed where the data cannot exclude it."""

_HIGHEST = 0.95
_CONFIDENT = 1.645
"""Standard errors by which the data must exceed `ASSUMED` to raise it."""

_SMALL_ERROR, _MARGIN = 0.1, 2.5

GRID = np.linspace(-0.95, 0.99, 195)
"""Correlations at which expectations are computed."""
_BINS = 120
_STEP = 0.05
MOST_EXACT = 120
"""Largest number of units whose counts are computed exactly."""


@dataclass(frozen=True)
class Correlation:
    """The correlation of successive units: estimate, standard error, what is used."""

    rho: float
    error: float

    @property
    def used(self) -> float:
        """The estimate plus a margin, at least 0.

        The margin is 2.5 times what the standard error has above 0.1: less averages
        out. By simulation both risks then hold for any number of places. Above
        `ASSUMED` only as far as the data show it at 95 % confidence.
        """
        most = self.rho + _MARGIN * max(self.error - _SMALL_ERROR, 0.0)
        if most > ASSUMED:
            most = max(ASSUMED, self.rho - _CONFIDENT * self.error)
        return float(np.clip(most, 0.0, _HIGHEST))


UNKNOWN = Correlation(0.0, np.inf)


def packed(values: Floats) -> Floats:
    """Move the measured units of each place to the front, in their order."""
    if not np.isnan(values).any():
        return values
    order = np.argsort(np.isnan(values), axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1)


def correlation(series: Floats, independent: float | None = None) -> Correlation:
    """Estimate rho of packed series by the method of moments, pooled over places.

    The sum of products of neighbours, divided by the sum of squares, of series less
    their mean. Its expectation is exact for AR(1) series of this length and is
    inverted, so that short series have no bias. Places with another number of units
    than most, and with more than nine times the typical variance, do not count.
    `independent` is the number of series that do not share their noise; by default it
    follows from the correlation between places.
    """
    n = np.sum(~np.isnan(series), axis=1)
    length = int(np.bincount(n, minlength=1).argmax()) if n.size else 0
    if length < 3:
        return UNKNOWN
    rest = series[n == length, :length]
    rest = rest - rest.mean(axis=1, keepdims=True)
    squares = np.sum(rest**2, axis=1)
    varied = squares > 0
    if not varied.any():
        return UNKNOWN
    kept = varied & (squares <= 9 * np.median(squares[varied]))
    rest, squares = rest[kept], squares[kept]
    ratio = float(np.sum(rest[:, 1:] * rest[:, :-1]) / squares.sum())
    if independent is None:
        unit = rest / np.sqrt(squares / (length - 1))[:, np.newaxis]
        common = float(np.sum(unit.mean(axis=0) ** 2) / (length - 1))
        independent = float(np.clip(1 / common, 1, len(rest))) if common else 1.0
    expected = expected_ratio(length)
    rho = float(np.interp(ratio, expected, GRID))
    slope = max(float(np.interp(rho, GRID, np.gradient(expected, GRID))), 0.1)
    return Correlation(rho, 1 / (slope * np.sqrt(independent * (length - 1))))


@lru_cache(maxsize=256)
def expected_ratio(units: int) -> Floats:
    """Return E(sum of products) / E(sum of squares) of demeaned series, over GRID."""
    variance = mean_variance(np.array(units), GRID)
    end = (1 - GRID**units) / (1 - GRID) / units  # covariance of an end and the mean
    products = (units - 1) * GRID - (units + 1) * variance + 2 * end
    return np.asarray(products / (units * (1 - variance)))


def inflation(n: Integers, rho: float | Floats) -> Floats:
    """Return n times the variance of a mean of n units, of variance 1 each.

    1 for rho = 0; (1 + rho) / (1 - rho) for many units.
    """
    n = np.maximum(n, 1)
    bend = 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)
    return np.asarray((1 + rho) / (1 - rho) - bend)


def mean_variance(n: Integers, rho: float | Floats) -> Floats:
    """Return the variance of a mean of n >= 1 units, of variance 1 each."""
    return inflation(n, rho) / n


def variances(series: Floats, rho: float) -> Floats:
    """Return the variance of the units of each packed series, NaN below two of them.

    By generalized least squares: for an AR(1) series with this rho it has no bias and
    n - 1 degrees of freedom.
    """
    n = np.sum(~np.isnan(series), axis=1)
    if not series.shape[1]:
        return np.full(len(series), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        last = series[np.arange(len(series)), np.maximum(n - 1, 0)]
        ends, total = series[:, 0] + last, np.nansum(series, axis=1)
        weight = n - (n - 2) * rho
        mean = ((1 - rho) * total + rho * ends) / weight
        rest = series - mean[:, np.newaxis]
        steps = rest[:, 1:] - rho * rest[:, :-1]
        quadratic = rest[:, 0] ** 2 + np.nansum(steps**2, axis=1) / (1 - rho**2)
        return np.where(n > 1, quadratic / (n - 1), np.nan)


def whitened(series: Floats, rho: float) -> Floats:
    """Remove the correlation of successive units; the first unit of each is lost.

    Level and shape of normal noise remain. NaN where a unit or its predecessor was not
    measured.
    """
    if rho < _STEP:
        return series
    steps = series[:, 1:] - rho * series[:, :-1]
    return np.asarray(steps / np.sqrt(1 - rho**2))


def at_most(units: int, rho: float, share: float, *, follows: bool = False) -> Floats:
    """Return P(at most k of n units reach a level that `share` of them reach).

    Shape (units + 1, units + 1): a row for each n from 0, a column for each k. The
    order of the values is that of a Gaussian AR(1) process; their distribution may be
    any. `follows`: the unit before them did not reach the level. rho is rounded up to
    0.05. Beyond 120 units it is binomial, with as many units as count.
    """
    return _at_most(units, stepped(rho), share, follows)


def stepped(rho: float) -> float:
    """Round rho up to a multiple of 0.05, at most 0.95."""
    return min(round(float(np.ceil(round(rho / _STEP, 9)) * _STEP), 2), _HIGHEST)


@lru_cache(maxsize=128)
def _at_most(units: int, rho: float, share: float, follows: bool) -> Floats:
    counts = np.arange(units + 1)
    if rho == 0 or units > MOST_EXACT:
        number = np.floor(counts / count_inflation(rho))
        return np.asarray(scipy.stats.binom.cdf(number, number[:, np.newaxis], share))
    edges = np.unique(np.append(np.linspace(0, 1, _BINS + 1), 1 - share))
    cuts = scipy.special.ndtri(edges)
    density = np.exp(-(cuts**2) / 2) / np.sqrt(2 * np.pi)
    start = np.diff(edges)
    middle = -np.diff(density) / start
    noise = np.sqrt(1 - rho**2)
    moves = np.diff(scipy.special.ndtr((cuts - rho * middle[:, np.newaxis]) / noise))
    reach = edges[:-1] >= 1 - share
    if follows:
        start = np.where(reach, 0, start)
        start = start / start.sum() @ moves
    result = np.ones((units + 1, units + 1))
    by_count = np.zeros((units + 1, len(start)))
    by_count[0] = start
    for n in range(1, units + 1):
        if n > 1:
            by_count[:n] = by_count[:n] @ moves
        by_count[1 : n + 1, reach] = by_count[:n, reach].copy()
        by_count[0, reach] = 0
        result[n] = np.minimum(np.cumsum(by_count.sum(axis=1)), 1)
    return result


@lru_cache(maxsize=1024)
def count_inflation(rho: float) -> float:
    """Return n times the variance of a share that n units reach, over the binomial one.

    By the correlation of the indicators of a Gaussian AR(1) process at its median;
    elsewhere it is less.
    """
    lags = rho ** np.arange(1, 400)
    return float(1 + 2 * np.sum(np.arcsin(lags)) * 2 / np.pi) if rho else 1.0
