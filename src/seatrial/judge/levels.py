"""Levels of places with one-sided confidence bounds and p-values.

Values have the shape (places, units): a row is a node or pair, a column an allocation,
in the order of time. Higher is better, NaN was not measured, -inf counts as worst. A
result has one number for each place. A risk lies between 0 and 1.

- ``t``: the level is the mean. Student's t with variances that the places share.
- ``order``: the level is the median, or another quantile. Order statistics, for any
  distribution. Places with a value of -inf pass by them, too.

Both allow for serial correlation (`serial`).
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from seatrial.criteria.methods import T_SMALLEST_N, Method
from seatrial.judge import serial
from seatrial.judge.moderated_variances import moderated
from seatrial.judge.order_statistics import (
    MOST_FURTHER_UNITS,
    Order,
    quantiles,
    scores,
)
from seatrial.judge.serial import Correlation, Floats, Integers

Marks = NDArray[np.bool_]

FREEDOM_FOR_SHAPE = 20
"""Degrees of freedom below which the scatter has a floor: nothing shows its shape."""

SCATTER_FLOOR = 0.05
"""This floor, as a share of the value."""

_ENOUGH = 20_000
_OWN = 0.1
"""Part of a risk for a conviction by the scatter of the place alone."""

HALF = 0.5
"""Share of values below the median."""


@dataclass(frozen=True)
class Times:
    """Correlations of successive units: of the rest, and of what all places share.

    `shared` None: as the values show it.
    """

    rest: Correlation
    shared: Correlation | None = None


@dataclass(frozen=True)
class Levels:
    """Levels of places and their uncertainty; arrays are (places,).

    `error` is the standard error of a mean with its degrees of `freedom`, by the
    scatter of all places; `own` is that by its own scatter. `floor` is a standard error
    that is taken at least. `holed` places have a value of -inf; `ordered` is True for
    the method order. `tried` are the values that can convict.
    """

    values: Floats
    tried: Floats
    n: Integers
    centre: Floats
    error: Floats
    freedom: Floats
    own: Floats
    floor: Floats
    holed: Marks
    ordered: bool
    order: Order

    def lower(self, risk: float) -> Floats:
        """Return lower bounds, each wrong at this risk; -inf with too few units."""
        if self.ordered:
            return self.order.lower(self.values, risk)
        bound = np.where(self._bounded, self.centre - self._half_width(risk), -np.inf)
        bound[self.holed] = self.order.lower(self.values[self.holed], risk)
        return bound

    def upper(self, risk: float) -> Floats:
        """Return upper bounds, each wrong at this risk; inf with too few units."""
        if self.ordered:
            return self.order.upper(self.values, risk)
        part = self._own_part
        half = self._half_width(risk * (1 - part))
        if part:
            counts, place = np.unique(np.maximum(self.n - 1, 1), return_inverse=True)
            by_own = scipy.special.stdtrit(counts, 1 - risk * part)[place] * self.own
            by_own = np.fmax(by_own, self._floor_width(risk * part))
            half = np.fmin(half, by_own)
        return np.where(self._bounded, self.centre + half, np.inf)

    def p_below(self, limit: float, first: int = 0) -> Floats:
        """Return p of 'the level reaches the limit' for each place; small: it is below.

        The first units have chosen a place that is judged by order statistics, and do
        not count for it. 1 with too few units.
        """
        if self.ordered:
            return self.order.sign_test(self.tried, limit, first)
        with np.errstate(invalid="ignore", divide="ignore"):
            distance = self.centre - limit
            by_t = scipy.special.stdtr(self.freedom, distance / self.error)
            by_floor = scipy.special.ndtr(distance / self.floor)
            freedom = np.maximum(self.n - 1, 1)
            by_own = scipy.special.stdtr(freedom, distance / self.own)
        p, part = np.fmax(by_t, by_floor), self._own_part
        if part:
            p = np.fmin(p / (1 - part), np.fmax(by_own, by_floor) / part)
        return np.where(self._bounded, np.fmin(p, 1.0), 1.0)

    def more(self, limit: float, risks: tuple[float, float], width: float) -> Integers:
        """Project how many further units of each place would probably decide.

        `risks` are those of a pass and of a fail. 0: it is decided, or the level is
        known to +/- width and lies that close to the limit. -1: more than 1000.

        t: until the half width of the bound, with the present scatter, is at most the
        distance from the limit, or the width if that is more.
        """
        lower, upper = self.lower(risks[0]), self.upper(risks[1])
        done = (lower >= limit) | (upper < limit) | (upper - lower <= 2 * width)
        further = (
            self.order.further(self.values, limit, risks)
            if self.ordered
            else self._further_by_t(limit, risks, width)
        )
        further[further > MOST_FURTHER_UNITS] = -1
        return np.where(done, 0, further).astype(np.int64)

    def _further_by_t(
        self, limit: float, risks: tuple[float, float], width: float
    ) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            distance = np.maximum(np.abs(self.centre - limit), width)
            half = np.where(
                self.centre < limit,
                self._half_width(risks[1]),
                self._half_width(risks[0]),
            )
            needed = np.maximum(self.n * (half / distance) ** 2, T_SMALLEST_N)
            needed = np.where(self._bounded, needed, T_SMALLEST_N)
            needed = np.nan_to_num(needed, nan=np.inf, posinf=np.inf)
            return np.asarray(np.maximum(np.ceil(needed - self.n), 1))

    @property
    def _own_part(self) -> float:
        """The part of a risk for the place's own scatter; that of one place is all."""
        return _OWN if len(self.centre) > 1 else 0.0

    @property
    def _bounded(self) -> Marks:
        return (self.n >= T_SMALLEST_N) & ~np.isnan(self.error)

    def _half_width(self, risk: float) -> Floats:
        freedom, place = np.unique(self.freedom, return_inverse=True)
        with np.errstate(invalid="ignore"):
            by_t = scipy.special.stdtrit(freedom, 1 - risk)[place] * self.error
        half = np.fmax(by_t, self._floor_width(risk))
        return np.where(self._bounded, half, np.inf)

    def _floor_width(self, risk: float) -> Floats:
        return np.asarray(-scipy.special.ndtri(risk) * self.floor)


