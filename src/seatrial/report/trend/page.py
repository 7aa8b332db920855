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
from seatrial.report.wording import MODEL_NOTICE

MAX_CHARTS, MAX_LISTED = 24, 200
"""Charts on the page, and rows of the table of all series; trend.csv has all."""

_MAX_NIGHTS, _MAX_WORDS = 60, 12
"""Runs in the list of changes, and listed changes of one run."""


def trend_html(trend: Trend, home: Path, notes: Sequence[str] = ()) -> str:
    """Render the page, with notes at its top.

    Raises SeatrialError if a template below `home` is missing.
    """
    model = any(night.model for night in trend.nights)
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
        FILTERS | {"changes": _changes},
        **SIZES,
        notes=[*([MODEL_NOTICE] if model else []), *notes],
        trend=trend,
        changed=changed[-_MAX_NIGHTS:],
        earlier=len(changed[:-_MAX_NIGHTS]),
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
    """Choose the series to draw: beyond a limit in the last run, then in any run."""

    def urgency(line: Series) -> tuple[bool, bool, bool]:
        beyond = [line.beyond(night) for night in range(len(line.points))]
        return not beyond[-1], not any(beyond), line.points[-1].value is not None

    series = list(series)
    chosen = {line.key for line in sorted(series, key=urgency)[:MAX_CHARTS]}
    return [line for line in series if line.key in chosen]


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


def _changes(changes: tuple[Change, ...]) -> list[str]:
    return text.few((f"{x.kind}: {x.words}" for x in changes), _MAX_WORDS)
