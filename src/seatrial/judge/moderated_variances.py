"""Variances of many places, each of few units, that strengthen each other.

Places of one kind scatter alike. So the variance of a place is moderated: it moves
towards that of all places, the more, the less the places differ (Smyth, Statistical
Applications in Genetics and Molecular Biology 3, 2004). It only ever moves up: a place
that happens to scatter little is no better known than the others.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SET_ASIDE_P = 1e-4
_ROUNDING = 1e-12
"""A variance below this part of the largest is a rounding error of equal values."""

_SET_ASIDE_SHARE = 20
"""At most one place of so many, and at least one of four, is set aside."""


@dataclass(frozen=True)
class Moderated:
    """Variances and their degrees of freedom, (places,); NaN without any.

    `pooled` is the variance of all places, with `total` degrees of freedom.
    """

    variance: Floats
    freedom: Floats
    pooled: float
    total: float


def moderated(variance: Floats, freedom: Floats, apart: NDArray[np.bool_]) -> Moderated:
    """Moderate variances with their degrees of freedom, both (places,).

    A place whose variance is far above the others' keeps its own, and does not widen
    theirs; so do places `apart`.
    """
    known = np.isfinite(variance) & (freedom > 0)
    if not known.any():
        unknown = np.full(len(variance), np.nan)
        return Moderated(unknown, unknown, np.nan, 0.0)
    own, d = variance[known], freedom[known]
    wild = _wild(own, d)
    if not apart[known].all():
        wild |= apart[known]
    usual, usual_d = own[~wild], d[~wild]
    total = float(usual_d.sum())
    pooled = float(np.sum(usual * usual_d) / total)
    prior = _prior_freedom(usual, usual_d)
    del usual, usual_d
    result, result_d = np.full(len(variance), np.nan), np.full(len(variance), np.nan)
    shrunk = np.full(len(own), pooled)
    shrunk_d = np.full(len(own), total)
    if np.isfinite(prior):
        mixed = (prior * pooled + d * own) / (prior + d)
        above = mixed > pooled
        shrunk[above], shrunk_d[above] = mixed[above], (prior + d)[above]
        shrunk_d = np.minimum(shrunk_d, total)
    wild &= own > pooled
    shrunk[wild], shrunk_d[wild] = own[wild], d[wild]
    result[known], result_d[known] = shrunk, shrunk_d
    return Moderated(result, result_d, pooled, total)


def _wild(variance: Floats, freedom: Floats) -> NDArray[np.bool_]:
    """Mark places whose variance is far above the typical one."""
    wild = np.zeros(len(variance), dtype=bool)
    if len(variance) < 4:
        return wild
    usual = float(np.median(freedom))
    typical = np.median(variance) * usual / scipy.stats.chi2.median(usual)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.asarray(variance / typical)
    most = max(1, len(variance) // _SET_ASIDE_SHARE)
    worst = np.argsort(-np.nan_to_num(ratio), kind="stable")[:most]
    d = freedom[worst]
    wild[worst] = scipy.stats.f.sf(ratio[worst], d, freedom.sum() - d) < _SET_ASIDE_P
    return wild


def _prior_freedom(variance: Floats, freedom: Floats) -> float:
    """Return how many degrees of freedom the variance of all places is worth for one.

    By the scatter of the logarithms of variances beyond that of equal variances; inf if
    there is none.
    """
    usable = variance > _ROUNDING * variance.max(initial=0)
    if usable.sum() < 2:
        return np.inf
    half, place, count = np.unique(
        freedom[usable] / 2, return_inverse=True, return_counts=True
    )
    expected = scipy.special.digamma(half) - np.log(half)
    logs = np.log(variance[usable]) - expected[place]
    scatter = np.average(scipy.special.polygamma(1, half), weights=count)
    excess = np.var(logs, ddof=1) - scatter
    return 2 * _inverse_trigamma(float(excess)) if excess > 0 else np.inf


def _inverse_trigamma(x: float) -> float:
    """Solve trigamma(y) = x by Newton's method on 1 / trigamma (Smyth 2004)."""
    y = 0.5 + 1 / x
    for _ in range(50):
        trigamma = scipy.special.polygamma(1, y)
        step = trigamma * (1 - trigamma / x) / scipy.special.polygamma(2, y)
        y += step
        if -step / y < 1e-8:
            break
    return float(y)
