"""The trend of a system as one HTML page."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from seatrial.report.render import text
from seatrial.report.render.html import FILTERS, SIZES, render
from seatrial.report.trend.changes import Change
from seatrial.report.trend.chart import figure
from seatrial.report.trend.series import Series, Trend
from seatrial.report.trend.text import beyond_words, limits_words, metric_words

MAX_CHARTS = 24
MAX_LISTED = 200
"""Charts on the page, and rows of the table of all series; trend.csv has all."""

MAX_NIGHTS = 60
MAX_WORDS = 12
"""Runs with changes in the list of changes, and changes of one of them."""


def trend_html(trend: Trend, home: Path, notes: Sequence[str] = ()) -> str:
    """Render the page, with notes at its top.

    Raises SeatrialError if a template below `home` is missing.
    """
    nights = [number for number, night in enumerate(trend.nights) if night.changes]
    marks = {night: number for number, night in enumerate(nights, 1)}
    drawn = drawn_series(trend.series)
    names = {series.key: f"series-{number}" for number, series in enumerate(drawn, 1)}
    changed = [(number, trend.nights[night]) for night, number in marks.items()]
    lines = [_line(series, names.get(series.key, "")) for series in trend.series]
    if len(lines) > MAX_LISTED:  # series without a chart first
        lines = sorted(lines, key=lambda line: bool(line["chart"]))[:MAX_LISTED]
    return render(
        home,
        "trend.html.j2",
        FILTERS | {"changes": _few_changes},
        **SIZES,
        notes=notes,
        trend=trend,
        changed=changed[-MAX_NIGHTS:],
        earlier=len(changed[:-MAX_NIGHTS]),
        figures=[figure(names[line.key], trend, line, marks) for line in drawn],
        lines=lines,
        not_drawn=len(trend.series) - len(drawn),
        without_criteria=sum(not night.own_criteria for night in trend.nights),
        any_limits=any(
            series.today or any(point.limits for point in series.points)
            for series in trend.series
        ),
    )


def drawn_series(series: Iterable[Series]) -> list[Series]:
    """Choose what is drawn: beyond a limit first, lately before long ago."""
    series = list(series)
    chosen = {each.key for each in sorted(series, key=_urgency)[:MAX_CHARTS]}
    return [each for each in series if each.key in chosen]


def _urgency(series: Series) -> tuple[bool, bool, bool]:
    nights = range(len(series.points))
    return (
        not series.beyond(nights[-1]),
        not any(map(series.beyond, nights)),
        series.points[-1].value is not None,
    )


def _line(series: Series, chart: str) -> dict[str, Any]:
    """Return a row of the table; `chart` names the chart, '' if it has none."""
    values = [point.value for point in series.points if point.value is not None]
    return {
        "key": series.key,
        "metric": metric_words(series.key),
        "runs": f"{len(values)} of {len(series.points)}",
        "first": text.measured(values[0]),
        "last": text.measured(series.points[-1].value),
        "range": f"{text.measured(min(values))} to {text.measured(max(values))}",
        "limits": limits_words(series.today, series.key.direction),
        "beyond": beyond_words(series),
        "chart": chart,
    }


def _few_changes(changes: tuple[Change, ...]) -> list[str]:
    """Describe changes, the first of many."""
    return text.few((f"{change.kind}: {change.words}" for change in changes), MAX_WORDS)
