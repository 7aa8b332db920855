"""Tests of what Student's t and a level take for granted: shape and no drift.

Values have the shape (places, units), NaN was not measured.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from seatrial.judge.order_statistics import medians

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PLACES_FOR_SHAPE, UNITS_FOR_SHAPE = 20, 4
UNITS_FOR_SHAPIRO = 8
UNITS_FOR_DRIFT = 6


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


def _one_against_others(values: Floats) -> Floats:
    """Return Student's P(less than one unit of each place), by its other units."""
    values = values[:, ~np.isnan(values).all(axis=0)]
    n, mean, _ = _moments(values)
    values = values - medians((values - mean[:, np.newaxis]).T)
    measured_first = np.argsort(np.isnan(values), axis=1, kind="stable")
    turn = np.arange(len(n)) % n
    unit = np.take_along_axis(measured_first, turn[:, np.newaxis], axis=1)
    x = np.take_along_axis(values, unit, axis=1)[:, 0]
    np.put_along_axis(values, unit, np.nan, axis=1)
    _, mean, sd = _moments(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (x - mean) / (np.nan_to_num(sd) * np.sqrt(n / (n - 1)))
    return np.asarray(scipy.special.stdtr(n - 2, np.nan_to_num(t)))
