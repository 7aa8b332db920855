"""Standard errors of the levels of places that are alike but for their level.

Values have the shape (places, units), as in `levels`. A value is the sum of the level
of its place, the effect that its unit has on all places, and the rest.
"""

from dataclasses import dataclass, fields

import numpy as np
import scipy
from numpy.typing import NDArray

from seatrial.judge import serial
from seatrial.judge.by_rows import by_rows
from seatrial.judge.moderated_variances import moderated
from seatrial.judge.order_statistics import medians
from seatrial.judge.serial import Correlation, Floats

Marks = NDArray[np.bool_]

FREEDOM_FOR_SHAPE = 20
"""Degrees of freedom below which the scatter has a floor: nothing shows its shape."""

SCATTER_FLOOR = 0.05
"""This floor, as a share of the value."""

_ENOUGH = 20_000
_CELLS = 1 << 21
"""Values whose medians are computed at a time."""


@dataclass(frozen=True)
class Times:
    """Correlations of successive units: of the rest, and of what all places share.

    `shared` None: as the values show it.
    """

    rest: Correlation
    shared: Correlation | None = None


@dataclass(frozen=True)
class Common:
    """The standard error of what all places share, NaN without, and its freedom."""

    error: float
    freedom: int

    def bound(self, risk: float) -> float:
        """Return the largest loss of a mean of all units by it, wrong at this risk."""
        return float(scipy.special.stdtrit(self.freedom, 1 - risk)) * self.error


@dataclass(frozen=True)
class Scatter:
    """Standard errors of means, with their degrees of freedom; arrays are (places,).

    `error` is by the scatter of all places, `own` by that of the place alone. `floor`
    is an error that is taken at least. `apart` is the error without the effect that
    units have on all places; NaN where a place lacks a unit, and where units have none.
    `common` is that of this effect, on a mean of all units.
    """

    error: Floats
    freedom: Floats
    own: Floats
    floor: Floats
    apart: Floats
    apart_freedom: Floats
    common: Common

    def part(self, rows: slice) -> "Scatter":
        """Return that of some places."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        common = own.pop("common")
        return Scatter(**{name: of[rows] for name, of in own.items()}, common=common)


def thinned_finite(values: Floats) -> Floats:
    """Return some of more than 20,000 places; those with -inf are left out."""
    finite = np.flatnonzero(~np.isneginf(values).any(axis=1))
    return values[finite[:: 1 + len(finite) // _ENOUGH]]


def blamed(values: Floats) -> Floats:
    """Leave out units in which all of several places have -inf.

    These bar a pass, and convict no place.
    """
    missing = np.isneginf(values).all(axis=0) & (len(values) > 1)
    return np.where(missing, np.nan, values) if missing.any() else values


def rest_correlation(values: Floats, *, shared: bool) -> Correlation:
    """Estimate the correlation of what places do not share; -inf is left out."""
    values = thinned_finite(values)
    rest = split(values)[1] if shared else _centred(values)
    return serial.correlation(serial.packed(rest), max(len(rest) - 1.0, 1.0))


def unknown(places: int) -> Scatter:
    """Return the scatter of places whose means do not count."""
    none = np.full(places, np.nan)
    return Scatter(none, none, none, np.zeros(places), none, none, Common(np.nan, 1))


def scatter_of(
    values: Floats,
    holed: Marks,
    floor: float,
    times: Times,
    *,
    shared: bool,
) -> Scatter:
    """Estimate the scatter of means of finite values.

    `shared`: units may have an effect on all places. Places that are `holed` do not
    count for the others. `floor` is the least scatter of values where the data cannot
    show its shape. `times` are the correlations of units.
    """
    common, rest = split(values) if shared else (None, _centred(values))
    n = np.asarray(np.sum(~np.isnan(values), axis=1))
    places = int(np.sum(n > 1))
    independent = max(places - 1.0, 1.0)
    share, rho = independent / max(places, 1), times.rest.used
    of_rest = _variances(rest, rho)
    del rest  # as large as the values
    own = moderated(of_rest, share * np.maximum(n - 1, 0), holed)
    per_unit = serial.inflation(n, rho) / np.maximum(n, 1)
    variance, freedom = own.variance * per_unit, own.freedom
    apart = np.full(len(n), np.nan)
    of_units = Common(np.nan, 1)
    if common is not None:
        series = serial.packed(common[np.newaxis])
        of_shared = (times.shared or serial.correlation(series)).used
        rho = max(rho, of_shared)
        units = np.sum(~np.isnan(series), axis=1)
        of_all = _variances(series, of_shared) * serial.inflation(n, of_shared)
        of_all = of_all / np.maximum(n, 1)
        apart = np.where(n == units, np.sqrt(variance), np.nan)
        of_units = Common(
            float(np.sqrt(of_all[n == units].max(initial=0.0))), int(units[0]) - 1
        )
        total = variance + of_all
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = variance**2 / freedom + of_all**2 / np.maximum(units - 1, 1)
            freedom = np.where(total > 0, total**2 / parts, freedom)
        variance = total
    alone = _variances(values, rho) * serial.inflation(n, rho)
    own_error = np.sqrt(alone / np.maximum(n, 1))
    least = np.zeros(len(n))
    if own.total < FREEDOM_FOR_SHAPE or own.pooled == 0:
        least = floor * np.sqrt(serial.inflation(n, rho) / np.maximum(n, 1))
    return Scatter(
        np.sqrt(variance), freedom, own_error, least, apart, own.freedom, of_units
    )


def _variances(values: Floats, rho: float) -> Floats:
    """Return the variance of the units; a drift has more than AR(1) noise explains."""

    def of_rows(rows: Floats) -> Floats:
        packed = serial.packed(rows)
        return np.fmax(serial.variances(packed, rho), serial.variances(packed, 0.0))

    return by_rows(of_rows, values)


def split(values: Floats) -> tuple[Floats | None, Floats]:
    """Split values into the effect of each unit on all places, and the rest.

    The effect (units,) is the median over places; None for one place.
    """
    rest = _centred(values)
    places = int(np.sum(~np.isnan(values).all(axis=1)))
    if places < 2:
        return None, rest
    common = np.full(rest.shape[1], np.nan)
    step = max(1, _CELLS // len(rest))
    for first in range(0, len(common), step):
        units = slice(first, first + step)
        common[units] = medians(rest[:, units].T)
    rest -= common
    return common, rest


def _centred(values: Floats) -> Floats:
    return np.asarray(values - means(values)[:, np.newaxis])


def means(values: Floats) -> Floats:
    """Return the mean of each place; NaN without a value."""
    return by_rows(_means, values)


def _means(values: Floats) -> Floats:
    n = np.sum(~np.isnan(values), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nansum(values, axis=1) / np.where(n > 0, n, np.nan))
