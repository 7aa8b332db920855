"""The layers of the chart of a trend: axes, numbers, limits, changes.

The data sets are `points`, `limits`, `today`, `labels` and `changes`.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from seatrial.report.render.vega import value_ticks

Row = dict[str, Any]

_DAY_MS = 86_400_000
_FEW_DAYS = 3
_MOST_TICKS = 5


def time_axis(times: Sequence[float]) -> Row:
    """Make the axis over times in ms since the epoch, in their order."""
    first, last = times[0], times[-1]
    pad = 0.03 * (last - first) or _DAY_MS / 8
    step = _DAY_MS * ceil((last - first) / _DAY_MS / _MOST_TICKS)
    days = last - first >= _FEW_DAYS * _DAY_MS
    midnight = ceil(first / _DAY_MS) * _DAY_MS
    ticks = list(range(midnight, int(last) + 1, step)) if days else [first, last]
    form = "%Y-%m-%d" if days else "%Y-%m-%d %H:%M"
    return {
        "field": "t",
        "type": "quantitative",
        "title": "start of the run (UTC)",
        "scale": {"domain": [first - pad, last + pad], "nice": False, "zero": False},
        "axis": {
            "values": ticks,
            "labelExpr": f"utcFormat(datum.value, '{form}')",
            "labelOverlap": True,
            "grid": False,
        },
    }


def value_axis(title: str, low: float, high: float, *, log: bool) -> Row:
    """Make the axis of the numbers."""
    axis: Row = {"labelOverlap": True, "tickCount": 5}
    if log:
        axis |= {"format": "~g", "values": value_ticks(low, high)}
    return {
        "field": "y",
        "type": "quantitative",
        "title": title,
        "scale": {
            "type": "log" if log else "linear",
            "domain": [low, high],
            "nice": False,
            "zero": False,
        },
        "axis": axis,
    }


def point_layers(x: Row, y: Row, kinds: Mapping[str, tuple[str, str]]) -> list[Row]:
    """Draw ranges, lines and marks; `kinds`: colour and symbol of each."""
    points = {"data": {"name": "points"}}
    return [
        {
            **points,
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "color": "var(--line-1)", "opacity": 0.6},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            **points,
            "transform": [{"filter": "isValid(datum.part)"}],
            "mark": {"type": "line", "color": "var(--line-1)", "strokeWidth": 1.5},
            "encoding": {"x": x, "y": y, "detail": {"field": "part"}},
        },
        _marks(x, y, kinds),
    ]


def _marks(x: Row, y: Row, kinds: Mapping[str, tuple[str, str]]) -> Row:
    colours, shapes = zip(*kinds.values(), strict=True)
    legend = {"title": None, "symbolSize": 80, "symbolOpacity": 1}
    scale = {"domain": list(kinds)}
    return {
        "data": {"name": "points"},
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
        "encoding": {
            "x": x,
            "y": y,
            "color": {
                "field": "kind",
                "type": "nominal",
                "scale": scale | {"range": list(colours)},
                "legend": legend,
            },
            "shape": {
                "field": "kind",
                "type": "nominal",
                "scale": scale | {"range": list(shapes)},
                "legend": legend,
            },
            "tooltip": [
                {"field": "run", "type": "nominal"},
                {"field": "kind", "type": "nominal", "title": "what"},
                {"field": "y", "type": "quantitative", "title": "value"},
                {"field": "said", "type": "nominal", "title": "more"},
            ],
        },
    }


def limit_layers(x: Row, y: Row) -> list[Row]:
    """Draw the limits that held as steps, and those of today that are others."""
    colour: Row = {"color": "var(--limit)"}
    words = {"type": "text", "baseline": "bottom", "dy": -4, "fontWeight": 600}
    words |= colour
    labels = {"data": {"name": "labels"}}
    said = {"x": x, "y": y, "text": {"field": "words"}}
    tooltip = [
        {"field": "said", "type": "nominal", "title": "limit"},
        {"field": "source", "type": "nominal"},
    ]
    limits = {"data": {"name": "limits"}}
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    dash = {
        "field": "kind",
        "type": "nominal",
        "legend": None,
        "scale": {
            "domain": ["promised", "theoretical", "measured"],
            "range": [[1, 0], [7, 3], [2, 2]],
        },
    }
    return [
        {
            **limits,
            "mark": {**line, **colour},
            "encoding": {
                "x": x,
                "y": y,
                "detail": {"field": "line"},
                "strokeDash": dash,
            },
        },
        {
            **limits,
            "mark": {"type": "point", "shape": "stroke", "size": 120, **colour},
            "encoding": {"x": x, "y": y, "tooltip": tooltip},
        },
        {
            "data": {"name": "today"},
            "mark": {
                "type": "rule",
                "strokeDash": [2, 4],
                "strokeWidth": 1.5,
                **colour,
            },
            "encoding": {"y": y},
        },
        {
            **labels,
            "transform": [{"filter": "!datum.late"}],
            "mark": {**words, "align": "left", "dx": -4},
            "encoding": said,
        },
        {
            **labels,
            "transform": [{"filter": "datum.late"}],
            "mark": {**words, "align": "right", "dx": 4},
            "encoding": said,
        },
    ]


def change_layers(x: Row) -> list[Row]:
    """Draw a numbered line where something changed."""
    changes = {"data": {"name": "changes"}}
    tooltip = [{"field": "said", "type": "nominal", "title": "changed"}]
    return [
        {
            **changes,
            "mark": {"type": "rule", "color": "var(--muted)", "strokeDash": [3, 3]},
            "encoding": {"x": x, "tooltip": tooltip},
        },
        {
            **changes,
            "mark": {
                "type": "text",
                "color": "var(--ink)",
                "baseline": "bottom",
                "fontWeight": 600,
            },
            "encoding": {
                "x": x,
                "y": {"value": -2},
                "text": {"field": "mark"},
                "tooltip": tooltip,
            },
        },
    ]
