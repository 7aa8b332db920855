"""The rules of other suites, which hold one value against one bound."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from seatrial.calibration.simulate.draw import Drawn

Flags = NDArray[np.bool_]
Rule = Callable[[Drawn], Flags]

_SIGMA_OF_MAD = 1.4826
"""The standard deviation over the MAD of normal numbers."""


def fixed_tolerance(drawn: Drawn) -> Flags:
    """Flag a median of repeats that is more than 5 % below the reference.

    The reference is where the limit is just 5 % below it; for sameness of nodes it is
    their median.
    """
    middle = np.median(drawn.values, axis=2)
    if drawn.machine.kind != "sameness":
        return np.asarray(middle < drawn.machine.bound)
    return np.asarray(middle < 0.95 * np.median(middle, axis=1, keepdims=True))


def _outliers(k: float, *, robust: bool) -> Rule:
    """Flag what is more than k standard deviations below the mean of all places.

    robust: k median absolute deviations (as sigma) below their median.
    """

    def rule(drawn: Drawn) -> Flags:
        middle = np.median(drawn.values, axis=2)
        average = np.median if robust else np.mean
        centre = average(middle, axis=1, keepdims=True)
        if robust:
            deviations = np.abs(middle - centre)
            spread = _SIGMA_OF_MAD * np.median(deviations, axis=1, keepdims=True)
        else:
            spread = middle.std(axis=1, keepdims=True)
        return np.asarray(middle < centre - k * spread)

    return rule


RULES: dict[str, Rule] = {
    "5 %": fixed_tolerance,
    "2 sigma": _outliers(2, robust=False),
    "3 sigma": _outliers(3, robust=False),
    "2 MAD": _outliers(2, robust=True),
    "3 MAD": _outliers(3, robust=True),
}


def flagged_nodes(drawn: Drawn, flags: Flags) -> frozenset[str]:
    """Return the nodes that a rule blames: both nodes of a flagged pair."""
    names = np.array(drawn.machine.names or [""])
    places = np.flatnonzero(flags.any(axis=0))
    if len(drawn.ends):
        places = np.unique(drawn.ends[places])
    return frozenset(names[places].tolist()) - {""}
