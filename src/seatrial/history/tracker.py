"""Series night by night: a suspect is watched, and convicted by fresh nights only.

A watch begins when the evidence against a node reaches `WATCHED`. A sound node reaches
it about once in `WATCHED` visits. From then on only new visits count, and only a loss
above the margin. So a year has about visits / WATCHED false watches, and each becomes a
false alarm with a probability of at most 1 / needed.

A watch often begins because a baseline is wrong by chance, in its mean or its scatter.
The margin allows for the mean, and a series has the scatter of a typical one at least.
`seatrial simulate --scenario nightly` counts false alarms.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.history.detector import (
    DEPTH,
    Detector,
    Floats,
    Integers,
    Marks,
    bet,
    mean_of,
)
from seatrial.history.rules import Rules
from seatrial.judge.order_statistics import medians

NIGHTS_A_YEAR = 365
WATCHED = 15.0
"""Evidence from which a node is watched."""

_DROPPED = 0.05
"""Fresh evidence below which it is watched no more."""

_FEW_NIGHTS = 30
"""Nights from which the visits a year are known."""

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


@dataclass(frozen=True)
class Convicted:
    """Convicted series, their `evidence`, and the watch that convicted them.

    `mean`, `spread` and `logs` (series, metrics) are those of `Fresh`. `compared` marks
    those compared with the baseline of an earlier configuration. `kept` are the visits
    of the baselines, for `Tracker.restore`.
    """

    series: Integers
    evidence: Floats
    mean: Floats
    spread: Floats
    logs: Floats
    compared: Marks
    kept: NDArray[np.float32]


class Tracker:
    """The series of one class after some nights: its nodes, or the class as a whole.

    Each is measured within `every` nights, and `alarms` a year may be false. `needed`
    is the fresh evidence from which a series is convicted: the number of watches a year
    for each false alarm. The watches are those that are expected, or those that
    happened so far if these are more. `compared` marks series that are compared with
    the baseline of an earlier configuration while they learn a new one.
    """

    def __init__(
        self, series: int, metrics: int, rules: Rules, *, every: int, alarms: float
    ) -> None:
        self.rules, self.alarms = rules, alarms
        self.detector = Detector.empty(series, metrics, rules.autocorrelation)
        self.fresh = Fresh.none(series, metrics)
        self.compared = np.zeros(series, dtype=bool)
        self.margin = -np.log1p(-rules.margin)
        self._planned = series / every * NIGHTS_A_YEAR
        self._typical = np.zeros(metrics)
        self._visits = self._comparisons = 0
        self._first = -1

    def needed(self, night: int) -> float:
        """Return the evidence that convicts in this night."""
        nights = night - max(self._first, 0) + 1
        seen = self._visits * NIGHTS_A_YEAR / max(nights, _FEW_NIGHTS)
        compared = self._comparisons * NIGHTS_A_YEAR / max(nights, NIGHTS_A_YEAR)
        watches = max(self._planned, seen) / WATCHED + compared
        return float(max(watches / self.alarms, 1 / _DROPPED))

    @property
    def watched(self) -> Integers:
        """The series that are measured every night."""
        nodes = np.flatnonzero(self.fresh.since >= 0)
        suspect = ~self.compared[nodes] | (self.fresh.evidence(nodes) >= WATCHED)
        return nodes[suspect]

    def night(self, night: int, series: Integers, signals: Floats) -> Convicted:
        """Update the state by the visits of a night; return the convicted series.

        `signals` has the shape (series, metrics), NaN without a number.
        """
        if self._first < 0:
            self._first = night
        follows = self.fresh.since[series] >= 0
        learns = follows & self.compared[series]
        convicted = self._follow(night, series[follows], signals[follows])
        self.detector.baselines.add(series[learns], signals[learns])
        others = series[~follows]
        self._visits += len(others)
        sums, means, spreads = self.detector.visit(night, others, signals[~follows])
        typical = medians(spreads.T)
        self._typical = np.where(np.isnan(typical), self._typical, typical)
        begun = sums >= WATCHED
        self._watch(night, others[begun], means[begun], spreads[begun])
        return convicted

    def forget(self, series: Integers) -> None:
        """Forget these series: they were repaired, or a loss is known."""
        self.detector.forget(series)
        self.fresh.since[series] = -1
        self.compared[series] = False

    def compare(self, night: int, series: Integers) -> None:
        """Begin new baselines; compare the next visits with the old ones.

        Series without a baseline only begin a new one.
        """
        mean, spread = self.detector.baselines.of(series)
        fresh = self.fresh
        follows = fresh.since[series] >= 0
        again = series[follows]
        mean[follows], spread[follows] = fresh.mean[again], fresh.spread[again]
        known = ~np.isnan(mean).all(axis=1)
        old = series[known]
        self.detector.sums[old] = np.where(np.isnan(mean[known]), 0, 1)
        self._watch(night, old, mean[known], spread[known])
        self.forget(series)
        fresh.since[old] = night
        self.compared[old] = True
        self._comparisons += len(old)

    def restore(self, one: int, kept: NDArray[np.float32]) -> None:
        """Restore the old baseline of a series, without its newest visits."""
        self.forget(np.array([one]))
        self.detector.baselines.recent[one] = kept
        self.detector.baselines.recent[one, :, DEPTH:] = np.nan

    def _watch(
        self, night: int, series: Integers, mean: Floats, spread: Floats
    ) -> None:
        fresh, sums = self.fresh, self.detector.sums[series]
        fresh.since[series], fresh.visits[series] = night, 0
        fresh.mean[series], fresh.spread[series] = mean, spread
        fresh.weights[series] = sums / sums.sum(axis=1, keepdims=True)
        fresh.logs[series], fresh.measured[series] = 0, 0

    def _follow(self, night: int, series: Integers, signals: Floats) -> Convicted:
        """Update watched series by their visits of a night; return the convicted."""
        fresh, detector = self.fresh, self.detector
        if not series.size:
            return self._convict(series, np.zeros(0))
        with np.errstate(invalid="ignore", divide="ignore"):
            residuals = signals - fresh.mean[series] + self.margin
            residuals = residuals / np.fmax(fresh.spread[series], self._typical)
        residuals[~np.isfinite(residuals)] = np.nan
        power = detector.news(night, series)[:, np.newaxis]
        gained = power * np.log(bet(detector.baselines.scores(residuals)))
        known = ~np.isnan(gained)
        fresh.logs[series] += np.where(known, gained, 0)
        fresh.measured[series] += known
        fresh.visits[series] += 1
        detector.last[series] = night
        evidence = fresh.evidence(series)
        bad = evidence >= self.needed(night)
        over = (evidence < _DROPPED) | (fresh.visits[series] >= self.rules.most_visits)
        over &= ~bad
        fresh.since[series[over]] = -1
        self.compared[series[over]] = False
        detector.restart(series[over])
        return self._convict(series[bad], evidence[bad])

    def _convict(self, series: Integers, evidence: Floats) -> Convicted:
        fresh, compared = self.fresh, self.compared[series]
        convicted = Convicted(
            series=series,
            evidence=evidence,
            mean=fresh.mean[series],
            spread=fresh.spread[series],
            logs=fresh.logs[series],
            compared=compared,
            kept=self.detector.baselines.recent[series],
        )
        self.forget(series[~compared])
        fresh.since[series], self.compared[series] = -1, False
        return convicted
