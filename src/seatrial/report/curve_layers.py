"""What lies over the lines of a chart: limits, and numbers that papers published."""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from seatrial.report.curves import Curve, LimitPoint
from seatrial.report.published_overlay import PublishedPoint
from seatrial.report.render import text

PARAMETER = "published"
"""The parameter of a chart that lists the published systems to show: none at first."""

FAR = 30.0
"""A limit so many times away from all numbers would flatten them: it is not drawn."""

_BAND = 2**0.3  # how far a band reaches to either side of its size, as a factor


def near_limits(curve: Curve) -> tuple[LimitPoint, ...]:
    """Give the limits that are drawn."""
    ends = [(p.low, p.high) for line in curve.lines for p in line.points]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return tuple(
        limit
        for limit in curve.limits
        if low <= 0 or low / FAR <= limit.value <= high * FAR
    )


def far_words(curve: Curve) -> str:
    """Name the limits that are not drawn."""
    near = near_limits(curve)
    far = [
        f"{limit.label} at "
        + (text.exact(limit.x) if curve.over else text.size(int(limit.x)))
        for limit in curve.limits
        if limit not in near
    ]
    return f"Too far off to draw: {'; '.join(far)}." if far else ""


def limit_rows(limits: Sequence[LimitPoint]) -> list[dict[str, Any]]:
    """Give the limits, each with the stretch of sizes that its band covers."""
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
    curve: Curve, known: Sequence[float], edge: float | None, x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    """Draw a dash where the reference sets a limit, and shade the side that fails.

    `edge` is the end of the axis on that side; None: nothing is shaded.
    """
    if not curve.limits:
        return []
    base = alt.Chart(alt.NamedData("limits"))
    layers = []
    if edge is not None:
        shade = base.mark_rect(
            clip=True, color="var(--limit)", opacity=0.13, aria=False
        )
        layers.append(
            shade.encode(x=_as(x, "from"), x2="to:Q", y=y, y2=alt.datum(edge))
        )
    dash = base.mark_point(
        shape="stroke", size=700, strokeWidth=3, color="var(--limit)", opacity=1
    )
    middle = math.sqrt(min(known) * max(known))
    words = base.encode(x=x, y=y, text="words:N")
    style: dict[str, Any] = {
        "baseline": "bottom",
        "dy": -5,
        "fontWeight": 600,
        "color": "var(--limit)",
    }
    left = words.transform_filter(f"datum.x <= {middle}")
    right = words.transform_filter(f"datum.x > {middle}")
    return [
        *layers,
        dash.encode(x=x, y=y),
        left.mark_text(align="left", dx=-14, **style),
        right.mark_text(align="right", dx=14, **style),
    ]


def published_rows(points: Sequence[PublishedPoint]) -> list[dict[str, Any]]:
    """Give the published numbers with what is said of them."""
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


def published_layers(curve: Curve, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Draw the numbers of the systems that the parameter lists, named beside them."""
    if not curve.published:
        return []
    base = (
        alt.Chart(alt.NamedData("published"))
        .transform_filter(f"indexof({PARAMETER}, datum.system) >= 0")
        .encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("title:N", title="published"),
                alt.Tooltip("words:N", title="says"),
                alt.Tooltip("place:N", title="where"),
            ],
        )
    )
    middle = math.sqrt(
        min(p.x for line in curve.lines for p in line.points)
        * max(p.x for line in curve.lines for p in line.points)
    )
    star = base.mark_point(
        shape="M0,-1L.24,-.33L.95,-.31L.38,.12L.59,.81L0,.4L-.59,.81L-.38,.12"
        "L-.95,-.31L-.24,-.33Z",
        filled=True,
        size=90,
        color="var(--ink)",
        opacity=1,
    )
    # Names of the same size stand below each other, or they would hide each other.
    words = (
        alt.Chart(alt.NamedData("published"))
        .transform_filter(f"indexof({PARAMETER}, datum.system) >= 0")
        .transform_aggregate(all="values(label)", y="median(y)", groupby=["x"])
        .transform_calculate(words="join(pluck(datum.all, 'label'), '\\n')")
        .encode(x=x, y=y, text="words:N")
    )
    style: dict[str, Any] = {
        "baseline": "middle",
        "lineBreak": "\n",
        "color": "var(--ink)",
    }
    left = words.transform_filter(f"datum.x <= {middle}")
    right = words.transform_filter(f"datum.x > {middle}")
    return [
        star,
        left.mark_text(align="left", dx=9, **style),
        right.mark_text(align="right", dx=-9, **style),
    ]


def _as(channel: alt.X, field: str) -> alt.X:
    """Give the same axis for another field."""
    copy: alt.X = channel.copy()
    copy.shorthand = f"{field}:Q"
    return copy
