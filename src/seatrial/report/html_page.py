"""The report as one HTML page."""

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.judge.findings import Finding
from seatrial.judge.judge import Judgement
from seatrial.judge.waived import WAIVED
from seatrial.report.content import Content
from seatrial.report.folding import FoldedFinding, fold_findings, skip_reasons
from seatrial.report.render import text
from seatrial.report.render.html import FILTERS, SIZES, render
from seatrial.report.wording import interval_words, limit_words
from seatrial.runs.closed_run import Run

MAX_CRITERIA, MAX_FINDINGS = 500, 500
"""Rows of the HTML; the filter finds the other findings, too."""

Cell = tuple[str, ...]
"""The text of a cell, and the lines of detail below it."""

_CLASSES = ("check", "", "metric", "place", "number", "limit", "reason")


def html(run: Run, judgement: Judgement, content: Content, home: Path) -> str:
    """Render the page; SeatrialError if a template below `home` is missing."""
    return render(
        home,
        "report.html.j2",
        FILTERS,
        content=content,
        manifest=run.manifest,
        judgement=judgement,
        findings=finding_table(judgement.findings, skip_reasons(run)),
        classes=_CLASSES,
        max_criteria=MAX_CRITERIA,
        **SIZES,
    )


@dataclass(frozen=True)
class FindingRow:
    """A finding, or several alike, as the cells of a row, in words.

    `places` are all of its places if the cell has only the first ones.
    """

    verdict: str
    checks: tuple[str, ...]
    cells: tuple[Cell, ...]
    places: str


@dataclass(frozen=True)
class FindingTable:
    """The findings, failing ones first; `total` counts the rows.

    `packed` are the other rows: base64 of gzip of a JSON list of [verdict, checks,
    cells, places].
    """

    rows: tuple[FindingRow, ...]
    total: int
    checks: tuple[str, ...]
    packed: str = ""


def finding_table(
    findings: Sequence[Finding], skipped: Mapping[str, str]
) -> FindingTable:
    """Build the table, equal findings in a row; `skipped` has the reasons of checks."""
    rows = list(map(_row, fold_findings(findings, skipped)))
    return FindingTable(
        rows=tuple(rows[:MAX_FINDINGS]),
        total=len(rows),
        checks=tuple(sorted(set(map(_check, findings)))),
        packed=_packed(rows[MAX_FINDINGS:]) if len(rows) > MAX_FINDINGS else "",
    )


def _row(folded: FoldedFinding) -> FindingRow:
    """Return the cells: check, environment, metric, place, value, limit, reason."""
    finding, count = folded.first, len(folded.findings)
    alone = count == 1
    better = f"{finding.direction} is better" if finding.direction else ""
    of_pairs = "by its pairs" if finding.kind in ("node", "leaf") else ""
    flags = [f if f == WAIVED else f"criterion {f}" for f in finding.flags]
    counted = "" if alone else f"{text.exact(count)} findings"
    cells = (
        _cell(folded.words("check") or finding.kind, folded.details(), counted),
        _cell(folded.words("environment")),
        _cell(folded.words("metric"), better if alone and finding.metric else ""),
        _cell(folded.words("place"), of_pairs),
        _value(finding) if alone else ("",),
        _limit(finding) if alone else ("",),
        _cell(folded.reason, *flags),
    )
    checks = tuple(dict.fromkeys(map(_check, folded.findings)))
    return FindingRow(finding.verdict, checks, cells, folded.places())


def _check(finding: Finding) -> str:
    return finding.check or finding.kind


def _value(finding: Finding) -> Cell:
    if finding.value is None:
        return ("",)
    return _cell(
        text.quantity(text.measured(finding.value, finding.limit), finding.unit),
        "times the typical" if finding.kind == "sameness" else "",
        interval_words(finding),
        f"{text.exact(finding.n)} allocations" if finding.n > 1 else "",
    )


def _limit(finding: Finding) -> Cell:
    """Return a limit, its kind, and the ratio of the value to it."""
    kind = finding.reference_kind
    ratio = text.ratio(finding.value, finding.limit) if kind else ""
    return _cell(limit_words(finding), "; ".join(filter(None, (kind, ratio))))


def _cell(first: str, *details: str) -> Cell:
    return (first, *filter(None, details))


def _packed(rows: Sequence[FindingRow]) -> str:
    """Compress rows: there may be tens of thousands of similar ones."""
    listed = [
        (
            row.verdict,
            list(map(text.clean, row.checks)),
            [list(map(text.clean, cell)) for cell in row.cells],
            text.clean(row.places),
        )
        for row in rows
    ]
    plain = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(plain.encode(), 6, mtime=0)).decode()
