"""The nodes of one class, and the class as a whole, night by night.

The level of a night is the median over the nodes of the logarithm of a number, less
what the baseline of the node says about the node. So neither the choice of nodes nor
a change of some of them moves the level. The signal of a node is its logarithm less
this level; the signal of the class is the level itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.history.detector import Floats, Integers, Marks
from seatrial.history.past import Fall, Past, fall_of
from seatrial.history.rules import Rules
from seatrial.history.tracker import OF_HISTORY, OF_NODES, Convicted, Tracker
from seatrial.judge.order_statistics import medians

_FEWEST = 3
"""Nodes that have a typical one."""

_KNOWN = 0.1
"""Share of the nodes of a night that must have a baseline to set the level alone."""

_ALL = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class Conviction:
    """A confirmed loss or gain of a node, or of the class as a whole (node 0).

    `kept` are the visits of its baseline, None if that is of an earlier configuration.
    """

    node: int
    night: int
    evidence: float
    fall: Fall
    kept: NDArray[np.float32] | None


class Series:
    """Series with their detectors of losses and of gains."""

    def __init__(
        self, series: int, metrics: int, rules: Rules, *, every: int, alarms: float
    ) -> None:
        self.losses, self.gains = (
            Tracker(series, metrics, rules, every=every, alarms=alarms)
            for _ in range(2)
        )
        self.past = Past.empty(series, metrics)
        self.begun = np.zeros(series, dtype=np.int64)
        self._before = np.zeros(series, dtype=np.int64)

    def begin(self, night: int, series: Integers) -> None:
        """Begin anew: what came before this night is no part of a later onset."""
        self.begun[series] = self._before[series] = night

    def forget(self, night: int, series: Integers) -> None:
        """Forget the baselines of these series."""
        self.losses.forget(series)
        self.gains.forget(series)
        self.begin(night, series)

    def compare(self, night: int, series: Integers) -> None:
        """Begin new baselines, and compare the next visits with the old ones."""
        over = series[~self.losses.compared[series]]
        self._before[over] = self.begun[over]
        self.begun[series] = night
        self.losses.compare(night, series)
        self.gains.forget(series)

    def restore(self, night: int, one: int, kept: NDArray[np.float32] | None) -> None:
        """Restore the old baseline of a recovered series, or begin a new one."""
        self.forget(night, np.array([one]))
        if kept is not None:
            self.losses.restore(one, kept)
            self.gains.restore(one, -kept)

    def night(
        self, night: int, series: Integers, signals: Floats
    ) -> tuple[list[Conviction], list[Conviction]]:
        """Add the visits of a night; return the confirmed losses and gains."""
        self.past.add(night, series, signals)
        lost = self.losses.night(night, series, signals)
        gained = self.gains.night(night, series, -signals)
        losses = self._convictions(night, lost, self.losses, 1)
        gains = self._convictions(night, gained, self.gains, -1)
        self.begin(night + 1, lost.series[~lost.compared])
        self.gains.forget(lost.series)
        return losses, gains

    def _convictions(
        self, night: int, found: Convicted, tracker: Tracker, sign: int
    ) -> list[Conviction]:
        convictions = []
        for row, one in enumerate(found.series.tolist()):
            compared = bool(found.compared[row])
            begun = (self._before if compared else self.begun)[one]
            nights, signals = self.past.since(one, int(begun))
            fall = fall_of(
                nights,
                sign * signals,
                found.mean[row],
                found.spread[row],
                found.logs[row],
                margin=tracker.margin,
                correlation=tracker.rules.autocorrelation,
            )
            kept = None if compared else found.kept[row]
            evidence = float(found.evidence[row])
            convictions.append(Conviction(one, night, evidence, fall, kept))
        return convictions


@dataclass(frozen=True)
class Found:
    """Confirmed losses and gains of a night, of nodes and of the class."""

    losses: list[Conviction]
    gains: list[Conviction]
    class_losses: list[Conviction]
    class_gains: list[Conviction]


class Part:
    """The nodes of one class; `share` is their part of all nodes, of `classes`.

    `level` (metrics,) is the level of the last night that has one.
    """

    def __init__(
        self,
        nodes: int,
        signs: Floats,
        rules: Rules,
        share: float = 1,
        classes: int = 1,
    ) -> None:
        metrics = len(signs)
        alarms = rules.alarms_a_year * OF_HISTORY
        of_nodes = alarms * OF_NODES * share
        of_class = alarms * (1 - OF_NODES) / classes
        self.nodes = Series(nodes, metrics, rules, every=rules.every, alarms=of_nodes)
        self.whole = Series(1, metrics, rules, every=1, alarms=of_class)
        self.level = np.full(metrics, np.nan)
        self.margin = self.nodes.losses.margin
        self._signs = signs
        self._places = np.zeros((nodes, metrics))
        self._total = np.zeros((nodes, metrics))
        self._count = np.full((nodes, metrics), -1)
        self._least = min(nodes, _FEWEST)

    @property
    def watched(self) -> Integers:
        """The nodes that are measured every night."""
        return self.nodes.losses.watched

    def night(
        self,
        night: int,
        nodes: Integers,
        values: Floats,
        changed: Marks | None = None,
        repaired: Marks | None = None,
    ) -> Found:
        """Add the values of a night, (nodes, metrics), NaN without a number.

        The marks say which nodes have a new configuration, or were repaired, since
        their last visit.
        """
        if repaired is not None and repaired.any():
            self.nodes.forget(night, nodes[repaired])
            self._places[nodes[repaired]] = 0
            self._total[nodes[repaired]] = self._count[nodes[repaired]] = 0
        if changed is not None and changed.any():
            self.nodes.compare(night, nodes[changed])
            self._total[nodes[changed]] = self._count[nodes[changed]] = 0
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = self._signs * np.log(np.where(values > 0, values, np.nan))
        level = self._level(nodes, logs)
        enough = (~np.isnan(logs)).sum(axis=0) >= _FEWEST
        signals = np.where(enough, logs - level, np.nan)
        counts = ~np.isnan(signals) & (self._count[nodes] >= 0)
        self._total[nodes] += np.where(counts, signals, 0)
        self._count[nodes] += counts
        seen = ~np.isnan(signals).all(axis=1)
        losses, gains = self.nodes.night(night, nodes[seen], signals[seen])
        whole: tuple[list[Conviction], list[Conviction]] = ([], [])
        if not np.isnan(level).all():
            whole = self.whole.night(night, _ALL, level[np.newaxis])
            self.level = np.where(np.isnan(level), self.level, level)
        return Found(losses, gains, *whole)

    def value(self, metric: int, signal: float, *, relative: bool) -> float:
        """Convert a signal to the unit of its metric; of a node, at today's level."""
        level = self.level[metric] if relative else 0.0
        return float(np.exp(self._signs[metric] * (signal + level)))

    def _level(self, nodes: Integers, logs: Floats) -> Floats:
        """Return the level of a night, (metrics,); NaN without enough nodes.

        By the nodes that have a baseline, or a visit since the change that ended it. If
        these are few, by all.
        """
        mean = self.nodes.losses.detector.mean[nodes]
        count = self._count[nodes]
        few = np.where(count > 0, self._total[nodes] / np.maximum(count, 1), np.nan)
        mean = np.where(np.isnan(mean), few, mean)
        has = ~np.isnan(mean)
        self._places[nodes] = np.where(has, mean, self._places[nodes])
        rest = logs - self._places[nodes]
        measured = ~np.isnan(rest)
        sure = has & measured
        count = measured.sum(axis=0)
        alone = sure.sum(axis=0) >= np.maximum(self._least, _KNOWN * count)
        used = np.where(alone, sure, measured)
        level = medians(np.where(used, rest, np.nan).T)
        return np.where(count >= self._least, level, np.nan)
