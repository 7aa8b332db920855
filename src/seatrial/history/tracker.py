"""Nodes night by night: a suspect is watched, and convicted by fresh nights only.

A node is watched when its evidence reaches `WATCHED`, which a sound node does about
once in so many visits. While it is watched, only its visits from then on count, against
a loss of at least the margin. So a year has about visits / WATCHED false watches, and
each becomes a false alarm with a probability of at most 1 / needed. Baselines that are
wrong by chance are what the margin is for; `seatrial simulate --scenario nightly` shows
that the declared number holds.
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
    `weights` tell which metrics began it, `logs` are the logarithms of the evidence,
    `levels` the sums of the signals.
    """

    since: Integers
    visits: Integers
    mean: Floats
    spread: Floats
    weights: Floats
    logs: Floats
    levels: Floats
    measured: Integers

    @classmethod
    def none(cls, nodes: int, metrics: int) -> "Fresh":
        """Return that of a machine without watched nodes."""
        size = (nodes, metrics)
        return cls(
            since=np.full(nodes, -1),
            visits=np.zeros(nodes, dtype=np.int64),
            mean=np.zeros(size),
            spread=np.zeros(size),
            weights=np.zeros(size),
            logs=np.zeros(size),
            levels=np.zeros(size),
            measured=np.zeros(size, dtype=np.int64),
        )

    def evidence(self, nodes: Integers) -> Floats:
        """Return the e-values of watched nodes: of their metrics, half by those that
        began the watch."""
        values = np.exp(np.minimum(self.logs[nodes], 300))
        known = self.measured[nodes] > 0
        began = (self.weights[nodes] * np.where(known, values, 1)).sum(axis=1)
        return np.asarray((began + mean_of(values, known)) / 2)


@dataclass(frozen=True)
class Confirmed:
    """Convicted nodes of a night; the other arrays are (nodes, metrics).

    `before` and `after` are signals; `since` is the first night of the watch.
    """

    nodes: Integers
    since: Integers
    evidence: Floats
    before: Floats
    after: Floats


class Tracker:
    """The nodes of one class after some nights.

    They scatter alike but for factors that their baselines show. `needed` is the fresh
    evidence of an alarm, if each node is measured as often as the rules say.
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

    def night(self, night: int, nodes: Integers, signals: Floats) -> Confirmed:
        """Take the visits of a night, (nodes, metrics); return the convicted nodes."""
        is_watched = self.fresh.since[nodes] >= 0
        confirmed = self._follow(night, nodes[is_watched], signals[is_watched])
        others = nodes[~is_watched]
        sums, means, spreads = self.detector.visit(night, others, signals[~is_watched])
        begun = sums >= WATCHED
        self._watch(night, others[begun], means[begun], spreads[begun])
        return confirmed

    def forget(self, nodes: Integers) -> None:
        """Begin these nodes anew: they have another configuration."""
        self.detector.forget(nodes)
        self.fresh.since[nodes] = -1

    def _watch(self, night: int, nodes: Integers, mean: Floats, spread: Floats) -> None:
        fresh, sums = self.fresh, self.detector.sums[nodes]
        fresh.since[nodes], fresh.visits[nodes] = night, 0
        fresh.mean[nodes], fresh.spread[nodes] = mean, spread
        fresh.weights[nodes] = sums / sums.sum(axis=1, keepdims=True)
        for zeroed in (fresh.logs, fresh.levels, fresh.measured):
            zeroed[nodes] = 0

    def _follow(self, night: int, nodes: Integers, signals: Floats) -> Confirmed:
        """Take fresh visits of watched nodes."""
        fresh, detector = self.fresh, self.detector
        with np.errstate(invalid="ignore", divide="ignore"):
            residuals = signals - fresh.mean[nodes] + self.margin
            residuals = residuals / fresh.spread[nodes]
        residuals[~np.isfinite(residuals)] = np.nan
        power = detector.news(night, nodes)[:, np.newaxis]
        gained = power * np.log(bet(detector.baselines.scores(residuals)))
        known = ~np.isnan(gained)
        fresh.logs[nodes] += np.where(known, gained, 0)
        fresh.levels[nodes] += np.where(known, signals, 0)
        fresh.measured[nodes] += known
        fresh.visits[nodes] += 1
        detector.last[nodes] = night
        evidence = fresh.evidence(nodes)
        convicted = evidence >= self.needed
        confirmed = self._confirmed(nodes[convicted], evidence[convicted])
        over = (evidence < _DROPPED) | (fresh.visits[nodes] >= self.rules.most_visits)
        self._end(nodes[convicted | over])
        detector.forget(nodes[convicted])
        return confirmed

    def _end(self, nodes: Integers) -> None:
        self.fresh.since[nodes] = -1
        self.detector.restart(nodes)

    def _confirmed(self, nodes: Integers, evidence: Floats) -> Confirmed:
        fresh = self.fresh
        with np.errstate(invalid="ignore", divide="ignore"):
            after = fresh.levels[nodes] / fresh.measured[nodes]
        before = fresh.mean[nodes].copy()
        return Confirmed(nodes, fresh.since[nodes].copy(), evidence, before, after)


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
