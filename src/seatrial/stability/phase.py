"""A stability phase as its run recorded it, open or closed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.campaign.node_log import Loss
from seatrial.campaign.schedule import Agenda, parse_agenda, read_agenda
from seatrial.campaign.stability_phase import StabilityPhase
from seatrial.checks.sources import own_metrics
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import Known
from seatrial.criteria.stability import StabilityCriterion
from seatrial.limits import RAW_SIZE, YAML_SIZE
from seatrial.model.cases import Case
from seatrial.model.metrics import METRICS
from seatrial.paths import checks_dir
from seatrial.plain_files import read_plain
from seatrial.runs.closed_run import AGENDA_FILE, KEPT_CRITERIA, SYSTEM_FOLDER, Run
from seatrial.runs.closed_sessions import read_session
from seatrial.runs.maintenance import Maintenance
from seatrial.runs.raw_output import ERROR_FILE, OUTPUT_FILE, kept_file, plain_content
from seatrial.runs.reasons import Correction
from seatrial.stability.availability import (
    HOUR_S,
    NodeHours,
    exposure,
    hours_until,
    length,
    node_hours,
)
from seatrial.stability.demonstration import Decision, IntervalTest, MtbfTest
from seatrial.stability.events import Event, corrected, events_of
from seatrial.stability.incidents import Incident, incidents
from seatrial.stability.journal import Journal, Span, read_journal
from seatrial.stability.sequential import SequentialTest
from seatrial.system.description import read_system

Demonstration = MtbfTest | SequentialTest | IntervalTest
"""A test of a criterion."""

_TAIL_BYTES, _TAIL_LINES = 32_768, 60
_FACTS = {"network": "leaf", "power": "rack"}


@dataclass(frozen=True)
class Phase:
    """The record of a phase in its run.

    `busy` are the node-hours of its jobs, `jobs` their number, `failed` those that did.
    `corrections` and signed `windows` come from people.
    """

    run: str
    declared: StabilityPhase
    journal: Journal
    incidents: tuple[Incident, ...]
    busy: float = 0.0
    jobs: int = 0
    failed: int = 0
    windows: tuple[Maintenance, ...] = ()
    corrections: tuple[Correction, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def hours(self) -> NodeHours:
        """The hours of the nodes by state."""
        return node_hours(self.journal, self.windows)

    @property
    def spans(self) -> list[Span]:
        """The observed time, without maintenance of the whole machine."""
        return exposure(self.journal, self.windows)

    @property
    def exposed(self) -> float:
        """The hours of `spans`."""
        return length(self.spans) / HOUR_S

    @property
    def load(self) -> float:
        """The share of the observed node-hours that its jobs took."""
        observed = self.journal.seconds * len(self.journal.nodes) / HOUR_S
        return self.busy / observed if observed else 0.0

    def events(self, burst_s: float) -> list[Event]:
        """Return its events, with the corrections of their causes."""
        events = events_of(self.incidents, burst_s, self.windows)
        return corrected(events, self.corrections)[0]

    def counted(self, criterion: StabilityCriterion) -> list[Event]:
        """Return the events that count for a criterion."""
        events = self.events(criterion.burst_s)
        return [event for event in events if event.counts(criterion.causes)]

    def test(self, criterion: StabilityCriterion) -> Demonstration:
        """Return the demonstration test of a criterion that has one."""
        nodes = 1.0
        if criterion.per_node:
            exposed = self.exposed
            nodes = self.hours.up / exposed if exposed else len(self.journal.nodes)
        return test_of(criterion, nodes)

    def decide(self, criterion: StabilityCriterion) -> Decision:
        """Decide a criterion that has a test."""
        spans = self.spans
        moments = (event.start for event in self.counted(criterion))
        times = [hours_until(spans, moment) for moment in moments]
        return self.test(criterion).decide(times, self.exposed)


def test_of(criterion: StabilityCriterion, nodes: float = 1.0) -> Demonstration:
    """Return the test of a criterion; `nodes` of a machine if it is of nodes."""
    risks = {"seller": criterion.seller, "buyer": criterion.buyer}
    accepted, rejected = criterion.accepted, criterion.rejected
    if criterion.measure == "intervals":
        return IntervalTest(accepted, rejected, criterion.length, **risks)
    nodes = nodes if criterion.per_node else 1.0
    kind = SequentialTest if criterion.sequential else MtbfTest
    return kind(accepted, rejected, **risks, nodes=nodes)


def phase_of_run(
    run: Run,
    windows: Iterable[Maintenance] = (),
    corrections: Iterable[Correction] = (),
) -> Phase | None:
    """Return the phase of a closed run; None if it is of another campaign.

    Raises SeatrialError if a journal of it is damaged.
    """
    content = run.kept.get(AGENDA_FILE)
    agenda = content and parse_agenda(content, run.path / AGENDA_FILE)
    if not agenda or agenda.stability is None or run.manifest.get("replay"):
        return None
    sessions = run.manifest.get("sessions", ())
    facts = {node["name"]: node.get("facts") or {} for node in run.manifest["nodes"]}
    corrections = tuple(corrections)
    return _phase(
        run.path, agenda, run.cases, sessions, facts, tuple(windows), corrections
    )


def open_criteria(folder: Path, home: Path) -> Criteria | None:
    """Parse the criteria that an open run keeps; None without any.

    `home` has the checks of the suite. Raises SeatrialError if they are damaged.
    """
    file = folder / KEPT_CRITERIA
    if not file.is_file():
        return None
    known = Known(metrics=METRICS | own_metrics(checks_dir(home)))
    return Criteria.parse(read_plain(file, YAML_SIZE), file, known)


def phase_of_folder(folder: Path, criteria: Criteria | None) -> Phase | None:
    """Return the phase of an open run so far; None if it is of another campaign.

    Its cases are those of closed sessions, its planned maintenance is that of the
    `criteria`. Raises SeatrialError if a file is damaged.
    """

    agenda = read_agenda(folder)
    if agenda.stability is None:
        return None
    closed = [read_session(folder, planned.name) for planned in agenda.sessions]
    sessions = [one for one in closed if one is not None]
    cases = [case for session in sessions for case in session.cases]
    records = [session.record for session in sessions]
    facts: dict[str, dict[str, Any]] = {}
    if (folder / SYSTEM_FOLDER).is_dir():
        system = read_system(folder / SYSTEM_FOLDER, agenda.system)
        facts = {node.name: dict(node.facts) for node in system.nodes}
    windows = criteria.maintenance if criteria else ()
    return _phase(folder, agenda, cases, records, facts, windows, ())


def _phase(
    folder: Path,
    agenda: Agenda,
    cases: Sequence[Case],
    sessions: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Mapping[str, Any]],
    windows: tuple[Maintenance, ...],
    corrections: tuple[Correction, ...],
) -> Phase:
    declared, journal = agenda.stability, read_journal(folder)
    assert declared is not None, "the caller asked for it"
    losses = [Loss(**row) for session in sessions for row in session.get("lost", ())]
    together = {
        cause: {
            name: f"{fact} {own[fact]}" for name, own in facts.items() if own.get(fact)
        }
        for cause, fact in _FACTS.items()
    }

    def printed(case: Case) -> list[str]:
        return _last_lines(folder / case.raw) if case.raw else []

    found = incidents(journal, cases, losses, printed, together)
    events = events_of(found, 0.0, windows)
    ran = [case for case in cases if case.result != "skip" and case.nodes]
    busy = sum(len(case.nodes) * (case.payload_s or 0.0) for case in ran)
    return Phase(
        agenda.run,
        declared,
        journal,
        tuple(found),
        busy / HOUR_S,
        len(ran),
        sum(case.result == "fail" for case in ran),
        windows,
        corrections,
        tuple(corrected(events, corrections)[1]),
    )


def _last_lines(folder: Path) -> list[str]:
    """Return the last lines of the output of a job, those of its errors last."""
    lines: list[str] = []
    for name in (OUTPUT_FILE, ERROR_FILE):
        file = kept_file(folder, name)
        if file is not None:
            content = plain_content(file, read_plain(file, RAW_SIZE))[-_TAIL_BYTES:]
            lines += content.decode(errors="replace").splitlines()[-_TAIL_LINES:]
    return lines
