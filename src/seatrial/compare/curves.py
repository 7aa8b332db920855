"""The values of all sides over message size, for metrics of which there are enough."""

from collections import defaultdict
from collections.abc import Sequence

from seatrial.compare.axes import Row, number, side_scales, specification
from seatrial.compare.figures import side_names, where
from seatrial.compare.records import Comparison, PairedNumber
from seatrial.report.render import text
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.vega import metric_title, size_ticks, value_ticks

MAX_CHARTS = 24
LEAST_SIZES = 3
_HEIGHT = 240
_SIZE = (
    "{0} < 1024 ? {0} + ' B' : {0} < 1048576 ? {0} / 1024 + ' KiB' : "
    "{0} / 1048576 + ' MiB'"
)


def curve_figures(comparison: Comparison) -> tuple[list[Figure], int]:
    """Draw what has three sizes or more, weighted first; and count what is left out."""
    of: dict[tuple[object, ...], list[PairedNumber]] = defaultdict(list)
    for each in comparison.numbers:
        if each.size_bytes and all(v is None or v > 0 for v in each.values):
            own = (each.check, each.case, each.environment, each.partition)
            of[(*own, each.num_nodes, each.metric, each.unit)].append(each)
    curves = [
        sorted(rows, key=lambda each: each.size_bytes or 0)
        for rows in of.values()
        if len({each.size_bytes for each in rows}) >= LEAST_SIZES
    ]
    curves.sort(key=lambda rows: -sum(each.weight for each in rows))
    drawn = curves[:MAX_CHARTS]
    figures = [
        _figure(f"curve-{place}", comparison, rows)
        for place, rows in enumerate(drawn, 1)
    ]
    return figures, len(curves) - len(drawn)


def _figure(name: str, comparison: Comparison, rows: Sequence[PairedNumber]) -> Figure:
    first = rows[0]
    names = [*side_names(comparison).values()]
    points = [
        {"side": side, "x": each.size_bytes, "y": number(value)}
        for at, side in enumerate(names)
        for each in rows
        for value in [each.values[at]]
        if value is not None
    ]
    apart = ", ".join(filter(None, [first.case, where(first)]))
    title = metric_title(first.metric)
    table = Table(
        ("Size", *names),
        tuple(
            (text.size(each.size_bytes or 0), *map(text.measured, each.values))
            for each in rows
        ),
    )
    return Figure(
        name=name,
        title=f"{first.check or first.case}: {title}",
        detail=f"{apart}{'; ' if apart else ''}{first.unit}, {first.direction} is "
        "better; geometric mean over allocations",
        spec=_spec(names, points, f"{title} ({first.unit})"),
        table=table,
    )


def _spec(names: Sequence[str], points: list[Row], title: str) -> Row:
    sizes = [point["x"] for point in points]
    values = [point["y"] for point in points]
    low, high = min(values) / 1.2, max(values) * 1.2
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "message size",
        "scale": {
            "type": "log",
            "base": 2,
            "domain": [min(sizes) / 1.5, max(sizes) * 1.5],
            "nice": False,
        },
        "axis": {
            "values": size_ticks(sizes),
            "labelExpr": _SIZE.format("datum.value"),
            "labelOverlap": True,
        },
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {
            "values": value_ticks(low, high),
            "format": "~g",
            "labelOverlap": True,
        },
    }
    colour, shape, dash = side_scales(names, first=0)
    data = {"data": {"name": "points"}}
    tooltip = [
        {"field": "side", "type": "nominal"},
        {"field": "x", "type": "quantitative", "title": "bytes"},
        {"field": "y", "type": "quantitative", "title": "value"},
    ]
    layers = [
        {
            **data,
            "mark": {"type": "line", "strokeWidth": 1.75},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
        },
        {
            **data,
            "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "shape": shape}
            | {"tooltip": tooltip},
        },
    ]
    said = f"{title} over message size, {len(names)} sides."
    return specification(layers, {"points": points}, _HEIGHT, said)
