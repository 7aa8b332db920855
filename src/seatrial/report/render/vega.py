"""Vega-Lite charts as plain dictionaries: their look, axes, layers and legends.

Names and numbers are data of a chart, or its titles, never part of an expression.
Colours are CSS variables of the page: a chart follows the light, dark and print style
without being drawn again. The page sets the width.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seatrial.report.render import text

Row = dict[str, Any]

CONFIG: Row = {
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
    "background": "transparent",
    "padding": 4,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--ink)",
        "gridColor": "var(--grid)",
        "domainColor": "var(--muted)",
        "tickColor": "var(--muted)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "legend": {
        "orient": "bottom",
        "labelColor": "var(--ink)",
        "labelFontSize": 12,
        "labelLimit": 400,
        "titleColor": "var(--ink)",
        "columns": 3,
        "offset": 8,
    },
}

HEIGHT = 250
Style = tuple[str, str, list[int], float]
"""Colour, symbol, dash and width of a line."""

STYLES: tuple[Style, ...] = (
    ("var(--line-1)", "circle", [1, 0], 1.75),
    ("var(--line-2)", "square", [6, 3], 1.75),
    ("var(--line-3)", "triangle-up", [2, 2], 1.75),
    ("var(--line-4)", "diamond", [9, 3, 2, 3], 1.75),
    ("var(--line-5)", "cross", [4, 4], 1.75),
    ("var(--line-6)", "triangle-down", [12, 3], 1.75),
)

SIZE = (
    "{0} < 1024 ? {0} + ' B' : {0} < 1048576 ? {0} / 1024 + ' KiB' : "
    "{0} / 1048576 + ' MiB'"
)
"""Expression for the label of a message size."""

_TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
_LEGEND = {"title": None, "symbolOpacity": 1, "symbolSize": 70}


def specification(
    layers: Sequence[Row],
    datasets: dict[str, list[Row]],
    height: float,
    description: str,
    **more: Any,
) -> Row:
    """Return a chart without a width; `description` is a sentence."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "description": text.clean(description),
        "layer": [*layers],
        "config": CONFIG,
        **more,
        "datasets": datasets,
    }


def layer(data: str, mark: Row, *transforms: Row, **encoding: Any) -> Row:
    """Return a layer that draws the rows of a dataset."""
    encoded = {"data": {"name": data}, "mark": mark, "encoding": encoding}
    return encoded | ({"transform": [*transforms]} if transforms else {})


def mark(kind: str, **more: Any) -> Row:
    """Return a mark: `mark("rule", color="var(--muted)")`."""
    return {"type": kind, **more}


def channel(field: str, **more: Any) -> Row:
    """Return the encoding of a field with its type: `channel("x:Q", title="nodes")`."""
    name, _, kind = field.partition(":")
    return {"field": name, "type": _TYPES[kind], **more}


def keep(expression: str) -> Row:
    """Return a transform that keeps the rows for which an expression is true."""
    return {"filter": expression}


def calculate(**expressions: str) -> list[Row]:
    """Return transforms that add a field each."""
    return [{"calculate": value, "as": name} for name, value in expressions.items()]


def tips(*titles: tuple[str, str]) -> list[Row]:
    """Return a tooltip of fields with their titles; numbers have five digits."""
    return [
        channel(field, title=title) | ({"format": ",.5~r"} if field[-1] == "Q" else {})
        for field, title in titles
    ]


def style_channels(
    field: str, names: Sequence[str], *, legend: Row | None = None, **ranges: Any
) -> Row:
    """Return channels (color, shape, strokeDash) with a value per name."""
    return {
        name: channel(
            f"{field}:N",
            scale={"domain": [*names], "range": [*values]},
            legend=_LEGEND | (legend or {}),
        )
        for name, values in ranges.items()
    }


def line_layers(
    data: str,
    field: str,
    styles: Mapping[str, Style],
    *transforms: Row,
    place: Row,
    y: Row,
    size: int,
    band: bool = False,
    **encoding: Any,
) -> list[Row]:
    """Return a layer of lines per style, the first on top, then one of all points.

    `styles` belong to the values of `field`; rows have the number of theirs as `order`.
    `band`: shade the range from `low` to `high`.
    """
    layers = []
    for order, (colour, _, dash, width) in reversed(list(enumerate(styles.values()))):
        own = keep(f"datum.order == {order}")
        if band:
            area = mark("area", opacity=0.18, clip=True, color=colour)
            ends = {"y": channel("low:Q"), "y2": {"field": "high"}}
            layers.append(layer(data, area, own, **place, **ends))
        line = mark("line", clip=True, color=colour, strokeDash=dash, strokeWidth=width)
        layers.append(layer(data, line, own, **place, y=y))
    colours, shapes, _, _ = zip(*styles.values(), strict=True)
    look = style_channels(field, [*styles], color=colours, shape=shapes)
    point = mark("point", filled=True, size=size, opacity=1)
    return [*layers, layer(data, point, *transforms, **place, **look, y=y, **encoding)]


def words_inside(
    data: str, right: str, dx: int, *transforms: Row, style: Row, **encoding: Any
) -> list[Row]:
    """Write words beside their point, towards the middle of the chart.

    `right` is an expression that is true in the right half; `dx` is the distance.
    """
    return [
        layer(
            data,
            mark("text", align=align, dx=offset, **style),
            *transforms,
            keep(half),
            **encoding,
        )
        for align, offset, half in (("left", dx, f"!({right})"), ("right", -dx, right))
    ]


def five_digits(value: float) -> float:
    """Round to the digits that a chart shows."""
    return float(f"{value:.5g}")


def metric_title(metric: str) -> str:
    """Name a metric on an axis: bw -> bandwidth, exchange_time -> exchange time."""
    return {"bw": "bandwidth"}.get(metric, metric.replace("_", " "))


def log_axis(field: str, title: str, low: float, high: float, **axis: Any) -> Row:
    """Return a logarithmic axis from `low` to `high`, both above 0."""
    scale = {"type": "log", "domain": [low, high], "nice": False}
    look = {"values": value_ticks(low, high), "format": "~g", "labelOverlap": True}
    return channel(field, title=title, scale=scale, axis=look | axis)


def log2_axis(title: str, known: Sequence[float], label: str) -> Row:
    """Return a logarithmic axis `x` of base 2; one that holds 0 begins linearly.

    `label` is the expression for the label of a tick.
    """
    above = [value for value in known if value > 0]
    least, end, ticks = min(above), max(known) * 1.5, size_ticks(above)
    scale: Row = {"type": "log", "base": 2, "domain": [least / 1.5, end]}
    if min(known) == 0:
        ticks = [0, *ticks]
        scale = {"type": "symlog", "constant": least, "domain": [-least / 4, end]}
    axis = {"values": ticks, "labelOverlap": True, "labelExpr": label}
    return channel("x:Q", title=title, scale=scale | {"nice": False}, axis=axis)


def size_ticks(sizes: Iterable[float]) -> list[float]:
    """Choose at most nine powers of two that cover the sizes."""
    known = sorted(set(sizes))
    low = math.ceil(math.log2(known[0]))
    high = math.floor(math.log2(known[-1]))
    step = max(1, math.ceil((high - low) / 8))
    return [2**power for power in range(low, high + 1, step)] or known


def value_ticks(low: float, high: float) -> list[float]:
    """Choose powers of ten, with 2 and 5 between them on a short axis."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    step = max(1, math.ceil((last - first) / 7))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = [
        float(f"{factor}e{power}")
        for power in range(first, last + 1, step)
        for factor in steps
    ]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside or [low, high]
