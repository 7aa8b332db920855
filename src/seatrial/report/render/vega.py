"""What Vega-Lite charts share: their look, titles and ticks of axes."""

import math
from collections.abc import Iterable
from typing import Any

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

CONFIG: dict[str, Any] = {
    "font": _FONT,
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


def metric_title(metric: str) -> str:
    """Name a metric on an axis: bw -> bandwidth, exchange_time -> exchange time."""
    return {"bw": "bandwidth"}.get(metric, metric.replace("_", " "))


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
