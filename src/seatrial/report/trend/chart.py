"""A metric over nights as a Vega-Lite chart and as a table.

Names are data of the chart, never part of an expression.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from seatrial.report.render import text
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.vega import HEIGHT, Row, specification
from seatrial.report.trend.chart_layers import (
    change_layers,
    limit_layers,
    point_layers,
    time_axis,
    value_axis,
)
from seatrial.report.trend.series import Limit, Point, Series, Trend
from seatrial.report.trend.text import metric_words

MEDIAN, BEYOND = "median of the jobs", "median beyond a limit"
WORST, WORST_BEYOND = "worst place", "worst place beyond a limit"
NO_NUMBER = "no number"

_MARKS: dict[str, tuple[str, str]] = {
    MEDIAN: ("var(--line-1)", "circle"),
    BEYOND: ("var(--fail)", "cross"),
    WORST: ("var(--quiet)", "triangle-down"),
    WORST_BEYOND: ("var(--fail)", "diamond"),
    NO_NUMBER: ("var(--undecided)", "triangle-up"),
}
_NEAR = 3.0
"""Largest ratio of a limit to the values at which it is drawn."""

_WIDE = 16


@dataclass(frozen=True)
class _Picture:
    """Values of the drawn limits, and the axis from `low` to `high`."""

    limits: frozenset[float]
    low: float
    high: float
    log: bool


def figure(name: str, trend: Trend, series: Series, marks: Mapping[int, int]) -> Figure:
    """Draw a series; `marks` numbers the nights before which something changed."""
    key = series.key
    where = [key.environment, key.partition, _nodes(key.num_nodes)]
    unit = "" if key.unit == "1" else f"{key.unit}, "
    places = any(point.worst is not None for point in series.points)
    how = (
        f"{unit}{key.direction} is better; {key.statistic}; median over jobs"
        f"{' of the median over places' if places else ''}, bar: range of the jobs"
    )
    detail = f"{key.case}: {', '.join(filter(None, where))}; {how}"
    picture = _picture(series)
    return Figure(
        name=name,
        title=f"{key.check}: {metric_words(key)}",
        detail=detail,
        spec=_spec(trend, series, marks, picture, detail),
        table=_table(trend, series, marks),
        note=_note(series, picture.limits),
    )


def _nodes(number: int | None) -> str:
    return "1 node" if number == 1 else f"{number} nodes" if number else ""


def _picture(series: Series) -> _Picture:
    """Choose the ends of the axis, and the limits that fit beside the numbers."""
    seen = [
        value
        for point in series.points
        for value in (point.low, point.high, point.worst)
        if value is not None
    ]
    low, high = min(seen), max(seen)
    least = low / _NEAR if low > 0 else low - (high - low)
    most = high * _NEAR if low > 0 else high + (high - low)
    limits = frozenset(
        limit.value for limit in _all_limits(series) if least <= limit.value <= most
    )
    low, high = min(low, *limits, high), max(high, *limits, low)
    if low > 0 and high > _WIDE * low:
        return _Picture(limits, low / 1.2, high * 1.2, log=True)
    pad = 0.12 * (high - low) or 0.05 * abs(high) or 1.0
    return _Picture(limits, low - pad, high + pad, log=False)


def _all_limits(series: Series) -> Iterator[Limit]:
    for point in series.points:
        yield from point.limits
    yield from series.today


def _note(series: Series, drawn: frozenset[float]) -> str:
    """Name the limits that are so far from the numbers that they are not drawn."""
    far = dict.fromkeys(
        limit_words(limit, series)
        for limit in _all_limits(series)
        if limit.value not in drawn
    )
    return f"Too far off to draw: {'; '.join(far)}." if far else ""


def limit_words(limit: Limit, series: Series) -> str:
    """Format a limit with its kind: `promised, at least 60 MB/s`."""
    words = "at most" if series.key.direction == "lower" else "at least"
    number = text.quantity(text.exact(limit.value), series.key.unit)
    return f"{limit.kind}, {words} {number}"


def _spec(
    trend: Trend,
    series: Series,
    marks: Mapping[int, int],
    picture: _Picture,
    detail: str,
) -> Row:
    key = series.key
    times = [_time(night.started) for night in trend.nights]
    unit = "" if key.unit == "1" else f" ({key.unit})"
    points = list(_point_rows(trend, series, times, picture.low))
    seen = {row["kind"] for row in points}
    kinds = {kind: style for kind, style in _MARKS.items() if kind in seen}
    limits = list(_limit_rows(series, times, picture))
    today = list(_today_rows(series, picture))
    late = [{**row, "t": times[-1], "late": True} for row in today]
    x = time_axis(times)
    y = value_axis(
        f"{metric_words(key)}{unit}", picture.low, picture.high, log=picture.log
    )
    return specification(
        [*change_layers(x), *limit_layers(x, y), *point_layers(x, y, kinds)],
        {
            "points": points,
            "limits": limits,
            "today": today,
            "labels": [*_label_rows(times, limits), *late],
            "changes": list(_change_rows(trend, times, marks)),
        },
        HEIGHT,
        f"{key.metric} over runs; {detail}.",
    )


def _time(started: str) -> float:
    """Return the milliseconds since the epoch."""
    return datetime.fromisoformat(started).timestamp() * 1000


def _point_rows(
    trend: Trend, series: Series, times: Sequence[float], bottom: float
) -> Iterator[Row]:
    """Return the marks; a line joins the medians between two gaps."""
    part = 0
    for night, point, time in zip(trend.nights, series.points, times, strict=True):
        common = {"t": time, "run": night.run}
        if point.value is None:
            part += 1
            yield {**common, "y": bottom, "kind": NO_NUMBER, "said": point.gap}
            continue
        if point.worst is not None:
            beyond = series.misses(point.worst, point.limits)
            yield {
                **common,
                "y": _number(point.worst),
                "kind": WORST_BEYOND if beyond else WORST,
                "said": point.worst_place,
            }
        beyond = series.misses(point.value, point.limits)
        yield {
            **common,
            "y": _number(point.value),
            "low": _number(point.low),
            "high": _number(point.high),
            "part": part,
            "kind": BEYOND if beyond else MEDIAN,
            "said": _said(point, series),
        }


def _number(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _said(point: Point, series: Series) -> str:
    limits = "; ".join(limit_words(limit, series) for limit in point.limits)
    jobs = f"{point.allocations} {'job' if point.allocations == 1 else 'jobs'}"
    return f"{jobs}; {limits}" if limits else jobs


def _limit_rows(
    series: Series, times: Sequence[float], picture: _Picture
) -> Iterator[Row]:
    """Return each limit in each run: a line, cut where it did not hold."""
    before: dict[str, Row] = {}
    for number, (time, point) in enumerate(zip(times, series.points, strict=True)):
        held: dict[str, Row] = {}
        for limit in point.limits:
            if limit.value not in picture.limits:
                continue
            name = limit.criterion
            row = {"t": time, "y": limit.value, "kind": limit.kind}
            old = before.get(name)
            row["line"] = old["line"] if old else f"{name} {number}"
            yield {**row, "said": limit_words(limit, series), "source": limit.source}
            held[name] = row
        before = held


def _today_rows(series: Series, picture: _Picture) -> Iterator[Row]:
    """Return the limits of today that are not those of the last run."""
    last = {(each.criterion, each.value) for each in series.points[-1].limits}
    for limit in series.today:
        new = (limit.criterion, limit.value) not in last
        if new and limit.value in picture.limits:
            yield {"y": limit.value, "words": f"today: {limit_words(limit, series)}"}


def _label_rows(times: Sequence[float], limits: Sequence[Row]) -> Iterator[Row]:
    """Return the label of each limit at its start, of late ones at the end."""
    middle = (times[0] + times[-1]) / 2
    labels: dict[str, float] = {}
    for row in limits:
        if labels.get(row["line"]) != row["y"]:
            labels[row["line"]] = row["y"]
            late = row["t"] > middle
            time = times[-1] if late else row["t"]
            yield {"t": time, "y": row["y"], "words": row["said"], "late": late}


def _change_rows(
    trend: Trend, times: Sequence[float], marks: Mapping[int, int]
) -> Iterator[Row]:
    for night, number in marks.items():
        words = text.few((change.words for change in trend.nights[night].changes), 3)
        yield {"t": times[night], "mark": str(number), "said": "; ".join(words)}


def _table(trend: Trend, series: Series, marks: Mapping[int, int]) -> Table:
    rows = []
    for number, night in enumerate(trend.nights):
        point = series.points[number]
        worst = ""
        if point.worst is not None:
            worst = f"{text.measured(point.worst)} ({point.worst_place})"
        remarks = [point.gap] if point.gap else []
        if series.beyond(number):
            remarks.append("beyond a limit")
        if number in marks:
            remarks.append(f"change {marks[number]}")
        rows.append(
            (
                text.day_and_time(night.started),
                night.run,
                text.measured(point.value),
                _range(point),
                str(point.allocations or ""),
                worst,
                "; ".join(limit_words(limit, series) for limit in point.limits),
                "; ".join(remarks),
            )
        )
    columns = ("Started", "Run", "Median", "Range of the jobs", "Jobs", "Worst place")
    return Table((*columns, "Limits that held", "Remarks"), tuple(rows))


def _range(point: Point) -> str:
    if point.allocations < 2:
        return ""
    return f"{text.measured(point.low)} to {text.measured(point.high)}"
