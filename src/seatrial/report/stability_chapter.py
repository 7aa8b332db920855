"""A stability phase as a chapter: events by cause, hours of the nodes, curves."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from seatrial.criteria.criteria import Criteria
from seatrial.criteria.stability import StabilityCriterion
from seatrial.judge.judge import Judgement
from seatrial.judge.stability_findings import Phases, stability_criteria
from seatrial.model.causes import CAUSES
from seatrial.model.spans import span_text
from seatrial.model.units import counted, rounded
from seatrial.report.content import Chapter
from seatrial.report.operating_curve import Curve, curve_figure
from seatrial.report.render.figure import Figure, Table
from seatrial.runs.closed_run import Run
from seatrial.stability.events import Event
from seatrial.stability.phase import Phase, test_of

_TITLE = "Stability"
BURST_S = 300.0
"""The burst of a phase without a criterion."""

_MOST_EVENTS = 200
_STATES = ("total", "up", "down", "planned", "unobserved")


def stability_chapter(run: Run, judgement: Judgement) -> tuple[Chapter, ...]:
    """Build the chapter with the criteria that judge; none without a phase."""
    phases = judgement.phases
    if phases is None:
        return ()
    if phases.damage:
        words = f"The stability phase cannot be shown: {phases.damage}"
        return (Chapter("stability", _TITLE, "", empty=words),)
    phase = phases.phases.get(str(run.manifest["run"]))
    if phase is None:
        return ()
    rules = phases.criteria
    return (
        Chapter(
            "stability",
            _TITLE,
            intro(phase),
            figures=tuple(figures(phase, rules)),
            tables=tuple(tables(phase, burst_of(rules))),
            notes=phase.notes,
        ),
    )


def rules_of(criteria: Criteria | None) -> tuple[StabilityCriterion, ...]:
    """Return the criteria of kind `stability`."""
    return stability_criteria(criteria.declared) if criteria else ()


def burst_of(rules: Sequence[StabilityCriterion]) -> float:
    """Return the burst by which events are shown: the shortest of the criteria."""
    return min((rule.burst_s for rule in rules), default=BURST_S)


def intro(phase: Phase) -> str:
    """Describe the phase in some sentences."""
    declared, observed = phase.declared, phase.journal.seconds
    return (
        f"Declared: {span_text(declared.duration_s)} at {100 * declared.load:.3g} % of "
        f"the node-hours. Observed: {span_text(observed)} on "
        f"{counted(len(phase.journal.nodes), 'node')}; "
        f"{counted(phase.jobs, 'job')} took {100 * phase.load:.3g} % of the "
        f"node-hours; {phase.failed} of them failed."
    )


def figures(phase: Phase, rules: Sequence[StabilityCriterion]) -> list[Figure]:
    """Draw the curve of each test, for the declared duration."""
    hours, nodes = phase.declared.duration_s / 3600, len(phase.journal.nodes) or 1
    tested = (rule for rule in rules if rule.measure != "availability")
    return [
        curve_figure(Curve(rule, test_of(rule, nodes), hours), f"stability-{number}")
        for number, rule in enumerate(tested, 1)
    ]


def tables(phase: Phase, burst_s: float) -> list[tuple[str, Table]]:
    """Return the tables of causes, events and hours."""
    events = phase.events(burst_s)
    hours = phase.hours
    states = Table(
        ("", *_STATES),
        (("node-hours", *(rounded(getattr(hours, name)) for name in _STATES)),),
    )
    return [
        ("Failures by cause", causes_table(events)),
        *([("Events", events_table(events))] if events else []),
        ("Hours of the nodes", states),
    ]


def causes_table(events: Sequence[Event]) -> Table:
    """Count events, nodes and jobs by cause; planned events have a column."""
    rows = []
    for cause in CAUSES:
        own = [event for event in events if event.cause == cause]
        rows.append(
            (
                cause,
                str(sum(not event.planned for event in own)),
                str(sum(bool(event.planned) for event in own)),
                str(len({node for event in own for node in event.nodes})),
                str(sum(len(event.jobs) for event in own)),
            )
        )
    return Table(("cause", "events", "planned", "nodes", "jobs"), tuple(rows))


def events_table(events: Sequence[Event]) -> Table:
    """List events with their evidence, and corrections beside the first cause."""
    heads = ("time", "cause", "hit", "evidence", "event", "correction")
    rows = (
        (
            f"{datetime.fromtimestamp(event.start, UTC):%Y-%m-%d %H:%M:%S} UTC",
            event.cause + (f" (found: {event.guess})" if event.correction else ""),
            event.words + (f"; planned: {event.planned}" if event.planned else ""),
            "; ".join(event.evidence),
            event.name,
            str(event.correction or ""),
        )
        for event in events[:_MOST_EVENTS]
    )
    return Table(heads, tuple(rows))


def event_lines(phases: Phases) -> Iterator[str]:
    """Yield the events of all phases, each in a line with its evidence."""
    burst = burst_of(phases.criteria)
    events = [
        event for phase in phases.phases.values() for event in phase.events(burst)
    ]
    for event in events[:_MOST_EVENTS]:
        planned = f"; planned: {event.planned}" if event.planned else ""
        corrected = f"; corrected: {event.correction}" if event.correction else ""
        evidence = "; ".join(event.evidence)
        words = f"{event.words}{planned}{corrected}; {evidence}"
        yield f"{event.name}: {event.cause}: {words}"
    if (more := len(events) - _MOST_EVENTS) > 0:
        yield f"and {more} more"
