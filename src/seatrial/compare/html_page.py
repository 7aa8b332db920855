"""A comparison as one HTML page."""

from collections.abc import Sequence
from pathlib import Path

from seatrial.compare import figures, wording
from seatrial.compare.curves import curve_figures
from seatrial.compare.formats import most_telling
from seatrial.compare.records import Comparison
from seatrial.report.render.html import FILTERS, SIZES, render

MAX_NUMBERS, MAX_UNPAIRED, MAX_CLAIMS = 1000, 500, 500
"""Rows of a table; compare.csv has all numbers, compare.json everything."""

_FILTERS = FILTERS | {
    "percent": wording.percent,
    "labels": wording.labels,
    "correlation": wording.correlation_words,
    "times": wording.times,
    "interval": wording.interval,
}


def compare_html(comparison: Comparison, home: Path, notes: Sequence[str] = ()) -> str:
    """Render the page, with notes at its top.

    Raises SeatrialError if a template below `home` is missing.
    """
    curves, more_curves = curve_figures(comparison)
    unpaired = sorted(comparison.unpaired, key=lambda entry: not entry.group)
    return render(
        home,
        "compare.html.j2",
        _FILTERS,
        **SIZES,
        notes=notes,
        comparison=comparison,
        names=figures.side_names(comparison),
        headline=wording.headline(comparison),
        lead=wording.lead(comparison),
        score=figures.score_figure(comparison),
        selection=figures.selection_figure(comparison),
        groups=figures.group_figure(comparison),
        checks=figures.checks_figure(comparison),
        curves=curves,
        more_curves=more_curves,
        numbers=most_telling(comparison, MAX_NUMBERS),
        unpaired=unpaired[:MAX_UNPAIRED],
        counting=sum(bool(entry.group) for entry in unpaired),
        claims=comparison.claims[:MAX_CLAIMS],
    )
