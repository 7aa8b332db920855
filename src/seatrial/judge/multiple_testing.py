"""Multiple testing: convictions, suspects, and the risk of each look."""

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_MOST_P = 0.99


def holm(p: Floats, risk: float) -> Flags:
    """Reject hypotheses; the risk is that of any wrong one among them (Holm 1979).

    It holds for any dependence between the p. A NaN counts and is not rejected.
    """
    return holm_adjusted(p) <= risk


def holm_adjusted(p: Floats) -> Floats:
    """Return the smallest risk at which Holm rejects each hypothesis, at most 1."""
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(np.arange(len(p), 0, -1) * p[order])
    return np.minimum(adjusted, 1.0)


def discoveries(p: Floats, risk: float) -> Flags:
    """Pick hypotheses; the risk is the expected share of wrong ones among the picked.

    Benjamini and Hochberg 1995, for independent or positively dependent p. A NaN counts
    and is not picked.
    """
    adjusted = scipy.stats.false_discovery_control(np.nan_to_num(p, nan=1.0))
    return (np.asarray(adjusted) <= risk) & ~np.isnan(p)


def cauchy(p: Floats) -> Floats:
    """Combine the p of each place, shape (places, metrics), NaN = none, to (places,).

    The Cauchy combination, for metrics that depend on each other (Liu and Xie, Journal
    of the American Statistical Association 115, 2020). It is approximate: by simulation
    1 % is up to 1.25 % with 10 metrics, 1.35 % with 20; so it only picks suspects. A p
    above 0.99 counts as 0.99, or one metric with p = 1 would outweigh all others (Fang
    et al., Statistica Sinica 33, 2023). 1 for a place without a metric.
    """
    there = ~np.isnan(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        cotangent = 1 / np.tan(np.pi * np.minimum(p, _MOST_P))
        mean = np.sum(cotangent, axis=1, where=there) / np.sum(there, axis=1)
    return np.where(there.any(axis=1), np.arctan2(1.0, mean) / np.pi, 1.0)


def rank_p(values: Floats) -> Floats:
    """Return p of 'this place is like the others' for each; small: it is worse.

    Values have the shape (places, units), higher is better, NaN was not measured. In
    each unit p is the share of places that are not better, itself included; Fisher's
    method combines the units. 1 for a place that was not measured.
    """
    measured = ~np.isnan(values)
    ranks = scipy.stats.rankdata(values, method="max", axis=0, nan_policy="omit")
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(ranks / np.sum(measured, axis=0))
    units = np.sum(measured, axis=1)
    p = scipy.stats.chi2.sf(-2 * np.sum(logs, axis=1, where=measured), 2 * units)
    return np.where(units > 0, p, 1.0)


def share_of_look(units: Sequence[float], looks: int, cap: float) -> float:
    """Return the part of the risks that the newest of some looks may spend.

    `units` were measured by the end of each look so far, of at most `cap`; the last of
    the `looks` that are allowed spends all that is left. The parts of all looks sum to
    at most 1: spending of Pocock's type, ln(1 + (e - 1) * share), by the share of
    `cap` (Lan and DeMets, Biometrika 70, 1983). A look without new units spends 0.
    """
    shares = [min(1.0, number / cap) for number in units]
    if len(shares) == looks:
        shares[-1] = 1.0
    *earlier, last = (math.log1p((math.e - 1) * share) for share in shares)
    return max(0.0, last - max(earlier, default=0.0))
