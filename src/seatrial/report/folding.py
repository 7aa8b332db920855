"""Fold equal rows into one with a count: criteria or findings that share a reason.

Rows of numbers are never folded: their reasons contain numbers. criteria.csv,
findings.csv and junit.xml have a row for each.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from seatrial.judge.findings import NOT_MEASURED, Finding
from seatrial.judge.other_campaigns import is_elsewhere
from seatrial.report.content import CriterionRow
from seatrial.report.render import text
from seatrial.report.render.text import few
from seatrial.report.wording import case_detail, urgency
from seatrial.runs.closed_run import Run

MOST_NAMES = 12
"""Names of criteria, checks or places in a folded line; the rest is counted."""

_FOLDED = ("undecided", "skipped")


@dataclass(frozen=True)
class FoldedFinding:
    """Findings that differ in check, metric or place only; mostly there is one."""

    findings: tuple[Finding, ...]
    reason: str

    @property
    def first(self) -> Finding:
        """The first of them, in place of all."""
        return self.findings[0]

    def words(self, of: str) -> str:
        """Join the first different values of a field of the findings."""
        return first_names(getattr(finding, of) for finding in self.findings)

    def places(self) -> str:
        """Join all places if the row has not all; the page's filter searches them."""
        places = dict.fromkeys(finding.place for finding in self.findings)
        return " ".join(places) if len(places) > MOST_NAMES else ""

    def details(self) -> str:
        """Join the parameters in the names of the cases."""
        return first_names(case_detail(f.check, f.case) for f in self.findings)


def first_names(names: Iterable[str]) -> str:
    """Join different names, the first of many."""
    return ", ".join(few(dict.fromkeys(filter(None, names)), MOST_NAMES))


def skip_reasons(run: Run) -> dict[str, str]:
    """Return why the cases of each check were skipped: the first reason."""
    reasons: dict[str, str] = {}
    for case in run.cases:
        if case.result == "skip" and case.reason:
            reasons.setdefault(case.check, case.reason)
    return reasons


def fold_criteria(
    rows: Iterable[CriterionRow], reasons: Mapping[str, str]
) -> tuple[CriterionRow, ...]:
    """Put criteria with the same verdict and reason into one row, in their order."""
    groups: dict[tuple[str, ...], list[CriterionRow]] = {}
    for row in rows:
        key = _key(row.worst, reasons) or (row.name, row.check, row.where, row.metric)
        groups.setdefault(key, []).append(row)
    return tuple(_folded(rows, reasons) for rows in groups.values())


def _folded(rows: Sequence[CriterionRow], reasons: Mapping[str, str]) -> CriterionRow:
    first, *others = rows
    if not others:
        return first
    return replace(
        first,
        name=", ".join(few((row.name for row in rows), MOST_NAMES)),
        where=_same(row.where for row in rows),
        kind=_same(row.kind for row in rows),
        clause=_same(row.clause for row in rows),
        limit="",
        estimate="",
        interval="",
        allocations=0,
        places=0,
        scatter="",
        reason=_reason(first.worst, reasons),
        alike=len(rows),
    )


def fold_findings(
    findings: Iterable[Finding], reasons: Mapping[str, str]
) -> list[FoldedFinding]:
    """Fold findings: the most urgent first, causes before effects.

    Undecided findings are folded within a metric of a case, skipped ones by reason.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for number, finding in enumerate(sorted(findings, key=urgency)):
        key: tuple[object, ...] = _key(finding, reasons) or (number,)
        if finding.verdict == "undecided":
            case = (finding.check, finding.case, finding.environment, finding.metric)
            key = (*key, finding.kind, *case)
        groups.setdefault(key, []).append(finding)
    return [
        FoldedFinding(tuple(own), _reason(own[0], reasons)) for own in groups.values()
    ]


def _key(finding: Finding, reasons: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the key that equal findings share; None if a finding is not folded."""
    if finding.verdict not in _FOLDED or finding.flags:
        return None
    return (finding.verdict, _reason(finding, reasons))


def _reason(finding: Finding, reasons: Mapping[str, str]) -> str:
    """Return the reason; a criterion of a skipped check has that of its check."""
    if finding.verdict == "skipped" and not is_elsewhere(finding):
        return reasons.get(finding.check, finding.reason)
    return finding.reason


def _same(values: Iterable[str]) -> str:
    """Return the value that all share; '' if they differ."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else ""


def not_tested(rows: Iterable[CriterionRow], reasons: Mapping[str, str]) -> str:
    """Count the criteria that were skipped, by reason; '' if there are none.

    Only the part of a reason before its first colon counts; the rest is the remedy.
    """
    causes = Counter(
        _reason(row.worst, reasons).removeprefix(f"{NOT_MEASURED}: ").partition(": ")[0]
        for row in rows
        if row.verdict == "skipped"
    )
    if not causes:
        return ""
    words = [
        f"{text.shortened(cause, 120)} ({text.exact(count)})"
        for cause, count in causes.most_common()
    ]
    noun = "criterion" if causes.total() == 1 else "criteria"
    return f"{text.exact(causes.total())} {noun}: {', '.join(few(words, 4))}"
