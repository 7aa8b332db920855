"""Alarms while they grow, and their form for people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.history.causes import Cause, Changes, Span
from seatrial.history.detector import Integers
from seatrial.history.part import Conviction, Part, Series
from seatrial.history.past import Fall
from seatrial.history.records import Alarm, Change, Kind, Loss, Metric, Visits
from seatrial.history.rules import GOOD_NIGHTS

_MOST_LOSSES = 10
"""Metrics of an alarm, the worst."""


@dataclass(frozen=True)
class Class:
    """A class of nodes; `nodes` and `metrics` are their places in the visits."""

    name: str
    part: Part
    nodes: Integers
    metrics: Integers


@dataclass(eq=False)
class Member:
    """A convicted node, or a class, of an alarm; `good` since it recovered."""

    of: Class
    node: int | None
    conviction: Conviction
    kept: NDArray[np.float32] | None
    good: bool = False

    @property
    def onset(self) -> Span:
        """The first and the last night at which the loss may have begun."""
        return self.conviction.fall.onset

    @property
    def possible(self) -> Span:
        """A wider span, to look for common causes."""
        return self.conviction.fall.possible

    @property
    def series(self) -> Series:
        """The series of the nodes, or of the class."""
        return self.of.part.whole if self.node is None else self.of.part.nodes

    def recovered(self) -> bool:
        """Return True if the last three visits since the alarm are good.

        So is their mean over the metrics of the loss, if it is within the margin.
        """
        found = self.conviction
        _, signals = self.series.past.since(found.node, found.night + 1)
        if len(signals) < GOOD_NIGHTS:
            return False
        lost = found.fall.before - signals[-GOOD_NIGHTS:][:, found.fall.metrics]
        known = lost[~np.isnan(lost)]
        return bool(known.size and known.mean() <= self.of.part.margin)

    def losses(self, metrics: Sequence[Metric], sign: int = 1) -> list[Loss]:
        """Return the losses in the units of the metrics; `sign` is -1 for gains.

        The levels of a node are those that it would have in this night.
        """
        fall: Fall = self.conviction.fall
        losses = []
        for metric, *levels in zip(fall.metrics, fall.before, fall.after, strict=True):
            before, after = (
                self.of.part.value(metric, sign * level, relative=self.node is not None)
                for level in levels
            )
            share = sign * abs(after - before) / before
            name = metrics[self.of.metrics[metric]]
            losses.append(Loss(name, before, after, share))
        return losses[:_MOST_LOSSES]


@dataclass
class Entry:
    """An alarm while its nodes may grow; later nodes with an onset in `span` join."""

    name: str
    kind: Kind
    night: int
    members: list[Member]
    onset: Span
    span: Span
    losses: tuple[Loss, ...] = ()
    changes: tuple[Change, ...] = ()
    claimed: tuple[Cause, ...] = ()
    shared: str = ""
    group: frozenset[int] | None = None
    closed: int | None = None

    def alarm(self, visits: Visits, changes: Changes) -> Alarm:
        """Return the alarm as it is now."""
        nodes: set[int] = set()
        for member in self.members:
            if member.node is not None:
                nodes.add(member.node)
            elif self.kind == "machine":
                nodes.update(member.of.nodes.tolist())
        for cause in self.claimed:
            nodes.update(changes.nodes[cause])
        start = visits.nights[0].astype("datetime64[D]")
        first, last = self.onset
        return Alarm(
            name=self.name,
            kind=self.kind,
            nodes=tuple(visits.nodes[node] for node in sorted(nodes)),
            night=start + self.night,
            onset=(start + first, start + last),
            losses=self.losses,
            evidence=self.members[0].conviction.evidence,
            changes=self.changes,
            shared=self.shared,
            closed=None if self.closed is None else start + self.closed,
        )
