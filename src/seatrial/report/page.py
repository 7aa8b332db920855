"""The report as one HTML page."""

from pathlib import Path
from typing import Any

from seatrial.judge import Judgement
from seatrial.report import text, view
from seatrial.report.charts import chart
from seatrial.report.curves import curves
from seatrial.report.heat import LEAST_CELL, WIDE, heat_chart, level_names
from seatrial.report.matrix import MAX_RETESTED, SLOW, matrices
from seatrial.report.nodes import node_table
from seatrial.report.selfcontained import render
from seatrial.report.table import table
from seatrial.results import Run

_FILTERS = {
    "detail_of": lambda case, check: view.case_detail(check, case),
    "lasted": lambda session: text.span(session["started"], session["ended"]),
    "by_check": lambda figures: _by_check(figures),
    "level_names": level_names,
}


def html(run: Run, judgement: Judgement, home: Path) -> str:
    """Render the page; SeatrialError if a template below `home` is missing."""
    figures = [(curve, chart(curve), table(curve)) for curve in curves(run, judgement)]
    return render(
        home,
        "report.html.j2",
        _FILTERS,
        run=run,
        manifest=run.manifest,
        judgement=judgement,
        seconds=text.span(run.manifest.get("started"), run.manifest.get("ended")),
        counts=view.counts(judgement.findings),
        findings=view.finding_rows(judgement),
        causes=view.causes(judgement),
        worth_a_look=judgement.worth_a_look,
        nodes=node_table(run, judgement),
        failed=view.cases_by_result(run.cases, "fail"),
        skipped=view.cases_by_result(run.cases, "skip"),
        cases=run.cases[: view.MAX_CASES],
        pairs=[(matrix, heat_chart(matrix)) for matrix in matrices(run, judgement)],
        max_retested=MAX_RETESTED,
        slow_level=SLOW,
        wide_matrix=WIDE,
        least_cell=LEAST_CELL,
        figures=figures,
        methods=view.methods(run),
        sources=view.sources(judgement.findings),
        max_names=view.MAX_NAMES,
    )


def _by_check(
    figures: list[tuple[Any, ...]],
) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """Number the figures and group them by check, in their order."""
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for number, figure in enumerate(figures, 1):
        groups.setdefault(figure[0].check, []).append((number, *figure))
    return list(groups.items())
