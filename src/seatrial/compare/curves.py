"""The values of all sides over message size, for metrics of which there are enough."""

from collections import defaultdict
from collections.abc import Sequence

from seatrial.compare.axes import number, side_scales
from seatrial.compare.figures import side_names
from seatrial.compare.records import Comparison, PairedNumber
from seatrial.report.render import text
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.vega import (
    SIZE,
    Row,
    calculate,
    layer,
    log2_axis,
    log_axis,
    mark,
    metric_title,
    specification,
    tips,
)

MAX_CHARTS = 24
LEAST_SIZES = 3
_HEIGHT = 240


def curve_figures(comparison: Comparison) -> tuple[list[Figure], int]:
    """Draw what has three sizes or more, weighted first; and count what is left out."""
    of: dict[tuple[object, ...], list[PairedNumber]] = defaultdict(list)
    for row in comparison.numbers:
        if row.size_bytes and all(v is None or v > 0 for v in row.values):
            of[row.case_key, row.metric, row.unit].append(row)
    curves = [
        sorted(rows, key=lambda row: row.size_bytes or 0)
        for rows in of.values()
        if len({row.size_bytes for row in rows}) >= LEAST_SIZES
    ]
    curves.sort(key=lambda rows: -sum(row.weight for row in rows))
    drawn = curves[:MAX_CHARTS]
    figures = [
        _figure(f"curve-{place}", comparison, rows)
        for place, rows in enumerate(drawn, 1)
    ]
    return figures, len(curves) - len(drawn)


def _figure(name: str, comparison: Comparison, rows: Sequence[PairedNumber]) -> Figure:
    first = rows[0]
    names = [*side_names(comparison).values()]
    points: list[Row] = [
        {"side": side, "x": row.size_bytes, "y": number(value)}
        for at, side in enumerate(names)
        for row in rows
        if (value := row.values[at]) is not None
    ]
    title = metric_title(first.metric)
    with_unit = f"{title} ({first.unit})"
    sizes = [point["x"] for point in points]
    values = [point["y"] for point in points]
    colour, shape, dash = side_scales(names, first=0)
    own = {
        "x": log2_axis("message size", sizes, SIZE.format("datum.value")),
        "y": log_axis("y:Q", with_unit, min(values) / 1.2, max(values) * 1.2),
        "color": colour,
    }
    line = mark("line", strokeWidth=1.75)
    at = calculate(at=SIZE.format("datum.x"))
    dot = mark("point", filled=True, size=40, opacity=1)
    tooltip = tips(("side:N", "side"), ("at:N", "message size"), ("y:Q", "value"))
    layers = [
        layer("points", line, **own, strokeDash=dash),
        layer("points", dot, *at, **own, shape=shape, tooltip=tooltip),
    ]
    description = f"{with_unit} over message size, {len(names)} sides."
    apart = f"{first.where}; " if first.where else ""
    table = Table(
        ("Size", *names),
        tuple(
            (text.size(row.size_bytes or 0), *map(text.measured, row.values))
            for row in rows
        ),
    )
    return Figure(
        name=name,
        title=f"{first.check or first.case}: {title}",
        detail=f"{apart}{first.unit}, {first.direction} is "
        "better; geometric mean over allocations",
        spec=specification(layers, {"points": points}, _HEIGHT, description),
        table=table,
    )
