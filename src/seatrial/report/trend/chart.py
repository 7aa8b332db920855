"""A metric over nights as a Vega-Lite chart and as a table.

Names are data of the chart, never part of an expression.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain

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
_COLUMNS = (
    "Started",
    "Run",
    "Median",
    "Range of the jobs",
    "Jobs",
    "Worst place",
    "Limits that held",
    "Remarks",
)


def figure(name: str, trend: Trend, series: Series, marks: Mapping[int, int]) -> Figure:
    """Draw a series; `marks` numbers the nights before which something changed."""
    key = series.key
    nodes = "1 node" if key.num_nodes == 1 else f"{key.num_nodes} nodes"
    where = [key.environment, key.partition, nodes if key.num_nodes else ""]
    unit = "" if key.unit == "1" else f"{key.unit}, "
    places = any(point.worst is not None for point in series.points)
    detail = (
        f"{key.case}: {', '.join(filter(None, where))}; {unit}{key.direction} is "
        f"better; {key.statistic}; median over jobs"
        f"{' of the median over places' if places else ''}, bar: range of the jobs"
    )
    drawing = _Drawing(trend, series, marks)
    return Figure(
        name=name,
        title=f"{key.check}: {metric_words(key)}",
        detail=detail,
        spec=drawing.spec(f"{key.metric} over runs; {detail}."),
        table=Table(_COLUMNS, tuple(map(drawing.table_row, range(len(trend.nights))))),
        note=drawing.note(),
    )


class _Drawing:
    """The data of a chart.

    `limits` are the values of the limits near the numbers; the axis is from `low` to
    `high`; `times` are in ms since the epoch.
    """

    def __init__(self, trend: Trend, series: Series, marks: Mapping[int, int]) -> None:
        self.nights, self.series, self.marks = trend.nights, series, marks
        self.times = [
            datetime.fromisoformat(night.started).timestamp() * 1000
            for night in trend.nights
        ]
        held = chain.from_iterable(point.limits for point in series.points)
        self.all_limits = [*held, *series.today]
        numbers = [
            value
            for point in series.points
            for value in (point.low, point.high, point.worst)
            if value is not None
        ]
        low, high = min(numbers), max(numbers)
        least = low / _NEAR if low > 0 else low - (high - low)
        most = high * _NEAR if low > 0 else high + (high - low)
        values = {limit.value for limit in self.all_limits}
        self.limits = {value for value in values if least <= value <= most}
        low, high = min(low, high, *self.limits), max(low, high, *self.limits)
        self.log = low > 0 and high > _WIDE * low
        if self.log:
            self.low, self.high = low / 1.2, high * 1.2
        else:
            pad = 0.12 * (high - low) or 0.05 * abs(high) or 1.0
            self.low, self.high = low - pad, high + pad

    def note(self) -> str:
        """Name the limits that are too far from the numbers to be drawn."""
        far = dict.fromkeys(
            self.limit_words(limit)
            for limit in self.all_limits
            if limit.value not in self.limits
        )
        return f"Too far off to draw: {'; '.join(far)}." if far else ""

    def limit_words(self, limit: Limit) -> str:
        """Format a limit with its kind: `promised, at least 60 MB/s`."""
        words = "at most" if self.series.key.direction == "lower" else "at least"
        number = text.quantity(text.exact(limit.value), self.series.key.unit)
        return f"{limit.kind}, {words} {number}"

    def held(self, point: Point) -> str:
        """Join the limits that held in a run."""
        return "; ".join(map(self.limit_words, point.limits))

    def spec(self, description: str) -> Row:
        """Return the Vega-Lite specification without a width."""
        key, times = self.series.key, self.times
        unit = "" if key.unit == "1" else f" ({key.unit})"
        points = list(self.point_rows())
        present = {row["kind"] for row in points}
        kinds = {kind: style for kind, style in _MARKS.items() if kind in present}
        limits, today = list(self.limit_rows()), list(self.today_rows())
        late = [{**row, "t": times[-1], "late": True} for row in today]
        x = time_axis(times)
        y = value_axis(f"{metric_words(key)}{unit}", self.low, self.high, log=self.log)
        changes = [
            {
                "t": times[night],
                "mark": str(number),
                "said": "; ".join(
                    text.few((x.words for x in self.nights[night].changes), 3)
                ),
            }
            for night, number in self.marks.items()
        ]
        return specification(
            [*change_layers(x), *limit_layers(x, y), *point_layers(x, y, kinds)],
            {
                "points": points,
                "limits": limits,
                "today": today,
                "labels": [*self.label_rows(limits), *late],
                "changes": changes,
            },
            HEIGHT,
            description,
        )

    def point_rows(self) -> Iterator[Row]:
        """Return the marks; a line joins the medians of the same `part`."""
        part = 0
        points = zip(self.nights, self.series.points, self.times, strict=True)
        for night, point, time in points:
            common = {"t": time, "run": night.run}
            if point.value is None:
                part += 1
                yield {**common, "y": self.low, "kind": NO_NUMBER, "said": point.gap}
                continue
            if point.worst is not None:
                beyond = self.series.misses(point.worst, point.limits)
                yield {
                    **common,
                    "y": _number(point.worst),
                    "kind": WORST_BEYOND if beyond else WORST,
                    "said": point.worst_place,
                }
            beyond = self.series.misses(point.value, point.limits)
            jobs = f"{point.allocations} {'job' if point.allocations == 1 else 'jobs'}"
            yield {
                **common,
                "y": _number(point.value),
                "low": _number(point.low),
                "high": _number(point.high),
                "part": part,
                "kind": BEYOND if beyond else MEDIAN,
                "said": "; ".join(filter(None, (jobs, self.held(point)))),
            }

    def limit_rows(self) -> Iterator[Row]:
        """Return each limit in each run: a line, cut where it did not hold."""
        lines: dict[str, str] = {}
        runs = zip(self.times, self.series.points, strict=True)
        for number, (time, point) in enumerate(runs):
            drawn = [limit for limit in point.limits if limit.value in self.limits]
            names = [limit.criterion for limit in drawn]
            lines = {name: lines.get(name, f"{name} {number}") for name in names}
            for limit in drawn:
                yield {
                    "t": time,
                    "y": limit.value,
                    "kind": limit.kind,
                    "line": lines[limit.criterion],
                    "said": self.limit_words(limit),
                    "source": limit.source,
                }

    def today_rows(self) -> Iterator[Row]:
        """Return the limits of today that differ from those of the last run."""
        last = {
            (limit.criterion, limit.value) for limit in self.series.points[-1].limits
        }
        for limit in self.series.today:
            new = (limit.criterion, limit.value) not in last
            if new and limit.value in self.limits:
                yield {"y": limit.value, "words": f"today: {self.limit_words(limit)}"}

    def label_rows(self, limits: list[Row]) -> Iterator[Row]:
        """Return the label of each limit at its start, of late ones at the end."""
        end = self.times[-1]
        labels: dict[str, float] = {}
        for row in limits:
            if labels.get(row["line"]) != row["y"]:
                labels[row["line"]] = row["y"]
                late = row["t"] > (self.times[0] + end) / 2
                time = end if late else row["t"]
                yield {"t": time, "y": row["y"], "words": row["said"], "late": late}

    def table_row(self, number: int) -> tuple[str, ...]:
        """Return the cells of a night."""
        night, point = self.nights[number], self.series.points[number]
        low, high, worst = map(text.measured, (point.low, point.high, point.worst))
        remarks = [
            point.gap,
            "beyond a limit" if self.series.beyond(number) else "",
            f"change {self.marks[number]}" if number in self.marks else "",
        ]
        return (
            text.day_and_time(night.started),
            night.run,
            text.measured(point.value),
            "" if point.allocations < 2 else f"{low} to {high}",
            str(point.allocations or ""),
            "" if point.worst is None else f"{worst} ({point.worst_place})",
            self.held(point),
            "; ".join(filter(None, remarks)),
        )


def _number(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
