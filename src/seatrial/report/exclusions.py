"""Retries, skips, absences and exclusions: not part of the verdict."""

from collections.abc import Iterable, Mapping, Sequence

from seatrial.judge.findings import Judgement
from seatrial.model.cases import Case
from seatrial.parsers.mpi_start import TRIES
from seatrial.report.content import Chapter
from seatrial.report.folding import MOST_NAMES, fold_findings, skip_reasons
from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.report.render.text import few
from seatrial.report.wording import MAX_CASES, case_detail
from seatrial.runs.closed_run import Run

_INTRO = (
    "Nothing is left out silently: cases that failed or were skipped, cases that "
    "passed at a later try, nodes that were absent, sessions that were cut off, and "
    "criteria that were not judged. Cases and criteria with the same reason share a "
    "row."
)
_NOT_GIVEN = "no reason given"
_CASE = ("Case", "Environment", "Repeat")


def exclusions(run: Run, judgement: Judgement) -> Chapter:
    """List retried, skipped and excluded cases, nodes and criteria in tables."""
    failed = [case for case in run.cases if case.result == "fail"]
    skipped = [case for case in run.cases if case.result == "skip"]
    sessions = run.manifest.get("sessions") or []
    tables = (
        ("Failed cases", _failed(failed)),
        ("Skipped cases", _skipped(skipped)),
        ("Passed at a later try", _retried(run.cases)),
        ("Programs that died in MPI_Init", _died_at_start(run.cases)),
        (
            "Absent nodes",
            _table(
                ("Node", "State", "Reason"),
                [
                    (node.name, node.state, node.reason or _NOT_GIVEN)
                    for node in judgement.nodes
                    if node.state != "present"
                ],
            ),
        ),
        (
            "Sessions that were cut off and taken again",
            _table(
                ("Session", "Kept as evidence in raw/"),
                [
                    (session["name"], ", ".join(session["interrupted"]))
                    for session in sessions
                    if session.get("interrupted")
                ],
            ),
        ),
        (
            "Criteria of checks that this campaign does not run",
            _table(("Criterion",), [(name,) for name in judgement.uncovered]),
        ),
        (
            "Optional criteria that were not measured",
            _unmeasured(judgement, skip_reasons(run)),
        ),
    )
    filled = tuple((title, table) for title, table in tables if table.rows)
    return Chapter(
        "exclusions",
        "Retries, skips and exclusions",
        _INTRO,
        tables=filled,
        notes=tuple(_notes(run, failed, skipped)),
        empty="No case failed or was skipped, and no node was absent.",
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    return Table(tuple(columns), tuple(tuple(row) for row in rows))


def _failed(cases: Sequence[Case]) -> Table:
    columns = (
        *_CASE,
        "Try",
        "Phase",
        "Reason",
        "Job",
        "Nodes",
        "Raw output",
    )
    return _table(
        columns,
        [
            (
                *_named(case),
                str(case.attempt),
                case.phase or "",
                case.reason or _NOT_GIVEN,
                case.job_id or "none",
                ", ".join(few(case.nodes, 4)),
                case.raw or "none",
            )
            for case in cases[:MAX_CASES]
        ],
    )


def _skipped(cases: Sequence[Case]) -> Table:
    """List skipped cases by their reason."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.reason or _NOT_GIVEN, []).append(case)
    return _table(
        ("Cases", "Environments", "Reason", "Repeats"),
        [
            (
                _named_once(_title(case) for case in own),
                _named_once(case.environment for case in own),
                reason,
                ", ".join(map(str, sorted({case.repeat for case in own}))),
            )
            for reason, own in list(groups.items())[:MAX_CASES]
        ],
    )


def _unmeasured(judgement: Judgement, reasons: Mapping[str, str]) -> Table:
    """List criteria without any number by their reason."""
    skipped = [
        each
        for each in judgement.findings
        if each.verdict == "skipped" and each.criterion
    ]
    return _table(
        ("Criteria", "Reason"),
        [
            (folded.words("criterion"), folded.reason)
            for folded in fold_findings(skipped, reasons)
        ],
    )


def _named_once(names: Iterable[str]) -> str:
    return ", ".join(few(dict.fromkeys(filter(None, names)), MOST_NAMES))


def _retried(cases: Sequence[Case]) -> Table:
    """Show the cases that passed, but not at the first try."""
    first = {(case.session, case.key): case for case in reversed(cases)}
    found = []
    for case in cases:
        if case.attempt > 1 and case.result == "pass":
            before = first[case.session, case.key]
            why = f"{before.phase}: " if before.phase else ""
            found.append(
                (*_named(case), str(case.attempt), why + (before.reason or _NOT_GIVEN))
            )
    return _table(
        (*_CASE, "Passed at try", "The first failed"),
        found[:MAX_CASES],
    )


def _died_at_start(cases: Sequence[Case]) -> Table:
    """Show every start of a program whose MPI library crashed."""
    rows = [
        (
            *_named(case),
            each["step"],
            f"{each['try']} of {TRIES}",
            ", ".join(few(each["dead"], 4)) or "unknown",
            each["reason"],
        )
        for case in cases
        for each in case.start_crashes
    ]
    columns = (*_CASE, "Program", "Try", "Died on", "Reason")
    return _table(columns, rows[:MAX_CASES])


def _named(case: Case) -> tuple[str, str, str]:
    return (_title(case), case.environment, str(case.repeat))


def _title(case: Case) -> str:
    return " ".join(filter(None, (case.check, case_detail(case.check, case.case))))


def _notes(run: Run, failed: Sequence[Case], skipped: Sequence[Case]) -> Iterable[str]:
    if run.manifest.get("partial"):
        yield "Partial run: some checks of the campaign were left out."
    if len(failed) > MAX_CASES or len(skipped) > MAX_CASES:
        yield (
            f"Tables have the first {MAX_CASES} rows; {text.exact(len(failed))} cases "
            f"failed and {text.exact(len(skipped))} were skipped: all are in "
            "cases.json of the run."
        )
