"""A curve as a Vega-Lite chart."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from seatrial.report.curve_layers import (
    PARAMETER,
    far_words,
    limit_layers,
    limit_rows,
    near_limits,
    published_layers,
    published_rows,
)
from seatrial.report.curves import Curve, Line, table
from seatrial.report.render import text
from seatrial.report.render.figure import Figure
from seatrial.report.render.text import short
from seatrial.report.render.vega import (
    HEIGHT,
    SIZE,
    STYLES,
    Row,
    Style,
    calculate,
    channel,
    five_digits,
    line_layers,
    log2_axis,
    log_axis,
    metric_title,
    specification,
    tips,
    value_ticks,
)

_IDEAL: Style = ("var(--muted)", "triangle-right", [2, 4], 1.5)
_GROUPED: dict[str, Style] = {
    "at": ("var(--fail)", "square", [1, 0], 2.5),
    "median": ("var(--line-1)", "diamond", [6, 3], 2.5),
    "others": ("var(--quiet)", "circle", [1, 0], 1),
}
"""Styles of groups of lines, by the first word of the group."""

_WIDE = 16  # largest over smallest x above which an axis is logarithmic
_MAX_NAMED = 6


def curve_figure(curve: Curve, name: str, remark: str = "") -> Figure:
    """Draw a curve; `remark` is added to unit, direction and statistic."""
    detail = f"{curve.unit}, {curve.direction} is better; {curve.statistic}"
    if curve.repeats > 1:
        detail += f", drawn as median and range of {curve.repeats} repeats"
    parameters = f", {curve.detail}" if curve.detail else ""
    return Figure(
        name=name,
        title=f"{curve.check}: {metric_title(curve.metric)}{parameters}",
        detail=f"{detail}{remark}",
        spec=chart(curve),
        table=table(curve),
        note=" ".join(filter(None, (curve.note, far_words(curve)))),
    )


def chart(curve: Curve) -> Row:
    """Return the Vega-Lite specification of a curve, without a width."""
    curve = replace(curve, limits=near_limits(curve))
    known = [point.x for line in curve.lines for point in line.points]
    known += [limit.x for limit in curve.limits]
    values = [v for line in curve.lines for p in line.points for v in (p.low, p.high)]
    values += [limit.value for limit in curve.limits]
    ends = _ends(curve, values)
    x = _x(curve, known)
    y = _y(curve, min(values), max(values), ends)
    styles = _styles(curve)
    edge = ends[0 if curve.direction == "higher" else 1] if ends else None
    lines = line_layers(
        "points",
        "group",
        styles,
        *calculate(at="'' + datum.x" if curve.over else SIZE.format("datum.x")),
        place={"x": x, "detail": channel("line:N")},
        y=y,
        size=34,
        band=curve.repeats > 1,
        order=channel("order:Q", sort="descending"),
        tooltip=tips(
            ("line:N", "line"),
            ("at:N", curve.x_title),
            ("y:Q", f"{curve.metric} ({curve.unit})"),
        ),
    )
    return specification(
        [
            *limit_layers(curve, known, edge, x, y),
            *lines,
            *published_layers(curve, x, y),
        ],
        {
            "points": _points(curve, styles),
            "limits": limit_rows(curve.limits),
            "published": published_rows(curve.published),
        },
        HEIGHT,
        describe(curve),
        params=[{"name": PARAMETER, "value": []}],
    )


def _x(curve: Curve, known: Sequence[float]) -> Row:
    """Choose the axis: logarithmic over sizes and over wide ranges."""
    if not curve.over:
        return log2_axis(curve.x_title, known, SIZE.format("datum.value"))
    low, high = min(known), max(known)
    above = [value for value in known if value > 0]
    narrow = curve.over != "nodes" and high < _WIDE * min(above, default=high)
    if low < 0 or not above or narrow:
        scale = {"domain": [low, high], "padding": 10, "nice": False, "zero": False}
        return channel("x:Q", title=curve.x_title, scale=scale, axis={"format": "~g"})
    return log2_axis(curve.x_title, known, "'' + datum.value")


def _ends(curve: Curve, values: Sequence[float]) -> tuple[float, float] | None:
    """Return the ends of a logarithmic axis with published numbers; None: linear."""
    if min(values) <= 0:
        return None
    published = [point.value for point in curve.published if point.value > 0]
    high = max(values) * (3 if curve.limits else 1.2)
    return min([*values, *published]) / 1.2, max([high, *(1.2 * v for v in published)])


def _y(curve: Curve, low: float, high: float, ends: tuple[float, float] | None) -> Row:
    """Choose a logarithmic axis where all values are above 0.

    The axis reaches far published numbers while the page shows them.
    """
    title = f"{metric_title(curve.metric)} ({curve.unit})"
    if ends is None:
        plain = {"format": "~g", "labelOverlap": True}
        return channel("y:Q", title=title, scale={"padding": 10}, axis=plain)
    own = (low / 1.2, high * (3 if curve.limits else 1.2))
    ticks = value_ticks(low, high)
    axis = log_axis("y:Q", title, *own, values=ticks)
    if ends != own:
        shown = f"length({PARAMETER})"
        wide = value_ticks(ends[0] * 1.2, ends[1] / 1.2)
        axis["scale"]["domain"] = [
            {"expr": f"{shown} ? {far!r} : {near!r}"}
            for far, near in zip(ends, own, strict=True)
        ]
        axis["axis"]["values"] = {"expr": f"{shown} ? {wide} : {ticks}"}
    return axis


def describe(curve: Curve) -> str:
    """Describe a chart in a sentence, for screen readers."""
    lines = ", ".join(line.label for line in curve.lines[:_MAX_NAMED])
    more = len(curve.lines) - _MAX_NAMED
    return text.clean(
        f"{curve.check} {curve.detail}: {metric_title(curve.metric)} in {curve.unit} "
        f"over {curve.x_title}, {curve.direction} is better; "
        f"lines: {lines}{f' and {more} more' if more > 0 else ''}."
    )


def _points(curve: Curve, groups: Iterable[str]) -> list[Row]:
    """Return the rows of all lines; `order` is the number of the line's group."""
    orders = {group: order for order, group in enumerate(groups)}
    rows = []
    for line in curve.lines:
        group = _group(line, curve)
        name = {"line": line.label, "group": group, "order": orders[group]}
        for point in line.points:
            row = {**name, "x": point.x, "y": five_digits(point.value)}
            if curve.repeats > 1:
                row |= {"low": point.low, "high": point.high}
            rows.append(row)
    return rows


def _styles(curve: Curve) -> dict[str, Style]:
    """Return the style of each group of lines, failing ones first."""
    lines = sorted(curve.lines, key=lambda line: not line.convicted)
    groups = dict.fromkeys(_group(line, curve) for line in lines)
    if _grouped(curve):
        return {group: _GROUPED[group.split()[0]] for group in groups}
    ideal = {line.label for line in curve.lines if line.ideal}
    styles = iter(STYLES)
    return {group: _IDEAL if group in ideal else next(styles) for group in groups}


def _grouped(curve: Curve) -> bool:
    """Return True if lines share styles: one fails, or there are more than styles."""
    measured = [line for line in curve.lines if not line.ideal]
    return bool(curve.convicted) or len(measured) > len(STYLES)


def _group(line: Line, curve: Curve) -> str:
    """Return the group of lines with a common style; few lines are groups each."""
    if not _grouped(curve):
        return line.label
    if line.convicted:
        few = len(curve.convicted) <= 3
        names = ", ".join(short(node) for node in curve.convicted)
        return f"at {names}" if few else "at a failing node"
    return "median of all" if line.median else "others"
