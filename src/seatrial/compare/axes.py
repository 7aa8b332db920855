"""Axes and styles that all charts of a comparison share."""

import math
from collections.abc import Iterable, Sequence

from seatrial.report.render.text import short
from seatrial.report.render.vega import (
    Row,
    channel,
    log_axis,
    mark,
    style_channels,
    value_ticks,
)

_COLOURS = 6
_SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
_DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3])
_CLOSE = 3.0
"""Largest over smallest ratio below which ticks are at even steps."""


def distinct(names: Iterable[str]) -> list[str]:
    """Cut long names, and number those that would look the same."""
    unique: list[str] = []
    for name in names:
        cut = short(name) or "(no name)"
        unique.append(cut if cut not in unique else f"{cut} ({len(unique) + 1})")
    return unique


def number(value: float) -> float:
    """Keep as many digits as a chart shows."""
    return float(f"{value:.5g}")


def side_scales(names: Sequence[str], first: int = 1) -> tuple[Row, Row, Row]:
    """Return colour, shape and dash of sides; `first` is the number of the first one.

    A side looks the same in all charts. Names may be as long as they like, and are cut
    in the legend.
    """
    numbers = range(first, first + len(names))
    channels = style_channels(
        "side",
        names,
        legend={"labelLimit": 220},
        color=[f"var(--line-{at % _COLOURS + 1})" for at in numbers],
        shape=[_SHAPES[at % len(_SHAPES)] for at in numbers],
        strokeDash=[_DASHES[at % len(_DASHES)] for at in numbers],
    )
    return channels["color"], channels["shape"], channels["strokeDash"]


def ratio_axis(values: Iterable[float], baseline: str) -> Row:
    """Return a logarithmic axis of ratios that has 1 on it."""
    seen = [*values, 1.0]
    low, high = min(seen), max(seen)
    wide = max(high / low, 1.05)
    ends = (low / wide**0.08, high * wide**0.08)
    title = f"times better than {short(baseline, 24)}"
    return log_axis("ratio:Q", title, *ends, values=_ratio_ticks(*ends))


def _ratio_ticks(low: float, high: float) -> list[float]:
    if high / low >= _CLOSE:
        return sorted({1.0, *value_ticks(low, high)})
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough)
    steps = range(math.ceil((low - 1) / step), math.floor((high - 1) / step) + 1)
    return [round(1 + step * k, 6) for k in steps]


def one_line() -> Row:
    """Draw the line where a side is as good as the baseline."""
    return {
        "data": {"values": [{"one": 1}]},
        "mark": mark("rule", color="var(--muted)", strokeWidth=1.5),
        "encoding": {"x": channel("one:Q")},
    }


def rows_axis(field: str, names: Sequence[str]) -> Row:
    """Return the axis of named rows, in their order; long names are cut."""
    return channel(
        f"{field}:N",
        title=None,
        sort=[*names],
        scale={"domain": [*names], "paddingInner": 0.25, "paddingOuter": 0.15},
        axis={"labelLimit": 130, "grid": False, "domain": False, "ticks": False},
    )
