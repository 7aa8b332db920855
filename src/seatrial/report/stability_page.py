"""Live page of an open stability phase: one HTML file, written anew."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import vl_convert

from seatrial.criteria.stability import StabilityCriterion
from seatrial.judge.findings import Finding
from seatrial.judge.stability_findings import judge_phase
from seatrial.model.spans import span_text
from seatrial.model.units import rounded
from seatrial.report.render.figure import Figure
from seatrial.report.render.html import FILTERS, SIZES, render
from seatrial.report.stability_chapter import (
    burst_of,
    figures,
    intro,
    rules_of,
    tables,
)
from seatrial.stability.phase import Phase, open_criteria, phase_of_folder

_WIDTH = 640


def stability_page(folder: Path, home: Path, refresh_s: float = 0.0) -> str | None:
    """Render the page of an open run; None if it is no stability phase.

    A browser reloads it every `refresh_s` seconds, 0 for never. Raises SeatrialError if
    a file of the run is damaged, or a template below `home` is missing.
    """
    criteria = open_criteria(folder, home)
    phase = phase_of_folder(folder, criteria)
    if phase is None:
        return None
    rules = rules_of(criteria)
    page = render(
        home,
        "stability.html.j2",
        FILTERS,
        charts=False,
        system=folder.parent.name,
        run=phase.run,
        now=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        refresh=span_text(refresh_s) if refresh_s else "",
        facts=_facts(phase),
        standing=standing(phase, rules),
        tables=tables(phase, burst_of(rules)),
        figures=[_drawn(figure) for figure in figures(phase, rules)],
        **SIZES,
    )
    if refresh_s:
        reload = f'<meta http-equiv="refresh" content="{refresh_s:.0f}">\n<title>'
        page = page.replace("<title>", reload, 1)
    return page


def standing(phase: Phase, rules: Sequence[StabilityCriterion]) -> list[Finding]:
    """Judge what was observed so far; no verdict is final before the phase is over."""
    return [judge_phase(rule, phase) for rule in rules]


def _facts(phase: Phase) -> list[tuple[str, str]]:
    hours, now = phase.hours, phase.journal.observed
    away = {one.node for one in phase.journal.away if not one.back}
    last = f"{datetime.fromtimestamp(now[-1].end, UTC):%H:%M:%S} UTC" if now else "none"
    left = max(0.0, phase.declared.duration_s - phase.journal.seconds)
    return [
        ("Phase", intro(phase)),
        ("Last look at the nodes", last),
        ("Nodes away now", str(len(away))),
        ("Node-hours up", f"{rounded(hours.up)} of {rounded(hours.total)}"),
        ("Time left", span_text(left)),
    ]


def _drawn(figure: Figure) -> Figure:
    drawn = vl_convert.vegalite_to_svg(
        {**figure.spec, "width": _WIDTH}, allowed_base_urls=[]
    )
    return replace(figure, drawing=str(drawn))
