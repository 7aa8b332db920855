"""The trend of a system as one HTML page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.report.render import text
from seatrial.report.render.html import FILTERS, SIZES, render
from seatrial.report.trend.changes import Change
from seatrial.report.trend.chart import figure
from seatrial.report.trend.series import Night, Series, Trend
from seatrial.report.trend.text import beyond_words, limits_words, metric_words

MAX_CHARTS = 24
MAX_LISTED = 200
"""Charts on the page, and rows of the table of all series; trend.csv has all."""

MAX_NIGHTS = 60
MAX_WORDS = 12
"""Runs with changes in the list of changes, and changes of one of them."""


@dataclass(frozen=True)
class _Changed:
    """A run before which something changed, by its number in the charts."""

    number: int
    night: Night


@dataclass(frozen=True)
class _Line:
    """A series in one line; `chart` names its chart, '' if it has none."""

    series: Series
    metric: str
    runs: str
    first: str
    last: str
    range: str
    limits: str
    beyond: str
    chart: str


def trend_html(trend: Trend, home: Path, notes: Sequence[str] = ()) -> str:
    """Render the page, with notes at its top.

    Raises SeatrialError if a template below `home` is missing.
    """
    marks = {
        place: number
        for number, place in enumerate(
            (place for place, night in enumerate(trend.nights) if night.changes), 1
        )
    }
    drawn = drawn_series(trend.series)
    names = {each.key: f"series-{number}" for number, each in enumerate(drawn, 1)}
    changed = [_Changed(number, trend.nights[place]) for place, number in marks.items()]
    lines = [_line(each, names.get(each.key, "")) for each in trend.series]
    return render(
        home,
        "trend.html.j2",
        FILTERS | {"changes": _few_changes},
        **SIZES,
        notes=notes,
        trend=trend,
        changed=changed[-MAX_NIGHTS:],
        earlier=len(changed[:-MAX_NIGHTS]),
        figures=[figure(names[each.key], trend, each, marks) for each in drawn],
        # Those without a chart are told first where not all can be.
        lines=sorted(lines, key=lambda line: bool(line.chart))[:MAX_LISTED]
        if len(lines) > MAX_LISTED
        else lines,
        not_drawn=len(trend.series) - len(drawn),
        without_criteria=sum(not night.own_criteria for night in trend.nights),
        any_limits=any(
            each.today or any(p.limits for p in each.points) for each in trend.series
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


def _line(series: Series, chart: str) -> _Line:
    values = [point.value for point in series.points if point.value is not None]
    return _Line(
        series=series,
        metric=metric_words(series.key),
        runs=f"{len(values)} of {len(series.points)}",
        first=text.measured(values[0]),
        last=text.measured(series.points[-1].value),
        range=f"{text.measured(min(values))} to {text.measured(max(values))}",
        limits=limits_words(series.today, series.key.direction),
        beyond=beyond_words(series),
        chart=chart,
    )


def _few_changes(changes: tuple[Change, ...]) -> list[str]:
    """Describe changes, the first of many."""
    said = [f"{change.kind}: {change.words}" for change in changes]
    more = len(said) - MAX_WORDS
    return [*said[:MAX_WORDS], f"and {more} more"] if more > 0 else said
