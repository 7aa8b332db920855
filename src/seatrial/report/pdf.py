"""The report as PDF, set by Typst."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from seatrial import __version__
from seatrial.judge.findings import Judgement
from seatrial.report import wording
from seatrial.report.content import Chapter, Content
from seatrial.report.folding import FoldedFinding, fold_findings
from seatrial.report.pdf_front import fronts, small_map
from seatrial.report.render import svg, text
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.paper import fitted, typeset
from seatrial.runs.closed_run import Run

MOST_CHARTS = 30
MOST_CRITERIA = 200
MOST_FINDINGS = 100
"""Printed items of each; the others are counted, and are in the other files."""

_MOST_ROWS, _MOST_COLUMNS = 40, 9
_UNDER = {False: (12, 5), True: (16, 9)}
"""Rows and columns of a table that stands under a figure in a column, or a wide one."""

_NUMBER = re.compile(
    r"[-+\N{MINUS SIGN}]?\d[\d.,\s]*(e[-+\N{MINUS SIGN}]?\d+)?( ?%)?( [^\w\s])*"
    r"|\N{EN DASH}( [^\w\s])*|unknown|not measured|"
)


def pdf_bytes(run: Run, judgement: Judgement, content: Content, home: Path) -> bytes:
    """Set the report; the same run and judgement give the same bytes.

    Raises SeatrialError if the template is missing or a figure cannot be drawn.
    """
    data = document(judgement, content, svg.colours(home))
    return typeset(home, "report.typ", data, day_of(run))


def document(
    judgement: Judgement, content: Content, palette: dict[str, str]
) -> dict[str, Any]:
    """Return the data of the template; every text is printable."""
    data: dict[str, Any] = {
        "version": __version__,
        "title": content.front.title,
        "description": "Acceptance report",
        "run": text.shortened(judgement.run, 60),
        "system": text.shortened(judgement.system, 60),
        "campaign": text.shortened(judgement.campaign, 60),
        "is_model": wording.MODEL_NOTICE in content.front.notices,
        "verdict": judgement.verdict,
        "digest": content.front.digest,
        "colours": {name.removeprefix("--"): hue for name, hue in palette.items()},
        "fronts": fronts(content.front),
        "map": small_map(content.front.node_map, palette),
        "criteria": _criteria(content),
        "findings": _findings(judgement),
        "chapters": list(_chapters(content.chapters, palette)),
    }
    return fitted(data)


def day_of(run: Run) -> datetime:
    """Return the end of the run in UTC: the date of the document."""
    for key in ("ended", "started"):
        when = text.moment(run.manifest.get(key))
        if when is not None and when.utcoffset() is not None:
            return when
    return datetime.fromisoformat("1980-01-01T00:00:00+00:00")


def _criteria(content: Content) -> dict[str, Any]:
    rows = content.folded[:MOST_CRITERIA]
    shown = sum(row.alike for row in rows)
    return {
        "rows": [
            {key: value for key, value in vars(row).items() if key != "worst"}
            | {"place": row.worst.place if row.alike == 1 else ""}
            for row in rows
        ],
        "more": sum(row.alike for row in content.folded) - shown,
    }


def _findings(judgement: Judgement) -> dict[str, Any]:
    """Return the findings that do not pass, and how many more there are."""
    rows = fold_findings(
        [row for row in judgement.findings if row.verdict not in ("pass", "skipped")],
        {},
    )
    left = sum(len(row.findings) for row in rows[MOST_FINDINGS:])
    return {"rows": [_finding(row) for row in rows[:MOST_FINDINGS]], "more": left}


def _finding(folded: FoldedFinding) -> dict[str, str]:
    finding, count = folded.first, len(folded.findings)
    value = ""
    if finding.value is not None and count == 1:
        value = text.measured(finding.value, finding.limit)
    what = (folded.details(), folded.words("environment"))
    return {
        "verdict": finding.verdict,
        "check": folded.words("check") or finding.kind,
        "detail": ", ".join(filter(None, what)),
        "metric": folded.words("metric"),
        "place": folded.words("place"),
        "count": f"{text.exact(count)} findings" if count > 1 else "",
        "value": text.quantity(value, finding.unit) if value else "",
        "interval": wording.interval_words(finding) if count == 1 else "",
        "limit": wording.limit_words(finding),
        "reason": folded.reason,
    }


def _chapters(
    chapters: Sequence[Chapter], palette: dict[str, str]
) -> Iterator[dict[str, Any]]:
    left = MOST_CHARTS
    for chapter in chapters:
        drawn = chapter.figures[:left]
        left -= len(drawn)
        yield {
            "title": chapter.title,
            "intro": chapter.intro,
            "figures": [
                {"wide": wide, "row": [_figure(figure, palette) for figure in row]}
                for wide, row in groupby(drawn, key=lambda figure: figure.wide)
            ],
            "left_out": len(chapter.figures) - len(drawn),
            "tables": [
                {"title": title, **_table(table, _MOST_ROWS, _MOST_COLUMNS)}
                for title, table in chapter.tables
            ],
            "notes": chapter.notes,
            "empty": "" if chapter.figures or chapter.tables else chapter.empty,
        }


def _figure(figure: Figure, palette: dict[str, str]) -> dict[str, Any]:
    """Return a figure with its drawing, and its table where that is a small one."""
    rows, columns = _UNDER[figure.wide]
    table = figure.table
    small = len(table.rows) <= rows and len(table.columns) <= columns
    return {
        "title": figure.title,
        "detail": figure.detail,
        "note": figure.note,
        "alt": str(figure.spec.get("description") or figure.title),
        "svg": svg.svg(figure, palette),
        "table": _table(table, rows, columns) if small and table.rows else None,
    }


def _table(table: Table, most: int, columns: int) -> dict[str, Any]:
    """Return the first rows and columns, and which columns are numbers."""
    rows = [row[:columns] for row in table.rows[:most]]
    shown = table.columns[:columns]
    return {
        "columns": shown,
        "rows": rows,
        "numbers": [
            all(_NUMBER.fullmatch(row[index]) for row in rows)
            for index in range(len(shown))
        ],
        "more_rows": len(table.rows) - len(rows),
        "more_columns": len(table.columns) - len(shown),
    }
