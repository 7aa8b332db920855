"""Layers above the lines of a chart: limits and published numbers."""

import math
from collections.abc import Sequence

from seatrial.report.curves import Curve, LimitPoint
from seatrial.report.published_overlay import PublishedPoint
from seatrial.report.render import text
from seatrial.report.render.vega import (
    Row,
    calculate,
    channel,
    keep,
    layer,
    mark,
    tips,
    words_inside,
)

PARAMETER = "published"
"""The parameter of a chart that lists the shown published systems: none at first."""

FAR = 30.0
"""Farther limits (by this factor) are not drawn: they would flatten the lines."""

_BAND = 2**0.3  # how far a band reaches to either side of its size, as a factor


def near_limits(curve: Curve) -> tuple[LimitPoint, ...]:
    """Return the limits that are drawn."""
    points = [point for line in curve.lines for point in line.points]
    low, high = min(p.low for p in points), max(p.high for p in points)
    return tuple(
        limit
        for limit in curve.limits
        if low <= 0 or low / FAR <= limit.value <= high * FAR
    )


def far_words(curve: Curve) -> str:
    """Name the limits that are not drawn."""
    near = near_limits(curve)
    far = [
        f"{limit.label} at {curve.x_words(limit.x)}"
        for limit in curve.limits
        if limit not in near
    ]
    return f"Too far off to draw: {'; '.join(far)}." if far else ""


def limit_rows(limits: Sequence[LimitPoint]) -> list[Row]:
    """Return the limits, each with the range of sizes of its band."""
    return [
        {
            "x": limit.x,
            "y": limit.value,
            "from": limit.x / _BAND,
            "to": limit.x * _BAND,
            "words": limit.label,
        }
        for limit in limits
    ]


def limit_layers(
    curve: Curve, known: Sequence[float], edge: float | None, x: Row, y: Row
) -> list[Row]:
    """Draw a dash at each limit, and shade the failing side.

    `edge` is the end of the axis on that side; None: no shade.
    """
    if not curve.limits:
        return []
    layers = []
    if edge is not None:
        shade = mark("rect", clip=True, color="var(--limit)", opacity=0.13, aria=False)
        ends = {"x": {**x, "field": "from"}, "x2": {"field": "to"}}
        layers.append(layer("limits", shade, **ends, y=y, y2={"datum": edge}))
    look = {"strokeWidth": 3, "color": "var(--limit)", "opacity": 1}
    dash = mark("point", shape="stroke", size=700, **look)
    style = {"baseline": "bottom", "dy": -5, "fontWeight": 600}
    style["color"] = "var(--limit)"
    words = {"x": x, "y": y, "text": channel("words:N")}
    return [
        *layers,
        layer("limits", dash, x=x, y=y),
        *words_inside("limits", _right(known), -14, style=style, **words),
    ]


def _right(known: Sequence[float]) -> str:
    """Return the expression for the right half of a logarithmic axis."""
    return f"datum.x > {math.sqrt(min(known) * max(known))}"


def published_rows(points: Sequence[PublishedPoint]) -> list[Row]:
    """Return a row per published number with its words."""
    return [
        {
            "x": point.x,
            "y": point.value,
            "system": point.system,
            "label": f"{point.system} {text.exact(point.value)}",
            "title": point.title,
            "words": point.words,
            "place": point.place,
        }
        for point in sorted(points, key=lambda point: (point.x, -point.value))
    ]


def published_layers(curve: Curve, x: Row, y: Row) -> list[Row]:
    """Draw the numbers of the systems that the parameter lists, with names."""
    if not curve.published:
        return []
    listed = keep(f"indexof({PARAMETER}, datum.system) >= 0")
    star = mark(
        "point",
        shape="M0,-1L.24,-.33L.95,-.31L.38,.12L.59,.81L0,.4L-.59,.81L-.38,.12"
        "L-.95,-.31L-.24,-.33Z",
        filled=True,
        size=90,
        color="var(--ink)",
        opacity=1,
    )
    tooltip = tips(("title:N", "published"), ("words:N", "says"), ("place:N", "where"))
    # Names at the same size are lines of one text: they must not overlap.
    together = {
        "aggregate": [
            {"op": "values", "field": "label", "as": "all"},
            {"op": "median", "field": "y", "as": "y"},
        ],
        "groupby": ["x"],
    }
    return [
        layer("published", star, listed, x=x, y=y, tooltip=tooltip),
        *words_inside(
            "published",
            _right([point.x for line in curve.lines for point in line.points]),
            9,
            listed,
            together,
            *calculate(words="join(pluck(datum.all, 'label'), '\\n')"),
            style={"baseline": "middle", "lineBreak": "\n", "color": "var(--ink)"},
            x=x,
            y=y,
            text=channel("words:N"),
        ),
    ]
