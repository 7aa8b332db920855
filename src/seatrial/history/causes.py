"""Changes of the configuration that may explain a loss."""

from collections.abc import Collection, Iterable
from math import comb
from typing import NamedTuple

import numpy as np
import scipy

from seatrial.history.detector import Floats, Integers, Marks
from seatrial.history.past import Past
from seatrial.history.records import Visits

LEVEL = 0.01
"""Risk of calling nodes different that lost the same."""

Span = tuple[int, int]


class Cause(NamedTuple):
    """A change of one key of the configuration."""

    key: str
    was: str
    now: str


class Comparison(NamedTuple):
    """A comparison of the losses of changed and unchanged nodes.

    `differs` is True if the changed nodes lost more, None with too few nodes to tell.
    `changed` and `unchanged` count the nodes that were measured before and since.
    `lost` is the median loss of the changed ones, 0 without any.
    """

    differs: bool | None
    changed: int
    unchanged: int
    lost: float


def overlap(one: Span, other: Span) -> bool:
    """Return True if two spans of nights have a night in common."""
    return one[0] <= other[1] and other[0] <= one[1]


class Changes:
    """The changes so far; `nodes` has the span of each, by cause and node.

    A span ends with the first visit of the new configuration. It begins after the last
    visit of the old one.
    """

    def __init__(self, visits: Visits) -> None:
        self._visits = visits
        self._last = np.full(len(visits.nodes), -1)
        self._seen = np.zeros(len(visits.nodes), dtype=np.int64)
        self.nodes: dict[Cause, dict[int, Span]] = {}

    def night(self, row: int, night: int) -> Marks:
        """Record the configurations of a night; return the nodes with a new one."""
        now = self._visits.configurations[row]
        visited = now >= 0
        changed: Marks = visited & (self._last >= 0) & (now != self._last)
        for node in np.flatnonzero(changed).tolist():
            span = (int(self._seen[node]) + 1, night)
            for cause in self._causes(int(self._last[node]), int(now[node])):
                self.nodes.setdefault(cause, {})[node] = span
        self._last[visited], self._seen[visited] = now[visited], night
        return changed

    def during(self, onset: Span, nodes: Iterable[int]) -> list[Cause]:
        """Return the causes that some of these nodes have within an onset."""
        some = set(nodes)
        return [
            cause
            for cause, spans in self.nodes.items()
            if any(overlap(onset, spans[node]) for node in some & spans.keys())
        ]

    def _causes(self, was: int, now: int) -> list[Cause]:
        old, new = self._visits.configured[was], self._visits.configured[now]
        return [
            Cause(key, old.get(key, ""), new.get(key, ""))
            for key in sorted({*old, *new})
            if old.get(key, "") != new.get(key, "")
        ]


def compare(
    past: Past, spans: dict[int, Span], metrics: Integers, without: Collection[int]
) -> Comparison:
    """Compare the losses of nodes that changed, in these spans, with those of others.

    By the rank-sum test of Wilcoxon, Mann and Whitney, at `LEVEL`. A node that was
    convicted is `without`: it was chosen for its loss.
    """
    changed = np.zeros(len(past.nights), dtype=bool)
    since = np.full(len(changed), int(np.median([last for _, last in spans.values()])))
    for node, (_, last) in spans.items():
        changed[node], since[node] = True, last
    losses = past.losses(metrics, since)
    losses[np.array([*without], dtype=np.int64)] = np.nan
    known = ~np.isnan(losses)
    more, rest = losses[changed & known], losses[~changed & known]
    lost = float(np.median(more)) if more.size else 0.0
    return Comparison(_differs(more, rest), len(more), len(rest), lost)


def _differs(more: Floats, rest: Floats) -> bool | None:
    if 1 / comb(len(more) + len(rest), len(more)) > LEVEL:
        return None
    test = scipy.stats.mannwhitneyu(more, rest, alternative="greater")
    return bool(test.pvalue <= LEVEL)
