"""A curve as a Vega-Lite chart.

Colours are CSS variables of the page, so a chart follows the light, dark and print
style without being drawn again. The page sets the width and draws at it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from seatrial.report.curve_layers import (
    PARAMETER,
    limit_layers,
    limit_rows,
    near_limits,
    published_layers,
    published_rows,
)
from seatrial.report.curves import Curve, Line
from seatrial.report.render import text
from seatrial.report.render.text import short
from seatrial.report.render.vega import CONFIG, metric_title, size_ticks, value_ticks

# Colour, symbol, dash and width of the lines of a curve, in their order.
_Style = tuple[str, str, list[int], float]
_LINE_STYLES: list[_Style] = [
    ("var(--line-1)", "circle", [1, 0], 1.75),
    ("var(--line-2)", "square", [6, 3], 1.75),
    ("var(--line-3)", "triangle-up", [2, 2], 1.75),
    ("var(--line-4)", "diamond", [9, 3, 2, 3], 1.75),
    ("var(--line-5)", "cross", [4, 4], 1.75),
    ("var(--line-6)", "triangle-down", [12, 3], 1.75),
]
_IDEAL: _Style = ("var(--muted)", "triangle-right", [2, 4], 1.5)
# The same for lines in groups, by the first word of the group.
_STYLES: dict[str, _Style] = {
    "at": ("var(--fail)", "square", [1, 0], 2.5),
    "median": ("var(--line-1)", "diamond", [6, 3], 2.5),
    "others": ("var(--quiet)", "circle", [1, 0], 1),
}
_SIZE = (
    "{0} < 1024 ? {0} + ' B' : {0} < 1048576 ? {0} / 1024 + ' KiB' : "
    "{0} / 1048576 + ' MiB'"
)
_HEIGHT = 250
_WIDE = 16  # largest over smallest x above which an axis is logarithmic
_MAX_NAMED = 6


def chart(curve: Curve) -> dict[str, Any]:
    """Give the Vega-Lite specification of a curve, without a width."""
    curve = replace(curve, limits=near_limits(curve))
    known = [point.x for line in curve.lines for point in line.points]
    known += [limit.x for limit in curve.limits]
    values = [v for line in curve.lines for p in line.points for v in (p.low, p.high)]
    values += [limit.value for limit in curve.limits]
    ends = _ends(curve, values)
    x = _x(curve, known)
    y = _y(curve, min(values), max(values), ends)
    groups = _groups(curve)
    edge = ends[0 if curve.direction == "higher" else 1] if ends else None
    layers = [
        *limit_layers(curve, known, edge, x, y),
        *_lines(curve, groups, x, y),
        *published_layers(curve, x, y),
    ]
    picture = alt.layer(*layers).properties(
        height=_HEIGHT,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        description=describe(curve),
    )
    # The numbers come last: Altair would copy them again and again.
    return {
        **picture.to_dict(validate=False),
        "config": CONFIG,
        "params": [{"name": PARAMETER, "value": []}],
        "datasets": {
            "points": _points(curve, groups),
            "limits": limit_rows(curve.limits),
            "published": published_rows(curve.published),
        },
    }


def _x(curve: Curve, known: Sequence[float]) -> alt.X:
    """Choose the axis: logarithmic over sizes and wherever the numbers are wide."""
    low, high = min(known), max(known)
    above = [value for value in known if value > 0]
    if not curve.over:
        return _log_x(curve.x_title, known, labelExpr=_SIZE.format("datum.value"))
    narrow = curve.over != "nodes" and high < _WIDE * min(above, default=high)
    if low < 0 or not above or narrow:
        scale = alt.Scale(domain=[low, high], padding=10, nice=False, zero=False)
        return alt.X(
            "x:Q", title=curve.x_title, scale=scale, axis=alt.Axis(format="~g")
        )
    return _log_x(curve.x_title, known, labelExpr="'' + datum.value")


def _log_x(title: str, known: Sequence[float], **axis: Any) -> alt.X:
    """Make a logarithmic axis; if it has to hold 0, its first step is linear."""
    above = [value for value in known if value > 0]
    ticks, end = size_ticks(above), max(known) * 1.5
    scale = alt.Scale(type="log", base=2, domain=[min(above) / 1.5, end], nice=False)
    if min(known) == 0:
        ticks = [0, *ticks]
        least = min(above)
        scale = alt.Scale(
            type="symlog", constant=least, domain=[-least / 4, end], nice=False
        )
    return alt.X(
        "x:Q",
        title=title,
        scale=scale,
        axis=alt.Axis(values=ticks, labelOverlap=True, **axis),
    )


def _ends(curve: Curve, values: Sequence[float]) -> tuple[float, float] | None:
    """Give the ends of a logarithmic axis, with the published; None: it is linear."""
    low, high = min(values), max(values)
    if low <= 0:
        return None
    published = [point.value for point in curve.published if point.value > 0]
    room = 3 if curve.limits else 1.2
    return min([low, *published]) / 1.2, max(
        [high * room, *(1.2 * v for v in published)]
    )


def _y(
    curve: Curve, low: float, high: float, ends: tuple[float, float] | None
) -> alt.Y:
    """Choose a logarithmic axis, where every value has a logarithm.

    Published numbers may lie far away: the axis reaches them while they are shown.
    """
    title = f"{metric_title(curve.metric)} ({curve.unit})"
    if ends is None:
        axis = alt.Axis(format="~g", labelOverlap=True)
        return alt.Y("y:Q", title=title, scale=alt.Scale(padding=10), axis=axis)
    own = (low / 1.2, high * (3 if curve.limits else 1.2))
    domain: Any = own
    ticks: Any = value_ticks(low, high)
    if ends != own:
        wide = value_ticks(ends[0] * 1.2, ends[1] / 1.2)
        domain = [
            alt.ExprRef(f"length({PARAMETER}) ? {far!r} : {near!r}")
            for far, near in zip(ends, own, strict=True)
        ]
        ticks = alt.ExprRef(f"length({PARAMETER}) ? {wide} : {ticks}")
    return alt.Y(
        "y:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False, domain=domain),
        axis=alt.Axis(values=ticks, format="~g", labelOverlap=True),
    )


def describe(curve: Curve) -> str:
    """Say in a sentence what a chart shows, for who cannot see it."""
    lines = ", ".join(line.label for line in curve.lines[:_MAX_NAMED])
    more = len(curve.lines) - _MAX_NAMED
    if more > 0:
        lines += f" and {more} more"
    return text.clean(
        f"{curve.check} {curve.detail}: {metric_title(curve.metric)} in {curve.unit} "
        f"over {curve.x_title}, {curve.direction} "
        f"is better; lines: {lines}."
    )


def _points(curve: Curve, groups: list[str]) -> list[dict[str, Any]]:
    """Give the rows of all lines; `order` is the number of the line's group."""
    rows = []
    for line in curve.lines:
        group = _group(line, curve)
        name = {"line": line.label, "group": group, "order": groups.index(group)}
        for point in line.points:
            row = {**name, "x": point.x, "y": float(f"{point.value:.5g}")}
            if curve.repeats > 1:
                row |= {"low": point.low, "high": point.high}
            rows.append(row)
    return rows


