"""Nodes night by night: a suspect is watched, and convicted by fresh nights only.

A watch begins when the evidence against a node reaches `WATCHED`. A sound node reaches
it about once in `WATCHED` visits. From then on only new visits count, and only a loss
above the margin. So a year has about visits / WATCHED false watches, and each becomes a
false alarm with a probability of at most 1 / needed. The margin allows for baselines
that are wrong by chance. `seatrial simulate --scenario nightly` counts false alarms.
"""

from dataclasses import dataclass

import numpy as np

from seatrial.history.detector import Detector, Floats, Integers, Marks, bet, mean_of
from seatrial.history.rules import Rules

NIGHTS_A_YEAR = 365
WATCHED = 15.0
"""Evidence from which a node is watched."""

_DROPPED = 0.05
"""Fresh evidence below which it is watched no more."""

OF_HISTORY = 0.5
"""Part of the yearly alarms for history; the limits of each night have the rest."""

OF_NODES = 0.8
"""Part of these for nodes; the machine as a whole has the rest."""


@dataclass
class Fresh:
    """The fresh visits of watched nodes; `since` is -1 for the others.

    `mean` and `spread` (nodes, metrics) are the baseline at the start of the watch,
    `weights` the shares of the metrics in the evidence that began it. `logs` are the
    logarithms of the fresh evidence, `measured` counts the visits with a number.
    """

    since: Integers
    visits: Integers
    mean: Floats
    spread: Floats
    weights: Floats
    logs: Floats
    measured: Integers

    @classmethod
    def none(cls, nodes: int, metrics: int) -> "Fresh":
        """Return the state without watched nodes."""
        size = (nodes, metrics)
        return cls(
            since=np.full(nodes, -1),
            visits=np.zeros(nodes, dtype=np.int64),
            mean=np.zeros(size),
            spread=np.zeros(size),
            weights=np.zeros(size),
            logs=np.zeros(size),
            measured=np.zeros(size, dtype=np.int64),
        )

    def evidence(self, nodes: Integers) -> Floats:
        """Return the evidence against watched nodes, an e-value each.

        Half of it comes from the metrics that began the watch, half from all metrics.
        """
        values = np.exp(np.minimum(self.logs[nodes], 300))
        known = self.measured[nodes] > 0
        began = (self.weights[nodes] * np.where(known, values, 1)).sum(axis=1)
        return np.asarray((began + mean_of(values, known)) / 2)


class Tracker:
    """The nodes of one class after some nights.

    `needed` is the fresh evidence from which a node is convicted. It holds the declared
    number of false alarms if each node is measured as often as the rules say.
    """

    def __init__(self, nodes: int, metrics: int, rules: Rules) -> None:
        self.rules = rules
        self.detector = Detector.empty(nodes, metrics, rules.autocorrelation)
        self.fresh = Fresh.none(nodes, metrics)
        visits = nodes / rules.every * NIGHTS_A_YEAR
        alarms = rules.alarms_a_year * OF_HISTORY * OF_NODES
        self.needed = max(visits / WATCHED / alarms, 1 / _DROPPED)
        self.margin = -np.log1p(-rules.margin)

    @property
    def watched(self) -> Integers:
        """The nodes that are measured every night."""
        return np.flatnonzero(self.fresh.since >= 0)

    def night(self, night: int, nodes: Integers, signals: Floats) -> Integers:
        """Update the state by the visits of a night; return the convicted nodes.

        `signals` has the shape (nodes, metrics), NaN without a number.
        """
        is_watched = self.fresh.since[nodes] >= 0
        convicted = self._follow(night, nodes[is_watched], signals[is_watched])
        others = nodes[~is_watched]
        sums, means, spreads = self.detector.visit(night, others, signals[~is_watched])
        begun = sums >= WATCHED
        self._watch(night, others[begun], means[begun], spreads[begun])
        return convicted

    def forget(self, nodes: Integers) -> None:
        """Forget these nodes: their configuration has changed, or a loss is known."""
        self.detector.forget(nodes)
        self.fresh.since[nodes] = -1

    def _watch(self, night: int, nodes: Integers, mean: Floats, spread: Floats) -> None:
        fresh, sums = self.fresh, self.detector.sums[nodes]
        fresh.since[nodes], fresh.visits[nodes] = night, 0
        fresh.mean[nodes], fresh.spread[nodes] = mean, spread
        fresh.weights[nodes] = sums / sums.sum(axis=1, keepdims=True)
        fresh.logs[nodes], fresh.measured[nodes] = 0, 0

    def _follow(self, night: int, nodes: Integers, signals: Floats) -> Integers:
        """Update watched nodes by their visits of a night; return the convicted."""
        fresh, detector = self.fresh, self.detector
        with np.errstate(invalid="ignore", divide="ignore"):
            residuals = signals - fresh.mean[nodes] + self.margin
            residuals = residuals / fresh.spread[nodes]
        residuals[~np.isfinite(residuals)] = np.nan
        power = detector.news(night, nodes)[:, np.newaxis]
        gained = power * np.log(bet(detector.baselines.scores(residuals)))
        known = ~np.isnan(gained)
        fresh.logs[nodes] += np.where(known, gained, 0)
        fresh.measured[nodes] += known
        fresh.visits[nodes] += 1
        detector.last[nodes] = night
        evidence = fresh.evidence(nodes)
        convicted = evidence >= self.needed
        over = (evidence < _DROPPED) | (fresh.visits[nodes] >= self.rules.most_visits)
        fresh.since[nodes[over]] = -1
        detector.restart(nodes[over])
        self.forget(nodes[convicted])
        return nodes[convicted]


def signals_of(values: Floats, signs: Floats) -> Floats:
    """Return the signals of the nodes of a class in one night, (nodes, metrics).

    The logarithm of a value less the median of the class, of three nodes at least; NaN
    without. `signs` (metrics,) are 1 where higher values are better, else -1.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = signs * np.log(np.where(values > 0, values, np.nan))
    enough: Marks = (~np.isnan(logs)).sum(axis=0) >= 3
    typical = np.full(values.shape[1], np.nan)
    if enough.any():
        typical[enough] = np.nanmedian(logs[:, enough], axis=0)
    return np.asarray(logs - typical)
