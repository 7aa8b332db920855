"""Standing of an open stability phase: for programs, and in lines for the terminal."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.judge.stability_findings import judge_phase, stability_criteria
from seatrial.model.spans import span_text
from seatrial.stability.phase import open_criteria, phase_of_folder

_BURST_S = 300.0
_MOST_EVENTS = 5


@dataclass(frozen=True)
class EventSoFar:
    """An event, with the seconds since the epoch at its start.

    A `planned` one lies in declared maintenance.
    """

    name: str
    start: float
    cause: str
    nodes: tuple[str, ...]
    jobs: tuple[str, ...]
    words: str
    planned: bool


@dataclass(frozen=True)
class CriterionSoFar:
    """A criterion, with the verdict that it would have now."""

    name: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class Standing:
    """A phase so far: observed and declared seconds, and the load of its jobs.

    `load` is their share of the observed node-hours.
    """

    observed_s: float
    declared_s: float
    load: float
    events: tuple[EventSoFar, ...]
    criteria: tuple[CriterionSoFar, ...]


def standing_of(folder: Path, home: Path) -> Standing | None:
    """Return the standing of the phase of an open run; None of another campaign.

    A run that is closed meanwhile has none. Raises SeatrialError if a file of the run
    is damaged.
    """
    try:
        criteria = open_criteria(folder, home)
        phase = phase_of_folder(folder, criteria)
    except SeatrialError:
        if not folder.exists():
            return None
        raise
    if phase is None:
        return None
    rules = stability_criteria(criteria.declared) if criteria else ()
    events = phase.events(min((rule.burst_s for rule in rules), default=_BURST_S))
    findings = [(rule.name, judge_phase(rule, phase)) for rule in rules]
    return Standing(
        phase.journal.seconds,
        phase.declared.duration_s,
        phase.load,
        tuple(
            EventSoFar(
                event.name,
                event.start,
                event.cause,
                event.nodes,
                event.jobs,
                event.words,
                bool(event.planned),
            )
            for event in events
        ),
        tuple(CriterionSoFar(name, one.verdict, one.reason) for name, one in findings),
    )


def standing_lines(standing: Standing) -> list[str]:
    """Describe a phase so far, with its last events."""
    counts = Counter(event.cause for event in standing.events if not event.planned)
    causes = ", ".join(f"{count} {cause}" for cause, count in counts.items())
    seen = f"{span_text(standing.observed_s)} of {span_text(standing.declared_s)}"
    share = f"{100 * standing.load:.3g} % of the node-hours"
    return [
        f"stability    observed {seen}; jobs took {share}",
        f"events       {causes or 'none'}",
        *(
            f"             {event.name} {event.cause}: {event.words}"
            for event in standing.events[-_MOST_EVENTS:]
        ),
        *(
            f"so far       {one.name}: {one.verdict}; {one.reason}"
            for one in standing.criteria
        ),
    ]
