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


def sigmas(k: float) -> Rule:
    """Flag what is below mean - k standard deviations of all places."""

    def rule(drawn: Drawn) -> Flags:
        middle = np.median(drawn.values, axis=2)
        spread = middle.std(axis=1, keepdims=True)
        return np.asarray(middle < middle.mean(axis=1, keepdims=True) - k * spread)

    return rule


def mads(k: float) -> Rule:
    """Flag what is below median - k median absolute deviations (as sigma)."""

    def rule(drawn: Drawn) -> Flags:
        middle = np.median(drawn.values, axis=2)
        centre = np.median(middle, axis=1, keepdims=True)
        spread = np.median(np.abs(middle - centre), axis=1, keepdims=True)
        return np.asarray(middle < centre - k * _SIGMA_OF_MAD * spread)

    return rule


RULES: dict[str, Rule] = {
    "5 %": fixed_tolerance,
    "2 sigma": sigmas(2),
    "3 sigma": sigmas(3),
    "2 MAD": mads(2),
    "3 MAD": mads(3),
}


def flagged_nodes(drawn: Drawn, flags: Flags) -> frozenset[str]:
    """Return the nodes that a rule blames: both nodes of a flagged pair."""
    names = np.array(drawn.machine.names or [""])
    places = np.flatnonzero(flags.any(axis=0))
    if len(drawn.ends):
        places = np.unique(drawn.ends[places])
    return frozenset(names[places].tolist()) - {""}
