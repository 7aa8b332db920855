"""The layers of the chart of a trend: axes, numbers, limits, changes.

The data sets are `points`, `limits`, `today`, `labels` and `changes`.
"""

from collections.abc import Mapping, Sequence
from math import ceil

from seatrial.report.render.vega import (
    Row,
    channel,
    keep,
    layer,
    log_axis,
    mark,
    style_channels,
    tips,
    words_inside,
)

_DAY_MS, _FEW_DAYS, _MOST_TICKS = 86_400_000, 3, 5


def time_axis(times: Sequence[float]) -> Row:
    """Return the axis over times in ms since the epoch, in their order."""
    first, last = times[0], times[-1]
    pad = 0.03 * (last - first) or _DAY_MS / 8
    ticks, form = [first, last], "%Y-%m-%d %H:%M"
    if last - first >= _FEW_DAYS * _DAY_MS:
        midnight = ceil(first / _DAY_MS) * _DAY_MS
        step = _DAY_MS * ceil((last - first) / _DAY_MS / _MOST_TICKS)
        ticks, form = [*range(midnight, int(last) + 1, step)], "%Y-%m-%d"
    return channel(
        "t:Q",
        title="start of the run (UTC)",
        scale={"domain": [first - pad, last + pad], "nice": False, "zero": False},
        axis={
            "values": ticks,
            "labelExpr": f"utcFormat(datum.value, '{form}')",
            "labelOverlap": True,
            "grid": False,
        },
    )


def value_axis(title: str, low: float, high: float, *, log: bool) -> Row:
    """Return the axis of the numbers."""
    if log:
        return log_axis("y:Q", title, low, high)
    scale = {"domain": [low, high], "nice": False, "zero": False}
    axis = {"labelOverlap": True, "tickCount": 5}
    return channel("y:Q", title=title, scale=scale, axis=axis)


def point_layers(x: Row, y: Row, kinds: Mapping[str, tuple[str, str]]) -> list[Row]:
    """Draw ranges, lines and marks; `kinds` maps to colour and symbol."""
    colours, shapes = zip(*kinds.values(), strict=True)
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    bar = mark("rule", color="var(--line-1)", opacity=0.6)
    line = mark("line", color="var(--line-1)", strokeWidth=1.5)
    part = {"field": "part"}
    return [
        layer("points", bar, keep("isValid(datum.low)"), x=x, **ends),
        layer("points", line, keep("isValid(datum.part)"), x=x, y=y, detail=part),
        layer(
            "points",
            mark("point", filled=True, size=55, opacity=1),
            x=x,
            y=y,
            **style_channels("kind", [*kinds], color=colours, shape=shapes),
            tooltip=tips(
                ("run:N", "run"),
                ("kind:N", "what"),
                ("y:Q", "value"),
                ("said:N", "more"),
            ),
        ),
    ]


def limit_layers(x: Row, y: Row) -> list[Row]:
    """Draw the limits that held as steps, and other limits of today as lines."""
    colour = {"color": "var(--limit)"}
    words = {"baseline": "bottom", "dy": -4, "fontWeight": 600, **colour}
    step = mark("line", interpolate="step-after", strokeWidth=2, **colour)
    point = mark("point", shape="stroke", size=120, **colour)
    rule = mark("rule", strokeDash=[2, 4], strokeWidth=1.5, **colour)
    tooltip = tips(("said:N", "limit"), ("source:N", "source"))
    dashes = {"promised": [1, 0], "theoretical": [7, 3], "measured": [2, 2]}
    scale = {"domain": [*dashes], "range": [*dashes.values()]}
    dash = channel("kind:N", legend=None, scale=scale)
    lines = {"detail": {"field": "line"}, "strokeDash": dash}
    encoding = {"x": x, "y": y, "text": {"field": "words"}}
    return [
        layer("limits", step, x=x, y=y, **lines),
        layer("limits", point, x=x, y=y, tooltip=tooltip),
        layer("today", rule, y=y),
        *words_inside("labels", "datum.late", -4, style=words, **encoding),
    ]


def change_layers(x: Row) -> list[Row]:
    """Draw a numbered line where something changed."""
    own = {"x": x, "tooltip": tips(("said:N", "changed"))}
    line = mark("rule", color="var(--muted)", strokeDash=[3, 3])
    number = mark("text", color="var(--ink)", baseline="bottom", fontWeight=600)
    place = {"y": {"value": -2}, "text": {"field": "mark"}}
    return [layer("changes", line, **own), layer("changes", number, **own, **place)]
