"""Retries, skips, absences and exclusions: not part of the verdict."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from seatrial.judge.findings import Finding, Judgement
from seatrial.judge.other_campaigns import is_elsewhere
from seatrial.model.cases import Case
from seatrial.parsers.mpi_start import TRIES
from seatrial.report.content import Chapter
from seatrial.report.folding import first_names, fold_findings, skip_reasons
from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.report.render.text import few
from seatrial.report.wording import MAX_CASES, case_detail
from seatrial.runs.closed_run import Run

_INTRO = (
    "Failed and skipped cases, cases that passed at a later try, absent nodes, "
    "interrupted sessions, and criteria that were not judged. Cases and criteria with "
    "the same reason share a row."
)
_NOT_GIVEN = "no reason given"
_CASE = ("Case", "Environment", "Repeat")


_Tables = dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]]
"""Columns and rows by title."""


def exclusions(run: Run, judgement: Judgement) -> Chapter:
    """List retried, skipped and excluded cases, nodes and criteria in tables."""
    failed = [case for case in run.cases if case.result == "fail"]
    skipped = [case for case in run.cases if case.result == "skip"]
    tables = _of_cases(run, failed, skipped) | _of_others(run, judgement)
    return Chapter(
        "exclusions",
        "Retries, skips and exclusions",
        _INTRO,
        tables=tuple(
            (title, Table(columns, tuple(rows)))
            for title, (columns, rows) in tables.items()
            if rows
        ),
        notes=tuple(_notes(run, failed, skipped)),
        empty="No case failed or was skipped, and no node was absent.",
    )


def _of_cases(run: Run, failed: Sequence[Case], skipped: Sequence[Case]) -> _Tables:
    return {
        "Failed cases": (
            (*_CASE, "Try", "Phase", "Reason", "Job", "Nodes", "Raw output"),
            list(map(_failed, failed[:MAX_CASES])),
        ),
        "Skipped cases": (
            ("Cases", "Environments", "Reason", "Repeats"),
            _skipped(skipped)[:MAX_CASES],
        ),
        "Passed at a later try": (
            (*_CASE, "Passed at try", "The first failed"),
            _retried(run.cases)[:MAX_CASES],
        ),
        "Programs that died in MPI_Init": (
            (*_CASE, "Program", "Try", "Died on", "Reason"),
            _died_at_start(run.cases)[:MAX_CASES],
        ),
    }


def _of_others(run: Run, judgement: Judgement) -> _Tables:
    unmeasured = [
        finding
        for finding in judgement.findings
        if finding.verdict == "skipped" and finding.criterion
    ]
    elsewhere = [finding for finding in unmeasured if is_elsewhere(finding)]
    unmeasured = [finding for finding in unmeasured if not is_elsewhere(finding)]
    return {
        "Absent nodes": (
            ("Node", "State", "Reason"),
            [
                (node.name, node.state, node.reason or _NOT_GIVEN)
                for node in judgement.nodes
                if node.state != "present"
            ],
        ),
        "Sessions that were interrupted and repeated": (
            ("Session", "Kept as evidence in raw/"),
            [
                (session["name"], ", ".join(session["interrupted"]))
                for session in run.manifest.get("sessions") or []
                if session.get("interrupted")
            ],
        ),
        "Criteria of checks that this campaign does not run": (
            ("Criterion",),
            [(name,) for name in judgement.uncovered],
        ),
        "Criteria of other campaigns": (
            ("Criteria", "Hold"),
            _of_reasons(run, elsewhere),
        ),
        "Optional criteria that were not measured": (
            ("Criteria", "Reason"),
            _of_reasons(run, unmeasured),
        ),
    }


def _of_reasons(run: Run, findings: Iterable[Finding]) -> list[tuple[str, ...]]:
    """Return criteria with their reason; those of one reason share a row."""
    return [
        (folded.words("criterion"), folded.reason)
        for folded in fold_findings(findings, skip_reasons(run))
    ]


def _failed(case: Case) -> tuple[str, ...]:
    return (
        *_named(case),
        str(case.attempt),
        case.phase or "",
        case.reason or _NOT_GIVEN,
        case.job_id or "none",
        ", ".join(few(case.nodes, 4)),
        case.raw or "none",
    )


def _skipped(cases: Sequence[Case]) -> list[tuple[str, ...]]:
    """List skipped cases by their reason."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.reason or _NOT_GIVEN].append(case)
    return [
        (
            first_names(_title(case) for case in own),
            first_names(case.environment for case in own),
            reason,
            ", ".join(map(str, sorted({case.repeat for case in own}))),
        )
        for reason, own in groups.items()
    ]


def _retried(cases: Sequence[Case]) -> list[tuple[str, ...]]:
    """List the cases that passed, but not at the first try."""
    first = {(case.session, case.key): case for case in reversed(cases)}
    rows: list[tuple[str, ...]] = []
    for case in cases:
        if case.attempt > 1 and case.result == "pass":
            before = first[case.session, case.key]
            phase = f"{before.phase}: " if before.phase else ""
            reason = f"{phase}{before.reason or _NOT_GIVEN}"
            rows.append((*_named(case), str(case.attempt), reason))
    return rows


def _died_at_start(cases: Sequence[Case]) -> list[tuple[str, ...]]:
    """List every start of a program whose MPI library crashed."""
    return [
        (
            *_named(case),
            crash["step"],
            f"{crash['try']} of {TRIES}",
            ", ".join(few(crash["dead"], 4)) or "unknown",
            crash["reason"],
        )
        for case in cases
        for crash in case.start_crashes
    ]


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
            f"failed and {text.exact(len(skipped))} were skipped. All are in "
            "cases.json of the run."
        )