def levels(
    values: Floats,
    method: Method,
    *,
    below: float = HALF,
    shared: bool = True,
    floor: float = SCATTER_FLOOR,
    worst: float = -1.0,
    times: Times | None = None,
) -> Levels:
    """Estimate the levels of places that are alike but for their level.

    `shared`: allocations may have an effect on all places. `floor` is the least scatter
    where the data cannot show its shape. `worst` is what -inf counts as in a mean.
    `times` are the correlations of units, by default as these values show them.
    """
    n = np.asarray(np.sum(~np.isnan(values), axis=1))
    holed = np.asarray(np.isneginf(values).any(axis=1))
    tried = blamed(values)
    ordered = method == "order"
    unknown = np.full(len(values), np.nan)
    if ordered:
        centre = quantiles(values, below)
        spread = (unknown, unknown, unknown, np.zeros(len(values)))
    else:
        finite = np.where(np.isneginf(tried), worst, tried)
        centre = _means(finite)
        times = times or Times(rest_correlation(tried, shared=shared))
        spread = _spread(finite, holed, floor, times, shared=shared)
    needed = ordered or holed.any()
    rho = serial.stepped(serial.correlation(scores(values)).used) if needed else 0.0
    order = Order(rho, below)
    return Levels(values, tried, n, centre, *spread, holed, ordered, order)


def thinned(values: Floats) -> Floats:
    """Return some of more than 20,000 places, which tell about all."""
    return values[:: 1 + len(values) // _ENOUGH]


def blamed(values: Floats) -> Floats:
    """Leave out units in which all of several places have -inf.

    These bar a pass, and convict no place.
    """
    missing = np.isneginf(values).all(axis=0) & (len(values) > 1)
    return np.where(missing, np.nan, values)


def rest_correlation(values: Floats, *, shared: bool) -> Correlation:
    """Estimate the correlation of what places do not share; -inf is left out."""
    values = thinned(values[~np.isneginf(values).any(axis=1)])
    rest = split(values)[1] if shared else _centred(values)
    return serial.correlation(serial.packed(rest), max(len(rest) - 1.0, 1.0))


def _spread(
    values: Floats,
    holed: Marks,
    floor: float,
    times: Times,
    *,
    shared: bool,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return standard errors, degrees of freedom, own errors and the floor of errors.

    A mean scatters with the shared effect of its allocations, and with its own rest.
    """
    common, rest = split(values) if shared else (None, _centred(values))
    n = np.asarray(np.sum(~np.isnan(values), axis=1))
    places = int(np.sum(n > 1))
    independent = max(places - 1.0, 1.0)
    packed, rho = serial.packed(rest), times.rest.used
    share = independent / max(places, 1)
    own = moderated(_variances(packed, rho), share * np.maximum(n - 1, 0), holed)
    per_unit = serial.inflation(n, rho) / np.maximum(n, 1)
    variance, freedom = own.variance * per_unit, own.freedom
    if common is not None:
        series = serial.packed(common[np.newaxis])
        of_shared = (times.shared or serial.correlation(series)).used
        rho = max(rho, of_shared)
        units = np.sum(~np.isnan(series), axis=1)
        of_all = _variances(series, of_shared) * serial.inflation(n, of_shared)
        of_all = of_all / np.maximum(n, 1)
        total = variance + of_all
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = variance**2 / freedom + of_all**2 / np.maximum(units - 1, 1)
            freedom = np.where(total > 0, total**2 / parts, freedom)
        variance = total
    alone = _variances(serial.packed(values), rho) * serial.inflation(n, rho)
    own_error = np.sqrt(alone / np.maximum(n, 1))
    least = np.zeros(len(n))
    if own.total < FREEDOM_FOR_SHAPE or own.pooled == 0:
        least = floor * np.sqrt(serial.inflation(n, rho) / np.maximum(n, 1))
    return np.sqrt(variance), freedom, own_error, least


def _variances(packed: Floats, rho: float) -> Floats:
    """Return the variance of the units; a drift has more than AR(1) noise explains."""
    return np.fmax(serial.variances(packed, rho), serial.variances(packed, 0.0))


def split(values: Floats) -> tuple[Floats | None, Floats]:
    """Split values into the effect of each unit on all places, and the rest.

    The effect (units,) is the median over places, of two the mean; None for one place.
    """
    rest = _centred(values)
    places = int(np.sum(~np.isnan(values).all(axis=1)))
    if places < 2:
        return None, rest
    measured = ~np.isnan(rest).all(axis=0)
    common = np.full(rest.shape[1], np.nan)
    typical = np.nanmedian if places > 2 else np.nanmean
    common[measured] = typical(rest[:, measured], axis=0)
    return common, rest - common


def _centred(values: Floats) -> Floats:
    return np.asarray(values - _means(values)[:, np.newaxis])


def _means(values: Floats) -> Floats:
    n = np.sum(~np.isnan(values), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nansum(values, axis=1) / np.where(n > 0, n, np.nan))
