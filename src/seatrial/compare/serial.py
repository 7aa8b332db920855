"""Serial correlation: successive repeats of a side resemble each other.

The repeats of a side, in the order of their start, are a Gaussian AR(1) series:
neighbours have the correlation rho, repeats j steps apart rho**j. A positive rho makes
a mean scatter more than that of independent repeats. Series have the shape (numbers,
repeats); NaN was not measured and is left out, which is cautious: the repeats beside
the gap count as neighbours.

**With rho known**, whitened deviations from the mean by generalised least squares are
independent; their squares have n - 1 degrees of freedom. The plain mean has the
variance of `judge.serial.inflation` / n. For rho = 0 all of this is Student's t.

**Rho is estimated** by the method of moments: the sum of products of neighbours over
the sum of squares, of series less their mean. The ratio of the expectations is exact
for every length and is inverted, so that short series have little bias. The numbers of
a side share its luck and count as one series for the standard error; sides of unequal
scatter count by Satterthwaite.

**Rho that is used** is the upper 95 % bound of the estimate, but no more than `ASSUMED`
unless the estimate itself is. Few repeats cannot exclude `ASSUMED`, so it counts. One
standard error instead of the bound would give a false winner in 6 to 7 % of bake-offs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.judge.serial import ASSUMED, GRID, expected_ratio

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

LEAST_REPEATS = 3
"""Fewer repeats have no estimate."""

_BOUND = 1.645
_MOST = 0.95
_ROUNDING = 1e-20
"""Sums of squares of logarithms up to here are rounding errors, no scatter."""


@dataclass(frozen=True)
class Correlation:
    """The correlation of successive repeats that counts, 0 to 0.95.

    `estimate` and its standard `error` are None with fewer than three repeats.
    """

    used: float = ASSUMED
    estimate: float | None = None
    error: float | None = None


def correlation(sides: Sequence[Floats]) -> Correlation:
    """Estimate the correlation that series of several sides have in common.

    Of each side those series count that have as many repeats as most, and no more than
    nine times the typical variance.
    """
    lengths, products, squares = [], [], []
    for series in sides:
        n = np.sum(~np.isnan(series), axis=1)
        length = int(np.bincount(n, minlength=1).argmax()) if n.size else 0
        if length < LEAST_REPEATS:
            continue
        values = _packed(series[n == length])[0][:, :length]
        rest = values - values.mean(axis=1, keepdims=True)
        own = np.sum(rest**2, axis=1)
        varied = own > _ROUNDING
        if varied.any():
            kept = varied & (own <= 9 * np.median(own[varied]))
            lengths.append(length)
            products.append(np.sum(rest[kept, 1:] * rest[kept, :-1]) / kept.sum())
            squares.append(np.mean(own[kept]))
    if not lengths:
        return Correlation()
    weights = np.array(squares)
    expected = np.average([expected_ratio(n) for n in lengths], axis=0, weights=weights)
    estimate = float(np.interp(sum(products) / weights.sum(), expected, GRID))
    slope = float(np.interp(estimate, GRID, np.gradient(expected, GRID)))
    freedom = weights.sum() ** 2 / np.sum(weights**2 / (np.array(lengths) - 1))
    error = float(1 / (slope * np.sqrt(freedom)))
    used = max(min(ASSUMED, estimate + _BOUND * error), min(estimate, _MOST), 0.0)
    return Correlation(used, estimate, error)


def innovations(series: Floats, rho: float) -> Floats:
    """Return whitened deviations, (numbers, repeats); 0 where not measured.

    For AR(1) series the sum of their squares is the variance of a repeat times
    chi-square of n - 1 degrees of freedom.
    """
    packed, order = _packed(series)
    packed = packed - packed[:, :1]  # equal values scatter by exactly 0
    n = np.sum(~np.isnan(packed), axis=1)[:, np.newaxis]
    column = np.arange(series.shape[1])
    weights = np.where((column == 0) | (column == n - 1), 1.0, 1 - rho)
    total = np.where(column < n, weights, 0.0).sum(axis=1, keepdims=True)
    mean = np.nansum(weights * packed, axis=1, keepdims=True) / np.maximum(total, 1)
    rest = packed - mean
    rest[:, 1:] = (rest[:, 1:] - rho * rest[:, :-1]) / np.sqrt(1 - rho**2)
    result = np.empty_like(rest)
    np.put_along_axis(result, order, np.nan_to_num(rest), axis=1)
    return np.asarray(result)


def _packed(series: Floats) -> tuple[Floats, Counts]:
    """Move what was measured to the front; return the columns that it had, too."""
    order = np.argsort(np.isnan(series), axis=1, kind="stable")
    return np.take_along_axis(series, order, axis=1), order
