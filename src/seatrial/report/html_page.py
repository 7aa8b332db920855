"""The report as one HTML page."""

from pathlib import Path

from seatrial.judge.judge import Judgement
from seatrial.report.content import Content
from seatrial.report.finding_table import finding_table
from seatrial.report.folding import skip_reasons
from seatrial.report.render.filters import FILTERS, SIZES
from seatrial.report.render.html import render
from seatrial.runs.closed_run import Run

MAX_CRITERIA = 500

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
