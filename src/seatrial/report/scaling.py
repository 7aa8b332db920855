"""Scaling: how a number grows with the number of nodes, beside what would be ideal."""

import json
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from seatrial.judge.judge import Judgement
from seatrial.report.curve_chart import curve_figure
from seatrial.report.curves import Curve, Line, Point
from seatrial.report.measured_curves import COLUMNS, KIND, whole_curves
from seatrial.report.measured_rows import (
    judged_rows,
    several_counts,
    with_node_counts,
)
from seatrial.report.render import text
from seatrial.report.render.figure import Figure, Table
from seatrial.runs.closed_run import Run
from seatrial.runs.stated import stated

Ideal = Literal["rate", "strong", "weak", "unknown", ""]
"""A rate that grows with the nodes; the time of a problem of one size, which shrinks;
that of a problem that grows with the nodes, which stays; that of a problem of which the
run does not record whether it grows; no ideal."""

IDEAL = "ideal"
"""Label of the ideal line."""

_STRONG = ("loop_time",)
_EFFICIENT = ("rate", "strong", "weak")
_NO_RATES = ("%", "1", "MB/s", "msg/s")
_SAID = {
    "rate": "ideal: as many times the rate as nodes",
    "strong": "the problem stays the same; ideal: the time falls as the nodes grow",
    "weak": "the problem grows with the nodes; ideal: the time stays",
    "unknown": "no ideal: this run does not record whether the problem grows with the "
    "nodes",
    "": "no ideal: a collective has more to do on more nodes",
}


@dataclass(frozen=True)
class Growth:
    """A curve over the number of nodes, and the ideal it is held beside."""

    curve: Curve
    ideal: Ideal


def growths(run: Run, judgement: Judgement) -> list[Growth]:
    """Find what was measured on several numbers of nodes."""
    growing = []
    whole = run.columns(*COLUMNS, "nodes").filter(
        pl.all_horizontal(pl.col("node", "source").is_null())
    )
    rows = whole.collect()
    for (check, metric), part in rows.group_by("check", "metric", maintain_order=True):
        counted = with_node_counts(judged_rows(part))
        if not several_counts(counted):
            continue
        unit, direction = counted.select("unit", "direction").row(0)
        scaled = None
        if metric in _STRONG and (own := stated(run, {str(check)}).get(str(check))):
            scaled = own.scaled
        kind = ideal_of(str(metric), unit, direction, scaled=scaled)
        for _, case in counted.group_by("case", maintain_order=True):
            if several_counts(case):
                drawn = _drawn(_ends_of_sizes(case))
                growing += [
                    Growth(
                        replace(curve, lines=(*curve.lines, *_ideal(curve, kind))), kind
                    )
                    for curve in whole_curves(drawn, judgement, "nodes")
                ]
    return growing


def ideal_of(metric: str, unit: str, direction: str, *, scaled: bool | None) -> Ideal:
    """Return what a metric would do on a machine that scales without loss.

    `scaled`: the problem grows with the nodes; None: the run did not record it.
    """
    if metric in _STRONG:
        return "unknown" if scaled is None else "weak" if scaled else "strong"
    if direction == "higher" and unit not in _NO_RATES:
        return "rate"
    return ""


def growth_figure(growth: Growth, name: str) -> Figure:
    """Draw a growth; its table has the parallel efficiency of each line."""
    return replace(
        curve_figure(growth.curve, name, f"; {_SAID[growth.ideal]}"),
        table=growth_table(growth),
    )


def growth_table(growth: Growth) -> Table:
    """Return the value of each line and number of nodes, and its efficiency.

    The efficiency is that beside the line's own value on its fewest nodes.
    """
    measured = [line for line in growth.curve.lines if not line.ideal]
    columns = ["nodes"]
    values: list[dict[float, str]] = []
    for line in measured:
        columns.append(f"{line.label} ({growth.curve.unit})")
        values.append({point.x: text.measured(point.value) for point in line.points})
        if growth.ideal in _EFFICIENT:
            columns.append(f"{line.label}, efficiency")
            shares = efficiency(line, growth.ideal)
            values.append({x: f"{100 * share:.3g} %" for x, share in shares.items()})
    counts = sorted({point.x for line in measured for point in line.points})
    return Table(
        tuple(columns),
        tuple(
            (text.exact(count), *(column.get(count, "") for column in values))
            for count in counts
        ),
    )


def efficiency(line: Line, kind: Ideal) -> dict[float, float]:
    """Return the parallel efficiency at each number of nodes: 1 is ideal."""
    first = line.points[0]
    efficiencies = {}
    for point in line.points:
        ideal = _ideal_value(first.value, point.x / first.x, kind)
        over, under = (point.value, ideal) if kind == "rate" else (ideal, point.value)
        if under > 0:
            efficiencies[point.x] = over / under
    return efficiencies


def _ideal_value(first: float, times: float, kind: Ideal) -> float:
    """Return the ideal value on `times` the nodes of `first`."""
    return {"rate": first * times, "strong": first / times}.get(kind, first)


def _ideal(curve: Curve, kind: Ideal) -> tuple[Line, ...]:
    """Draw the ideal from the best value on the fewest nodes."""
    if kind not in _EFFICIENT:
        return ()
    all_points = [point for line in curve.lines for point in line.points]
    counts = sorted({point.x for point in all_points})
    best = (min if curve.direction == "lower" else max)(
        point.value for point in all_points if point.x == counts[0]
    )
    values = [(x, _ideal_value(best, x / counts[0], kind)) for x in counts]
    points = tuple(Point(x, value, value, value) for x, value in values)
    return (Line(IDEAL, points, ideal=True),)


def _ends_of_sizes(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep the smallest and the largest message of a check that takes many sizes."""
    sizes = rows["size_bytes"].drop_nulls()
    if sizes.n_unique() <= 2:
        return rows
    return rows.filter(pl.col("size_bytes").is_in([sizes.min(), sizes.max()]))


def _drawn(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `x`; what is placed in no order stands in each line that lacks the number.

    One node, or one rank per node, has no order: block and cyclic start from it.
    """
    kinds = ("size_bytes", *KIND)
    frames = []
    for _, part in rows.group_by(*kinds, maintain_order=True):
        orders = [order for order in part["placement"].unique().sort() if order]
        if not orders:
            frames.append(part)
            continue
        plain = part.filter(pl.col("placement") == "")
        for order in orders:
            own = part.filter(pl.col("placement") == order)
            shared = plain.filter(
                ~pl.col("count").is_in(own["count"].unique().to_list())
            )
            frames += [own, shared.with_columns(placement=pl.lit(order))]
    drawn = pl.concat(frames)
    table = drawn.select("parameters", "placement", "size_bytes").unique(
        maintain_order=True
    )
    several = table["size_bytes"].drop_nulls().n_unique() > 1
    named = []
    for parameters, placement, size_bytes in table.iter_rows():
        known = text.parameters(parameters)
        if several and size_bytes is not None:
            known["size"] = text.size(size_bytes)
        if placement:
            known["placement"] = placement
        named.append(json.dumps(known))
    table = table.with_columns(pl.Series("named", named, pl.Categorical))
    return drawn.join(
        table, on=["parameters", "placement", "size_bytes"], nulls_equal=True
    ).with_columns(x=pl.col("count"), parameters=pl.col("named"))
