"""The delivered nodes that Slurm lost during a session, and the cases that they hit."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from seatrial.model.cases import Case, NodeEvent
from seatrial.system.slurm_nodes import NodeLook

SILENCE_S = 15.0
"""A shorter silence is no loss: slurmctld hears no node just after its own restart."""

UNSEEN_S = 330.0
"""How late Slurm may notice a dead node: its default SlurmdTimeout, and a ping more."""

_SAME_S = 120.0
_BY_SLURM = ("", "slurm")


class NodeLog:
    """Collects the losses among the delivered nodes, each once.

    `names` are those nodes that were available when the session began.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.events: list[NodeEvent] = []
        self._names = frozenset(names)
        self._silent: dict[str, float] = {}
        self._lost: dict[str, NodeEvent] = {}

    @property
    def names(self) -> frozenset[str]:
        """The nodes that the session began with."""
        return self._names

    def note(self, look: NodeLook, now: float) -> list[NodeEvent]:
        """Note the state of the nodes at a moment (UTC seconds); give new losses."""
        new = []
        for name in sorted(self._names):
            event = look.lost.get(name)
            if event is None or event.state != "not responding":
                self._silent.pop(name, None)
            if event is None:
                self._lost.pop(name, None)
                continue
            if event.state == "not responding":
                began = self._silent.setdefault(name, event.time)
                if now - began < SILENCE_S:
                    continue
                event = replace(event, time=began)
            before = self._lost.get(name)
            self._lost[name] = event
            if before is None or (before.state, before.reason) != (
                event.state,
                event.reason,
            ):
                new += self.add([event])
        return new

    def since(self, event: NodeEvent) -> NodeEvent:
        """Return a node's present state with the time at which it was first seen."""
        return replace(event, time=self._silent.get(event.node, event.time))

    def add(self, events: Iterable[NodeEvent]) -> list[NodeEvent]:
        """Add losses that others saw; give those that are new."""
        new = []
        for event in events:
            if event.node in self._names and not any(
                _same(event, known) for known in self.events
            ):
                self.events.append(event)
                new.append(event)
        self.events.sort(key=lambda event: event.time)
        return new


@dataclass(frozen=True)
class Loss:
    """A loss in the record of a session: `during` is the case that it hit, '' if none.

    A case that failed comes before one that did not.
    """

    event: NodeEvent
    during: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for the record of a session."""
        return {**vars(self.event), "during": self.during}

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Loss":
        """Make a loss of its plain data."""
        event = {key: value for key, value in row.items() if key != "during"}
        return cls(NodeEvent(**event), row["during"])


def attribute(
    cases: Sequence[Case], events: Sequence[NodeEvent]
) -> tuple[list[Case], list[Loss]]:
    """Return the cases with the losses that belong to them, and the losses with cases.

    A case that failed while a node of its own was lost failed for that: its phase is
    run, and its reason names the node, not the task that Slurm ended with it.
    """
    hit = [[event for event in events if _hits(event, case)] for case in cases]
    blamed = [_blamed(case, found) for case, found in zip(cases, hit, strict=True)]
    losses = []
    for event in events:
        during = [case for case, own in zip(blamed, hit, strict=True) if event in own]
        failed = [case for case in during if case.result == "fail"]
        losses.append(Loss(event, _title((failed or during)[0]) if during else ""))
    return blamed, losses


def in_words(losses: Iterable[Loss]) -> str:
    """Describe one node by its losses in their order."""
    return ", then ".join(
        _words(loss.event, loss.during)
        for loss in sorted(losses, key=lambda loss: loss.event.time)
    )


def at_present(event: NodeEvent) -> str:
    """Describe a lost node: `cn02 is drained (bad DIMM, by root, 12:31 UTC)`."""
    by = "" if event.user in _BY_SLURM else f"by {event.user}"
    details = ", ".join(filter(None, (event.reason, by, clock(event.time))))
    return f"{event.node} is {event.state} ({details})"


def clock(moment: float) -> str:
    """Write a moment (UTC seconds) as `12:31 UTC`."""
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M UTC")


def _words(event: NodeEvent, during: str) -> str:
    silent = event.state == "not responding"
    what = "stopped responding" if silent else event.state
    by = "" if event.user in _BY_SLURM else f" by {event.user}"
    reason = f": {event.reason}" if event.reason else ""
    case = f" during {during}" if during else ""
    return f"{what} at {clock(event.time)}{by}{case}{reason}"


def _same(event: NodeEvent, known: NodeEvent) -> bool:
    """Return True if two sources report one loss; the later may know no reason."""
    return (
        event.node == known.node
        and event.state == known.state
        and (not event.reason or event.reason == known.reason)
        and abs(event.time - known.time) < _SAME_S
    )


def _hits(event: NodeEvent, case: Case) -> bool:
    """Return True if a loss was during a case, or explains why it failed before."""
    if case.start_time is None or case.elapsed_s is None:
        return False
    end = case.start_time + case.elapsed_s
    if int(case.start_time) <= event.time <= end:
        return True
    kills = event.state != "drained" and event.node in case.nodes
    return kills and _by_job(case) and end <= event.time <= end + UNSEEN_S


def _by_job(case: Case) -> bool:
    """Return True if a case failed for its job, not for its numbers."""
    return case.result == "fail" and case.phase in ("run", "sanity")


def _blamed(case: Case, events: Collection[NodeEvent]) -> Case:
    if not events:
        return case
    case = replace(case, node_events=tuple(events))
    causes = [
        Loss(event, "")
        for event in events
        if event.state != "drained" and event.node in case.nodes
    ]
    if not causes or not _by_job(case):
        return case
    names = dict.fromkeys(loss.event.node for loss in causes)
    reason = "; ".join(
        f"{name} {in_words(loss for loss in causes if loss.event.node == name)}"
        for name in names
    )
    return replace(case, phase="run", reason=f"lost a node: {reason}")


def _title(case: Case) -> str:
    return f"{case.case} ({case.environment})" if case.environment else case.case
