"""The delivered nodes that Slurm lost during a session, and the cases that they hit."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from seatrial.campaign.node_journal import NodeJournal
from seatrial.model.cases import Case, NodeEvent
from seatrial.system.slurm_nodes import NodeLook

SILENCE_S = 15.0
"""A shorter silence is no loss: slurmctld hears no node just after its restart."""

UNSEEN_S = 330.0
"""Longest delay until Slurm notices a dead node: default SlurmdTimeout and a ping."""

_SAME_S = 120.0
_BY_SLURM = ("", "slurm")


class NodeLog:
    """The losses among the delivered nodes, each once.

    `names` are the nodes that were available when the session began, `absent` says how
    the others were; `journal` gets the states of all. A lost node is back when Slurm
    calls it usable, not when Slurm powers it down or no longer lists it.
    """

    def __init__(
        self,
        names: Iterable[str],
        journal: NodeJournal | None = None,
        absent: Iterable[NodeEvent] = (),
    ) -> None:
        self.journal = journal or NodeJournal()
        self.events: list[NodeEvent] = []
        self.names = frozenset(names)
        self._silent: dict[str, float] = {}
        self._lost: dict[str, NodeEvent] = {}
        self._away = {event.node: event for event in absent}

    def note(self, look: NodeLook, now: float) -> list[NodeEvent]:
        """Note the state of the nodes at a moment (UTC seconds); return new losses."""
        new = []
        for name in self._away.keys() & look.usable:
            del self._away[name]
        others = look.lost.keys() - self.names
        self._away |= {name: look.lost[name] for name in others}
        for name in sorted(self.names):
            event = look.lost.get(name)
            if event is None or event.state != "not responding":
                self._silent.pop(name, None)
            if event is None:
                if name in look.usable:
                    self._lost.pop(name, None)
                continue
            if event.state == "not responding":
                began = self._silent.setdefault(name, event.time)
                if now - began < SILENCE_S:
                    continue
                event = replace(event, time=began)
            self._away[name] = event
            before, self._lost[name] = self._lost.get(name), event
            known = before and (before.state, before.reason)
            if known != (event.state, event.reason):
                new += self.add([event])
        self.journal.note(self._away, now)
        return new

    def since(self, event: NodeEvent) -> NodeEvent:
        """Return a node's present state with the time at which it was first seen."""
        return replace(event, time=self._silent.get(event.node, event.time))

    def add(self, events: Iterable[NodeEvent]) -> list[NodeEvent]:
        """Add losses from other sources; return the new ones."""
        new = []
        for event in events:
            known = any(_same(event, other) for other in self.events)
            if event.node in self.names and not known:
                self.events.append(event)
                new.append(event)
        self.events.sort(key=lambda event: event.time)
        return new


class Wait(NamedTuple):
    """The wait of a job for lost nodes, in words."""

    words: str
    nodes: tuple[NodeEvent, ...]


@dataclass(frozen=True)
class Loss(NodeEvent):
    """A loss in the record of a session: `during` is the case that it hit, '' if none.

    A failed case comes before others.
    """

    during: str = ""


def attribute(
    cases: Sequence[Case], events: Sequence[NodeEvent]
) -> tuple[list[Case], list[Loss]]:
    """Return the cases with the losses that belong to them, and the losses with cases.

    A case that failed while one of its nodes was lost failed for that: its phase is
    run, and its reason names the node, not the task that Slurm ended with it.
    """
    hits = [[event for event in events if _hits(event, case)] for case in cases]
    blamed = [_blamed(case, own) for case, own in zip(cases, hits, strict=True)]
    losses = []
    for event in events:
        during = [case for case, own in zip(blamed, hits, strict=True) if event in own]
        during.sort(key=lambda case: case.result != "fail")
        losses.append(Loss(**vars(event), during="".join(map(title, during[:1]))))
    return blamed, losses


def in_words(losses: Iterable[Loss]) -> str:
    """Describe one node by its losses in order of time."""
    return ", then ".join(map(_words, sorted(losses, key=lambda loss: loss.time)))


def at_present(event: NodeEvent) -> str:
    """Describe a lost node: `cn02 is drained (bad DIMM, by root, 12:31 UTC)`."""
    return with_details(event, f"{event.node} is {event.state}", clock(event.time))


def with_details(event: NodeEvent, text: str, *more: str) -> str:
    """Add Slurm's reason and user of a loss to a text, in parentheses, if known."""
    by = "" if event.user in _BY_SLURM else f"by {event.user}"
    details = ", ".join(filter(None, (event.reason, by, *more)))
    return f"{text} ({details})" if details else text


def title(case: Case) -> str:
    """Return a case with its environment: `Halo (mpich)`."""
    return f"{case.case} ({case.environment})" if case.environment else case.case


def clock(moment: float) -> str:
    """Format a moment (UTC seconds) as `12:31 UTC`."""
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M UTC")


def _words(loss: Loss) -> str:
    silent = loss.state == "not responding"
    state = "stopped responding" if silent else loss.state
    by = "" if loss.user in _BY_SLURM else f" by {loss.user}"
    reason = f": {loss.reason}" if loss.reason else ""
    case = f" during {loss.during}" if loss.during else ""
    return f"{state} at {clock(loss.time)}{by}{case}{reason}"


def _same(event: NodeEvent, known: NodeEvent) -> bool:
    """Return True if two sources report one loss; the later may know no reason."""
    return (
        (event.node, event.state) == (known.node, known.state)
        and event.reason in ("", known.reason)
        and abs(event.time - known.time) < _SAME_S
    )


def _hits(event: NodeEvent, case: Case) -> bool:
    """Return True if a loss was during a case, or explains why it failed before."""
    if case.start_time is None or case.elapsed_s is None:
        return False
    end = case.start_time + case.elapsed_s
    if int(case.start_time) <= event.time <= end:
        return True
    killed = failed_by_job(case) and kills(event, case)
    return killed and end <= event.time <= end + UNSEEN_S


def kills(event: NodeEvent, case: Case) -> bool:
    """Return True if a loss ends a job; the jobs of drained nodes go on."""
    return event.state != "drained" and event.node in case.nodes


def failed_by_job(case: Case) -> bool:
    """Return True if a case failed for its job, not for its numbers."""
    return case.result == "fail" and case.phase in ("run", "sanity")


def _blamed(case: Case, events: Sequence[NodeEvent]) -> Case:
    case = replace(case, node_events=tuple(events))
    if case.waited_for:
        return case
    causes: dict[str, list[Loss]] = defaultdict(list)
    for event in events:
        if kills(event, case):
            causes[event.node].append(Loss(**vars(event)))
    if not causes or not failed_by_job(case):
        return case
    reason = "; ".join(f"{name} {in_words(own)}" for name, own in causes.items())
    return replace(case, phase="run", reason=f"lost a node: {reason}")
