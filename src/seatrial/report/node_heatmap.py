"""The nodes x metrics heat map: how each node is beside the median of all nodes."""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from seatrial.judge.judge import Judgement
from seatrial.model.metrics import Direction, flat_name
from seatrial.names import natural_key
from seatrial.report.measured_rows import judged_rows
from seatrial.report.pair_matrix import MAX_NODES
from seatrial.report.render import text
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.heat_grid import (
    CROSS,
    DIAMOND,
    LEVELS,
    SLOW,
    WIDE,
    Axis,
    Grid,
    Mark,
    Square,
    grid_chart,
)
from seatrial.report.render.text import short
from seatrial.runs.closed_run import Run
from seatrial.runs.counters_table import CHECK

MAX_METRICS = 40
"""Columns of the map; judged metrics come first."""

NAMES = (
    "at most 10 % worse than the median, or better",
    "at most 20 % worse",
    "up to 2 times worse",
    "up to 5 times worse",
    "worse than that",
)
"""Names of the levels, for both directions."""

BRIEF = ("≤ 10 %", "≤ 20 %", "≤ 2 times", "≤ 5 times", "more")


@dataclass(frozen=True)
class NodeMetrics:
    """Values of nodes by metric: shape (nodes, metrics), NaN was not measured.

    `failed` tells which of them are beyond a limit, `levels` how bad they are beside
    the median of all nodes (`medians`); metrics are flat names.
    """

    nodes: tuple[str, ...]
    metrics: tuple[str, ...]
    units: tuple[str, ...]
    directions: tuple[Direction, ...]
    values: NDArray[np.float64]
    medians: NDArray[np.float64]
    levels: NDArray[np.int64]
    failed: NDArray[np.bool_]


def node_metrics(run: Run, judgement: Judgement) -> NodeMetrics:
    """Collect what was judged of each node, and what else was taken of nodes alone."""
    nodes = sorted((node.name for node in judgement.nodes), key=natural_key)
    row = {name: number for number, name in enumerate(nodes)}
    judged = dict.fromkeys(flat for node in judgement.nodes for flat in node.values)
    facets = {
        finding.metric: (finding.unit, finding.direction)
        for finding in judgement.findings
        if finding.metric in judged and finding.kind != "sameness"
    }
    measured = _measured(run, set(judged))
    for flat, unit, direction in (
        measured.select("flat", "unit", "direction")
        .unique(maintain_order=True)
        .iter_rows()
    ):
        facets.setdefault(flat, (unit, direction))
    metrics = [flat for flat in (*judged, *facets) if flat in facets]
    metrics = list(dict.fromkeys(metrics))[:MAX_METRICS]
    column = {flat: number for number, flat in enumerate(metrics)}
    values = np.full((len(nodes), len(metrics)), math.nan)
    for node, flat, value in measured.select("node", "flat", "value").iter_rows():
        if flat in column and node in row:
            values[row[node], column[flat]] = value
    for verdict in judgement.nodes:
        for flat, value in verdict.values.items():
            if flat in column:
                values[row[verdict.name], column[flat]] = value
    failed = np.zeros(values.shape, dtype=bool)
    for finding in judgement.findings:
        there = finding.node in row and finding.metric in column
        if there and finding.verdict == "fail":
            failed[row[finding.node], column[finding.metric]] = True
    directions = tuple(_direction(facets[flat][1]) for flat in metrics)
    medians = np.array(list(map(_middle, values.T, directions)))
    lower = np.array([direction == "lower" for direction in directions], dtype=bool)
    levels = np.zeros(values.shape, dtype=np.int64)
    for least, most in zip(LEVELS["higher"], LEVELS["lower"], strict=True):
        levels += np.where(lower, values > most * medians, values < least * medians)
    return NodeMetrics(
        tuple(nodes),
        tuple(metrics),
        tuple(facets[flat][0] for flat in metrics),
        directions,
        values,
        medians,
        levels,
        failed,
    )


