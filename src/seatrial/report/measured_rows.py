"""Rows of measurements: the judged statistic, and numbers of nodes.

A check that measures several numbers of nodes in one job says so by a parameter
`num_nodes` of its samples; of all others the allocation tells.
"""

import json

import polars as pl

from seatrial.model.metrics import judged_statistic
from seatrial.report.render import text
from seatrial.runs.row_parts import distinct_texts

NUM_NODES, PLACEMENT = "num_nodes", "placement"
"""Parameters of samples, as `seatrial.checks.scaling.Spot` names them."""


def with_node_counts(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `count`, `placement` ('' if none) and `apart`: a sample beside the judged.

    `parameters` keeps the others. Rows need the columns `parameters` and `nodes`.
    """
    kinds = rows.select("parameters", "nodes").unique(maintain_order=True)
    parts = []
    for parameters, nodes in kinds.iter_rows():
        known = text.parameters(parameters)
        count = known.get(NUM_NODES)
        apart = type(count) is int
        placement = str(known.pop(PLACEMENT, "")) if apart else ""
        if apart:
            del known[NUM_NODES]
        else:
            count = len((nodes or "").split())
        parts.append((count, placement, apart, json.dumps(known, sort_keys=True)))
    table = kinds.with_columns(
        pl.Series("count", [row[0] for row in parts], pl.Int64),
        pl.Series("placement", [row[1] for row in parts], pl.String),
        pl.Series("apart", [row[2] for row in parts], pl.Boolean),
        pl.Series("rest", [row[3] for row in parts], pl.String),
    )
    return (
        rows.join(table, on=["parameters", "nodes"], nulls_equal=True)
        .with_columns(parameters=pl.col("rest").cast(pl.Categorical))
        .drop("rest")
    )


def judged_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows of the one statistic that counts; the rows are of one metric."""
    present = distinct_texts([rows], "statistic")
    if len(present) == 1:
        return rows  # a filter copies millions
    return rows.filter(pl.col("statistic") == judged_statistic(present))


def several_counts(rows: pl.DataFrame) -> bool:
    """Return True if the most nodes are at least twice the fewest."""
    counts = [count for count in rows["count"].unique().to_list() if count > 0]
    return bool(counts) and max(counts) >= 2 * min(counts)


def on_most_nodes(rows: pl.DataFrame) -> pl.DataFrame:
    """Drop what the chapter on scaling draws: samples over fewer nodes than all."""
    if not rows.height:
        return rows
    counted = with_node_counts(rows)
    if not several_counts(counted):
        return rows
    most = pl.col("count").max().over("case", "environment", "partition")
    kept = (pl.col("count") == most) & ~pl.col("apart")
    return (
        rows.with_row_index("row")
        .join(
            counted.with_row_index("row").filter(kept).select("row"),
            on="row",
            how="semi",
        )
        .drop("row")
    )
