"""One-sided confidence bounds and p-values of levels, and their assumptions.

Values have the shape (places, units): a row is a node or pair, a column an allocation.
Higher is better, NaN was not measured, -inf is a missing value that counts as the worst
one. A result has one number for each place. A risk lies between 0 and 1.

- ``t``: the level is the mean. Student's t, each place with its own variance. A place
  whose values are all equal, which are rounded, or with a missing value is judged by
  order statistics.
- ``order``: the level is the median. Order statistics, for any distribution.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from seatrial.criteria.methods import T_SMALLEST_N, Method, smallest_n

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_FURTHER_UNITS = 1000
PLACES_FOR_SHAPE, UNITS_FOR_SHAPE = 20, 4
UNITS_FOR_SHAPIRO = 8
UNITS_FOR_DRIFT = 6


def centre(values: Floats, method: Method) -> Floats:
    """Return the mean (t) or the median (order) of each place; NaN without a value."""
    if method == "t":
        means, ordered = _moments(values)[1], by_order(values)
        means[ordered] = centre(values[ordered], "order")
        return means
    ordered, n = np.sort(values, axis=1), _measured(values)
    middle = _column(ordered, (n - 1) // 2) + _column(ordered, n // 2)
    return np.asarray(middle / 2)


def lower_bound(values: Floats, method: Method, risk: float) -> Floats:
    """Return lower bounds of the levels, each wrong at this risk; -inf: unknown."""
    return -upper_bound(-values, method, risk)


def upper_bound(values: Floats, method: Method, risk: float) -> Floats:
    """Return upper bounds of the levels, each wrong at this risk.

    It is inf with too few units.

    t: mean + t(1 - risk, n - 1) s / sqrt(n).

    order: the value of rank n - j, with the largest j for which P(Bin(n, 1/2) <= j)
    is at most the risk: the median exceeds it only if no more than j values are at or
    above the median (Hahn and Meeker, Statistical Intervals, section 5.4; Conover,
    Practical Nonparametric Statistics, section 3.2). Equal values make it cautious.
    """
    if method == "t":
        n, mean, sd = _moments(values)
        bound = mean + _half_widths(n, risk) * sd
        bound = np.where((n >= T_SMALLEST_N) & ~np.isnan(sd), bound, np.inf)
        if (ordered := by_order(values)).any():
            bound[ordered] = upper_bound(values[ordered], "order", risk)
        return bound
    n, most = _measured(values), _most_beyond(np.arange(values.shape[1] + 1), risk)
    bound = _column(np.sort(values, axis=1), n - 1 - most[n])
    return np.where(most[n] >= 0, bound, np.inf)


def p_below(values: Floats, limit: float, method: Method) -> Floats:
    """Return p of 'the level reaches the limit' for each place; small: it is below.

    p is at most a risk exactly where `upper_bound` with this risk is below the limit; 1
    where the bound is inf at every risk.

    t: Student's t test. order: the sign test, P(Bin(n, 1/2) <= k) with the k values
    that reach the limit (Conover, section 3.4).
    """
    if method == "t":
        n, mean, sd = _moments(values)
        p = scipy.special.stdtr(np.maximum(n - 1, 1), (mean - limit) / sd * np.sqrt(n))
        p = np.where((n >= T_SMALLEST_N) & ~np.isnan(sd), p, 1.0)
        if (ordered := by_order(values)).any():
            p[ordered] = p_below(values[ordered], limit, "order")
        return p
    counts = np.arange(values.shape[1] + 1)
    sign_test = scipy.special.bdtr(counts, counts[:, np.newaxis], 0.5)
    return np.asarray(sign_test[_measured(values), np.sum(values >= limit, axis=1)])


def more_units(
    values: Floats,
    limit: float,
    method: Method,
    risk_pass: float,
    risk_fail: float,
    zone_width: float,
) -> Integers:
    """Project how many further units of each place would probably decide.

    0: it is decided, or the level is known to +/- zone_width and lies in the
    indifference zone around the limit. -1: more than 1000.

    t: until the half width of the bound, with the present s, is at most the distance
    of the mean from the limit, or zone_width if that is more.

    order: until the chance to decide is one half, if the share of further values on
    the side of the limit that has k of the n present ones is (k + 1) / (n + 2).
    """
    lower = lower_bound(values, method, risk_pass)
    upper = upper_bound(values, method, risk_fail)
    with np.errstate(invalid="ignore"):  # both are -inf where most are missing
        narrow = upper - lower <= 2 * zone_width
    done = (lower >= limit) | (upper < limit) | narrow
    if method == "t":
        further = _further_for_t(values, limit, risk_pass, risk_fail, zone_width)
        if (ordered := by_order(values)).any():
            own = _further_for_order(values[ordered], limit, risk_pass, risk_fail)
            further[ordered] = own
    else:
        further = _further_for_order(values, limit, risk_pass, risk_fail)
    return np.where(done, 0, np.where(further > MOST_FURTHER_UNITS, -1, further))


def t_shape_p(values: Floats) -> float:
    """Return p of 'Student's t applies'; small: the values are not normal.

    With 20 places of 4 units: one unit of a place against its n - 1 others,
    (x - mean) / (s sqrt(n / (n - 1))) with mean and s of the others, has Student's
    distribution with n - 2 degrees of freedom for any level and variance of the place
    (it is Thompson's ratio, Annals of Mathematical Statistics 6, 1935, in another
    form). Kolmogorov and Smirnov's test compares it over the places. The median effect
    of an allocation is subtracted first, and the unit differs from place to place, or
    an allocation would count once for each place.

    With fewer places: Shapiro-Wilk for each with 8 units, the smallest p times their
    number; without any, 1. Places with equal values are left out.
    """
    values = np.where(np.isfinite(values), values, np.nan)
    values = values[~all_equal(values)]
    many = values[_measured(values) >= UNITS_FOR_SHAPE]
    if len(many) >= PLACES_FOR_SHAPE:
        return float(scipy.stats.kstest(_one_against_others(many), "uniform").pvalue)
    enough = values[_measured(values) >= UNITS_FOR_SHAPIRO]
    p = [float(scipy.stats.shapiro(row[~np.isnan(row)]).pvalue) for row in enough]
    return min(1.0, len(p) * min(p)) if p else 1.0


def drift_p(series: Floats, least: int = UNITS_FOR_DRIFT) -> float:
    """Return p of 'no drift': Kendall's tau of values against their order in time.

    NaN is left out; 1 below `least` values, or if all are equal.
    """
    series = series[~np.isnan(series)]
    if len(series) < least or np.ptp(series) == 0:
        return 1.0
    return float(scipy.stats.kendalltau(np.arange(len(series)), series).pvalue)


def _measured(values: Floats) -> Integers:
    return np.asarray(np.sum(~np.isnan(values), axis=1))


def _column(ordered: NDArray[Any], column: Integers) -> NDArray[Any]:
    """Return one value of each row; any value, or NaN, without such a column."""
    if not ordered.shape[1]:
        return np.full(len(ordered), np.nan)
    column = np.clip(column, 0, ordered.shape[1] - 1)
    return np.take_along_axis(ordered, column[:, np.newaxis], axis=1)[:, 0]


def by_order(values: Floats) -> NDArray[np.bool_]:
    """Mark places that Student's t cannot judge: equal or missing values."""
    return np.asarray(all_equal(values) | np.isinf(values).any(axis=1))


