"""Failures as events: incidents of one cause, close in time, are one event.

The next incident of an event begins within the declared burst of the one before. The
numbers of nodes and jobs that they hit do not matter.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from seatrial.model.causes import CAUSES, Cause
from seatrial.names import natural_key, node_set
from seatrial.runs.maintenance import Maintenance
from seatrial.runs.reasons import Correction
from seatrial.stability.incidents import Incident

_MOST_EVIDENCE = 12


@dataclass(frozen=True)
class Event:
    """A failure: its first moment (UTC seconds), cause, nodes, jobs and evidence.

    `guess` is the cause by the rules, `cause` that by a person's correction if there is
    one. A `planned` event lies in a window of maintenance. `place` is of its first
    incident.
    """

    start: float
    end: float
    guess: Cause
    place: str
    nodes: tuple[str, ...]
    jobs: tuple[str, ...]
    evidence: tuple[str, ...]
    correction: Correction | None = None
    planned: str = ""

    @property
    def name(self) -> str:
        """Return its name for corrections: `20261126T210503Z-cn03`."""
        moment = datetime.fromtimestamp(self.start, UTC)
        return f"{moment:%Y%m%dT%H%M%SZ}-{self.place}"

    @property
    def cause(self) -> Cause:
        """Return the cause that counts."""
        if self.correction is None:
            return self.guess
        return next(c for c in CAUSES if c == self.correction.cause)

    @property
    def words(self) -> str:
        """Describe what it hit: `cn[01-03], 10 jobs`."""
        jobs = f"{len(self.jobs)} job{'s' * (len(self.jobs) != 1)}"
        return f"{node_set(self.nodes) or self.place}, {jobs}"

    def counts(self, causes: Iterable[str]) -> bool:
        """Return True if it counts for a criterion of these causes."""
        return not self.planned and self.cause in causes


def events_of(
    found: Sequence[Incident], burst_s: float, windows: Sequence[Maintenance] = ()
) -> list[Event]:
    """Return the events of incidents in order of time."""
    last: dict[tuple[Cause, str], int] = {}
    events: list[Event] = []
    for one in sorted(found, key=lambda incident: incident.start):
        planned = _planned(one, windows)
        at = last.get((one.cause, planned))
        if at is None or one.start - events[at].end > burst_s:
            last[one.cause, planned] = len(events)
            events.append(
                Event(
                    one.start,
                    one.start,
                    one.cause,
                    one.place,
                    one.nodes,
                    one.jobs,
                    one.evidence,
                    planned=planned,
                )
            )
            continue
        old = events[at]
        events[at] = replace(
            old,
            end=one.start,
            nodes=tuple(sorted({*old.nodes, *one.nodes}, key=natural_key)),
            jobs=(*old.jobs, *one.jobs),
            evidence=_few((*old.evidence, *one.evidence)),
        )
    return events


def corrected(
    events: Iterable[Event], corrections: Iterable[Correction]
) -> tuple[list[Event], list[str]]:
    """Return the events with their corrections, and notes on others."""
    by_name = {one.event: one for one in corrections}
    known = [replace(event, correction=by_name.get(event.name)) for event in events]
    names = {event.name for event in known}
    unknown = [name for name in by_name if name not in names]
    notes = [f"correction of an event that is none: {by_name[n]}" for n in unknown]
    return known, notes


def _planned(one: Incident, windows: Iterable[Maintenance]) -> str:
    """Return the window that covers an incident; '' without one."""
    for window in windows:
        if window.covers(one.start, one.nodes):
            return str(window)
    return ""


def _few(lines: tuple[str, ...]) -> tuple[str, ...]:
    return lines[:_MOST_EVIDENCE]
