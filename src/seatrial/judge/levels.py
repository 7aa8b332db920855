"""Levels of places with one-sided confidence bounds and p-values.

Values have the shape (places, units): a row is a node or pair, a column an allocation,
in the order of time. Higher is better, NaN was not measured, -inf counts as worst. A
result has one number for each place. A risk lies between 0 and 1.

- ``t``: the level is the mean. Student's t with variances that the places share.
- ``order``: the level is the median, or another quantile. Order statistics, for any
  distribution. Places with a value of -inf pass by them, too.

Both allow for serial correlation (`serial`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from seatrial.criteria.methods import T_SMALLEST_N, Method
from seatrial.judge import serial
from seatrial.judge.by_rows import in_parts
from seatrial.judge.order_statistics import (
    HALF,
    MOST_FURTHER_UNITS,
    Order,
    quantiles,
    scores,
)
from seatrial.judge.scatter import (
    SCATTER_FLOOR,
    Scatter,
    Times,
    blamed,
    means,
    rest_correlation,
    scatter_of,
    unknown,
)
from seatrial.judge.serial import Floats, Integers

Marks = NDArray[np.bool_]

_OWN = 0.1
"""Part of a risk for a conviction by the scatter of the place alone."""

_APART, _COMMON = 0.1, 0.2
"""Parts for one beside what all places share, and for the bound of that."""

_T = TypeVar("_T", bound=np.generic)

_OF_PLACES = ("values", "tried", "n", "centre", "holed")
"""Arrays with a row for each place."""


@dataclass(frozen=True)
class Levels:
    """Levels of places and their uncertainty; arrays are (places,).

    `scatter` has the standard errors of means. `holed` places have a value of -inf;
    `ordered` is True for the method order. `tried` are the values that can convict.
    `own_part` is the part of a risk for the scatter of a place alone.
    """

    values: Floats
    tried: Floats
    n: Integers
    centre: Floats
    scatter: Scatter
    holed: Marks
    ordered: bool
    order: Order
    own_part: float

    def lower(self, risk: float) -> Floats:
        """Return lower bounds, each wrong at this risk; -inf with too few units."""
        return self._in_parts(lambda part: part._lower(risk))

    def upper(self, risk: float) -> Floats:
        """Return upper bounds, each wrong at this risk; inf with too few units."""
        return self._in_parts(lambda part: part._upper(risk))

    def p_below(
        self, limit: float, first: int = 0, common_risk: float | None = None
    ) -> Floats:
        """Return p of 'the level reaches the limit' for each place; small: it is below.

        The first units have chosen a place that is judged by order statistics, and do
        not count for it. 1 with too few units. `common_risk`: the risk of all places of
        a machine together for a bound on what the places share; None without.
        """
        return self._in_parts(lambda part: part._p_below(limit, first, common_risk))

    def more(self, limit: float, risks: tuple[float, float], width: float) -> Integers:
        """Project how many further units of each place would probably decide.

        `risks` are those of a pass and of a fail. 0: it is decided, or the level is
        known to +/- width and lies that close to the limit. -1: more than 1000.

        t: until the half width of the bound, with the present scatter, is at most the
        distance from the limit, or the width if that is more.
        """
        return self._in_parts(lambda part: part._more(limit, risks, width))

    def _in_parts(self, function: Callable[["Levels"], NDArray[_T]]) -> NDArray[_T]:
        """Return the results of a function of these levels, some places at a time."""
        return in_parts(lambda rows: function(self._part(rows)), len(self.centre))

    def _part(self, rows: slice) -> "Levels":
        own = {name: getattr(self, name)[rows] for name in _OF_PLACES}
        return replace(self, **own, scatter=self.scatter.part(rows))

    def _lower(self, risk: float) -> Floats:
        if self.ordered:
            return self.order.lower(self.values, risk)
        bound = np.where(self._bounded, self.centre - self._half_width(risk), -np.inf)
        bound[self.holed] = self.order.lower(self.values[self.holed], risk)
        return bound

    def _upper(self, risk: float) -> Floats:
        if self.ordered:
            return self.order.upper(self.values, risk)
        part = self.own_part
        half = self._half_width(risk * (1 - part))
        if part:
            counts, place = np.unique(np.maximum(self.n - 1, 1), return_inverse=True)
            quantile = scipy.special.stdtrit(counts, 1 - risk * part)[place]
            by_own = quantile * self.scatter.own
            by_own = np.fmax(by_own, self._floor_width(risk * part))
            half = np.fmin(half, by_own)
        return np.where(self._bounded, self.centre + half, np.inf)

    def _p_below(self, limit: float, first: int, common_risk: float | None) -> Floats:
        if self.ordered:
            return self.order.sign_test(self.tried, limit, first)
        scatter, part = self.scatter, self.own_part
        distance = self.centre - limit
        with np.errstate(invalid="ignore", divide="ignore"):
            by_floor = scipy.special.ndtr(distance / scatter.floor)
            by_t = scipy.special.stdtr(scatter.freedom, distance / scatter.error)
            p = [(by_t, 1 - part)]
            if part:
                freedom = np.maximum(self.n - 1, 1)
                p.append((scipy.special.stdtr(freedom, distance / scatter.own), part))
            if common_risk is not None and not np.isnan(scatter.common.error):
                luck = scatter.common.bound(_COMMON * common_risk)
                apart = (distance + luck) / scatter.apart
                by_rest = scipy.special.stdtr(scatter.apart_freedom, apart)
                p[0] = (by_t, 1 - part - _APART - _COMMON)
                p.append((by_rest, _APART))
        smallest = np.fmin.reduce([np.fmax(each, by_floor) / w for each, w in p])
        return np.where(self._bounded, np.fmin(smallest, 1.0), 1.0)

    def _more(self, limit: float, risks: tuple[float, float], width: float) -> Integers:
        lower, upper = self._lower(risks[0]), self._upper(risks[1])
        with np.errstate(invalid="ignore"):  # both may be -inf
            known = upper - lower <= 2 * width
        done = (lower >= limit) | (upper < limit) | known
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

    @cached_property
    def _freedoms(self) -> tuple[Floats, NDArray[np.intp]]:
        """The distinct degrees of freedom, and which of them each place has."""
        return np.unique(self.scatter.freedom, return_inverse=True)

    @property
    def _bounded(self) -> Marks:
        return (self.n >= T_SMALLEST_N) & ~np.isnan(self.scatter.error)

    def _half_width(self, risk: float) -> Floats:
        freedom, place = self._freedoms
        with np.errstate(invalid="ignore"):
            by_t = scipy.special.stdtrit(freedom, 1 - risk)[place] * self.scatter.error
        half = np.fmax(by_t, self._floor_width(risk))
        return np.where(self._bounded, half, np.inf)

    def _floor_width(self, risk: float) -> Floats:
        return np.asarray(-scipy.special.ndtri(risk) * self.scatter.floor)


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
    if ordered:
        centre, scatter = quantiles(values, below), unknown(len(values))
    else:
        finite = tried
        if holed.any():
            finite = np.where(np.isneginf(tried), worst, tried)
        centre = means(finite)
        times = times or Times(rest_correlation(tried, shared=shared))
        scatter = scatter_of(finite, holed, floor, times, shared=shared)
    needed = ordered or holed.any()
    rho = serial.stepped(serial.correlation(scores(values)).used) if needed else 0.0
    order = Order(rho, below)
    own_part = _OWN if len(values) > 1 else 0.0  # the scatter of one place is all
    return Levels(values, tried, n, centre, scatter, holed, ordered, order, own_part)