def all_equal(values: Floats) -> NDArray[np.bool_]:
    """Mark places with several values, all of them equal."""
    lowest = np.fmin.reduce(values, axis=1, initial=np.inf)
    highest = np.fmax.reduce(values, axis=1, initial=-np.inf)
    return np.asarray((lowest == highest) & (_measured(values) > 1))


def _moments(values: Floats) -> tuple[Integers, Floats, Floats]:
    """Return n, mean and standard deviation, which is NaN without spread."""
    measured = ~np.isnan(values)
    n = np.sum(measured, axis=1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.sum(values, axis=1, where=measured) / n
        squares = (values - mean[:, np.newaxis]) ** 2
        sd = np.sqrt(np.sum(squares, axis=1, where=measured) / np.maximum(n - 1, 0))
    usable = np.isfinite(sd) & (sd > 0) & ~all_equal(values)
    return n, mean, np.where(usable, sd, np.nan)


def _half_widths(n: Integers, risk: float) -> Floats:
    """Return the half width of the t bound of n units, in standard deviations."""
    counts = np.arange(2, max(n.max(initial=0), 2) + 1)
    widths = scipy.special.stdtrit(counts - 1, 1 - risk) / np.sqrt(counts)
    return np.concatenate([[np.inf, np.inf], widths])[n]


def _most_beyond(n: Integers, risk: float) -> Integers:
    """Return the largest j with P(Bin(n, 1/2) <= j) <= risk; -1 without one."""
    j = np.asarray(scipy.stats.binom.ppf(risk, n, 0.5)).astype(np.int64)
    return j - (scipy.special.bdtr(j, n, 0.5) > risk)


def _further_for_t(
    values: Floats, limit: float, risk_pass: float, risk_fail: float, zone_width: float
) -> Integers:
    n, mean, sd = _moments(values)
    width = np.maximum(np.abs(mean - limit), zone_width) / sd
    width = np.where(np.isnan(width), np.inf, width)
    totals = np.arange(T_SMALLEST_N, values.shape[1] + MOST_FURTHER_UNITS + 2)

    def needed(risk: float) -> Integers:
        return T_SMALLEST_N + np.searchsorted(-_half_widths(totals, risk), -width)

    total = np.where(mean < limit, needed(risk_fail), needed(risk_pass))
    return np.maximum(total - n, 1)


def _further_for_order(
    values: Floats, limit: float, risk_pass: float, risk_fail: float
) -> Integers:
    n, reach = _measured(values), np.sum(values >= limit, axis=1)
    states, place = np.unique(np.column_stack([n, reach]), axis=0, return_inverse=True)
    further = [
        _further_for_signs(n, n - reach, risk_pass)
        if 2 * reach >= n
        else _further_for_signs(n, reach, risk_fail)
        for n, reach in states.tolist()
    ]
    return np.array(further, dtype=np.int64)[place]


@lru_cache(maxsize=4096)
def _further_for_signs(n: int, minority: int, risk: float) -> int:
    """Return the further units that probably decide; `minority` of n are opposed."""
    if n == 0:
        return smallest_n("order", risk)
    further = np.arange(1, MOST_FURTHER_UNITS + 1)
    spare = _most_beyond(n + further, risk) - minority
    opposed = (minority + 1) / (n + 2)
    decides = np.asarray(scipy.stats.binom.cdf(spare, further, opposed)) >= 0.5
    return int(further[decides.argmax()]) if decides.any() else MOST_FURTHER_UNITS + 1


def _one_against_others(values: Floats) -> Floats:
    """Return Student's P(less than one unit of each place), by its other units."""
    values = values[:, ~np.isnan(values).all(axis=0)]
    n, mean, _ = _moments(values)
    values = values - np.nanmedian(values - mean[:, np.newaxis], axis=0)
    measured_first = np.argsort(np.isnan(values), axis=1, kind="stable")
    unit = _column(measured_first, np.arange(len(n)) % n)[:, np.newaxis]
    x = np.take_along_axis(values, unit, axis=1)[:, 0]
    np.put_along_axis(values, unit, np.nan, axis=1)
    _, mean, sd = _moments(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (x - mean) / (np.nan_to_num(sd) * np.sqrt(n / (n - 1)))
    return np.asarray(scipy.special.stdtr(n - 2, np.nan_to_num(t)))