def _groups(curve: Curve) -> list[str]:
    """Name the groups that share a style, failing ones first."""
    lines = sorted(curve.lines, key=lambda line: not line.convicted)
    return list(dict.fromkeys(_group(line, curve) for line in lines))


def _lines(curve: Curve, groups: list[str], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Draw one layer per group, the first on top: a line, its points, its range."""
    styles = _styles(curve, groups)
    base = alt.Chart(alt.NamedData("points")).encode(x=x, detail="line:N")
    layers = []
    for order, (colour, _, dash, width) in reversed(list(enumerate(styles))):
        part = base.transform_filter(f"datum.order == {order}")
        if curve.repeats > 1:
            band = part.mark_area(opacity=0.18, clip=True, color=colour)
            layers.append(band.encode(y=alt.Y("low:Q"), y2="high:Q"))
        line = part.mark_line(
            clip=True, color=colour, strokeDash=dash, strokeWidth=width
        )
        layers.append(line.encode(y=y))
    colours, shapes, _, _ = zip(*styles, strict=True)
    legend = alt.Legend(title=None, symbolOpacity=1, symbolSize=70)
    said = "'' + datum.x" if curve.over else _SIZE.format("datum.x")
    points = base.transform_calculate(at=said).mark_point(
        filled=True, size=34, opacity=1
    )
    return [
        *layers,
        points.encode(
            y=y,
            color=alt.Color(
                "group:N",
                scale=alt.Scale(domain=groups, range=list(colours)),
                legend=legend,
            ),
            shape=alt.Shape(
                "group:N",
                scale=alt.Scale(domain=groups, range=list(shapes)),
                legend=legend,
            ),
            order=alt.Order("order:Q", sort="descending"),
            tooltip=[
                alt.Tooltip("line:N", title="line"),
                alt.Tooltip("at:N", title=curve.x_title),
                alt.Tooltip(
                    "y:Q", title=f"{curve.metric} ({curve.unit})", format=".4~g"
                ),
            ],
        ),
    ]


def _styles(curve: Curve, groups: Sequence[str]) -> list[_Style]:
    """Give the style of each group; what is ideal has one of its own."""
    if _grouped(curve):
        return [_STYLES[group.split()[0]] for group in groups]
    ideal = {line.label for line in curve.lines if line.ideal}
    styles = iter(_LINE_STYLES)
    return [_IDEAL if group in ideal else next(styles) for group in groups]


def _grouped(curve: Curve) -> bool:
    """Tell whether lines share a style: beside a failing one, or as they are many."""
    measured = [line for line in curve.lines if not line.ideal]
    return bool(curve.convicted) or len(measured) > len(_LINE_STYLES)


def _group(line: Line, curve: Curve) -> str:
    """Name the group that gives a line its style: itself, if lines are few."""
    if not _grouped(curve):
        return line.label
    if line.convicted:
        few = len(curve.convicted) <= 3
        names = ", ".join(short(node) for node in curve.convicted)
        return f"at {names}" if few else "at a failing node"
    return "median of all" if line.median else "others"