def node_heat(run: Run, judgement: Judgement) -> Figure | None:
    """Draw the nodes by metrics, of many the worst; None if nothing was taken."""
    metrics = node_metrics(run, judgement)
    if not metrics.metrics or np.isnan(metrics.values).all():
        return None
    chosen = _worst(metrics, judgement)
    nodes = tuple(metrics.nodes[number] for number in chosen)
    marked = tuple(node in judgement.convicted for node in nodes)
    values, levels = metrics.values[chosen], metrics.levels[chosen]
    failed = metrics.failed[chosen]
    squares, marks = [], []
    for row, column in np.ndindex(values.shape):
        value, level = float(values[row, column]), int(levels[row, column])
        if math.isnan(value):
            marks.append(Mark(row, column, 0))
            continue
        squares.append(Square(row, column, value, level))
        if failed[row, column]:
            marks.append(Mark(row, column, 1, level))
    left_out = len(metrics.nodes) - len(nodes)
    grid = Grid(
        rows=Axis(nodes, marked),
        columns=Axis(metrics.metrics, (False,) * len(metrics.metrics)),
        squares=tuple(squares),
        marks=tuple(marks),
        units=metrics.units,
        medians=tuple(metrics.medians.tolist()),
        lower=tuple(direction == "lower" for direction in metrics.directions),
        levels=NAMES,
        brief=BRIEF,
        beside="worse than the median of all nodes by",
        symbols=((CROSS, "not measured"), (DIAMOND, "fails its criterion")),
        description=(
            f"{len(nodes)} nodes by {len(metrics.metrics)} metrics, each number beside "
            f"the median of all {len(metrics.nodes)} nodes: "
            f"{int((metrics.levels >= SLOW).sum())} numbers are more than 20 % worse, "
            f"{int(metrics.failed.sum())} fail their criterion."
        ),
        same=False,
        tips=("node", "metric", "value", ""),
    )
    return Figure(
        name="node-heat",
        title="Nodes by metrics",
        detail="each number beside the median of all nodes; of a number measured "
        "between pairs, the better quartile of a node's pairs",
        spec=grid_chart(grid),
        table=_table(metrics, chosen),
        note=f"Of {text.exact(len(metrics.nodes))} nodes the {len(nodes)} worst are "
        "shown: those named as cause, then those that fail most criteria, then those "
        "farthest from the median."
        if left_out
        else "",
        wide=len(metrics.metrics) > WIDE,
    )


def _measured(run: Run, judged: set[str]) -> pl.DataFrame:
    """Return a value per node and flat metric: median over repeats, worst case.

    Counters of ports are no numbers of a node's speed.
    A metric over many sizes is a curve; here it stands only if it has one.
    """
    of_nodes = run.columns(
        "check",
        "case",
        "environment",
        "node",
        "socket",
        "metric",
        "size_bytes",
        "statistic",
        "value",
        "unit",
        "direction",
    ).filter(
        pl.col("node").is_not_null(),
        pl.col("socket").is_null(),
        pl.col("check") != CHECK,
    )
    rows = of_nodes.collect()
    frames = []
    for (metric,), part in rows.group_by("metric", maintain_order=True):
        sizes = part["size_bytes"].unique().to_list()
        flats = {size: flat_name(str(metric), size) for size in sizes}
        if len(sizes) > 1 or flats[sizes[0]] in judged:
            continue
        worst = pl.col("value").max()
        if part["direction"][0] == "higher":
            worst = pl.col("value").min()
        frames.append(
            judged_rows(part)
            .group_by("check", "case", "environment", "node")
            .agg(pl.col("value").median(), pl.col("unit", "direction").first())
            .group_by("node")
            .agg(worst, pl.col("unit", "direction").first())
            .select(
                pl.col("node", "unit", "direction").cast(pl.String),
                "value",
                flat=pl.lit(flats[sizes[0]]),
            )
        )
    if not frames:
        texts = dict.fromkeys(("node", "unit", "direction", "flat"), pl.String)
        return pl.DataFrame(schema={**texts, "value": pl.Float64})
    return pl.concat(frames)


def _direction(name: str) -> Direction:
    return "lower" if name == "lower" else "higher"


def _middle(values: NDArray[np.float64], direction: Direction) -> float:
    """Return the median of what was measured; of two middle values the better one."""
    there = values[~np.isnan(values)]
    return float(np.quantile(there, 0.5, method=direction)) if there.size else math.nan


def _worst(metrics: NodeMetrics, judgement: Judgement) -> list[int]:
    """Choose the nodes to show, in natural order."""
    keys = zip(
        (node not in judgement.convicted for node in metrics.nodes),
        (-metrics.failed.sum(axis=1)).tolist(),
        (-metrics.levels.max(axis=1)).tolist(),
        (-metrics.levels.sum(axis=1)).tolist(),
        range(len(metrics.nodes)),
        strict=True,
    )
    return sorted(number for *_, number in sorted(keys)[:MAX_NODES])


def _table(metrics: NodeMetrics, chosen: list[int]) -> Table:
    """Return the numbers: ▼ is more than 20 % worse, ◇ fails its criterion."""

    def words(row: int, column: int) -> str:
        value = float(metrics.values[row, column])
        if math.isnan(value):
            return "not measured"
        slow = " ▼" if metrics.levels[row, column] >= SLOW else ""
        fails = " ◇" if metrics.failed[row, column] else ""
        return f"{text.measured(value)}{slow}{fails}"

    heads = (
        flat if unit == "1" else f"{flat} ({unit})"
        for flat, unit in zip(metrics.metrics, metrics.units, strict=True)
    )
    numbers = range(len(metrics.metrics))
    return Table(
        ("node", *heads),
        tuple(
            (short(metrics.nodes[row]), *(words(row, column) for column in numbers))
            for row in chosen
        ),
    )
