"""The numbers of all sides in one table: a row per number, allocation and side.

What is sampled is the allocation: a job, on its nodes. Of what is taken of several
places in it (nodes, pairs, sockets, rails), or several times, the median counts. If
one of these values is no finite number, nor is the median.
"""

import json
from collections.abc import Sequence

import polars as pl

from seatrial.compare.sides import Entrant
from seatrial.errors import SeatrialError
from seatrial.judge.row_numbers import numbered
from seatrial.model.metrics import STATISTICS
from seatrial.model.places import PLACE
from seatrial.runs.counters_table import CHECK
from seatrial.runs.row_parts import Blocks, batches_in_blocks

KEY = (
    "check",
    "parameters",
    "environment",
    "partition",
    "num_nodes",
    "metric",
    "size_bytes",
)
"""What must be the same for numbers of two sides to be compared."""

_ALLOCATION = ("session", "repeat", "attempt", "job_id")
_START = "start_time"
_OWN = ("nodes", "statistic", "unit", "direction", "value", "case")
_NUMBERS = (*(name for name in KEY if name != "num_nodes"), *_OWN, *_ALLOCATION)


def allocations(entrants: Sequence[Entrant]) -> pl.DataFrame:
    """Return the numbers of all runs by side, with the columns of `KEY`.

    `environment` is '' where every side is restricted to one, `partition` where no side
    has several for the check, `num_nodes` is null of what is taken of single places.
    `stack`, `full_partition` and `of_nodes` say what they were; `start_time` is the
    earliest of the allocation. Of several statistics the first that all sides have
    counts, in the order of metrics.STATISTICS.

    Raises SeatrialError if a metric is in several units.
    """
    tables = [
        _of_side(entrant, number)
        for number, entrant in enumerate(entrants)
        if entrant.run is not None
    ]
    if not tables:
        return pl.DataFrame()
    table = pl.concat(tables)
    _require_units(table, entrants)
    restricted = all(e.side.environment for e in entrants if e.run is not None)
    partitions = table.group_by("side", "check").agg(pl.col("partition").n_unique())
    several = partitions.filter(pl.col("partition") > 1)["check"].unique().to_list()
    short = pl.col("partition").str.split(":").list.last()
    table = table.with_columns(
        stack=pl.col("environment"),
        full_partition=pl.col("partition"),
        environment=pl.lit("") if restricted else pl.col("environment"),
        partition=pl.when(pl.col("check").is_in(several))
        .then(short)
        .otherwise(pl.lit("")),
        of_nodes=pl.col("num_nodes"),
        num_nodes=pl.when("placed").then(None).otherwise("num_nodes"),
    )
    return _one_statistic(table)


def _of_side(entrant: Entrant, number: int) -> pl.DataFrame:
    """Compute the median over the places of each allocation of a run.

    Counters of ports are left out: their load is not that of the other side.
    """
    assert entrant.run is not None
    rows = entrant.run.columns(*_NUMBERS, *PLACE, _START)
    rows = rows.filter(pl.col("check") != CHECK)
    if entrant.side.environment:
        rows = rows.filter(pl.col("environment") == entrant.side.environment)
    placed = pl.any_horizontal(pl.col(name).is_not_null() for name in PLACE)
    rows = rows.with_columns(placed=placed).drop(PLACE)
    batches = batches_in_blocks(rows, "check", "metric", "size_bytes")
    several = [*map(_medians, batches)]
    table = pl.concat(several or [_medians([rows.head(0).collect()])])
    texts = [name for name, kind in table.schema.items() if kind == pl.Categorical]
    medians = table.with_columns(pl.col(texts).cast(pl.String).fill_null(""))
    nodes = pl.col("nodes").fill_null("")
    count = pl.when(nodes == "").then(0).otherwise(nodes.str.count_matches(" ") + 1)
    return medians.with_columns(
        side=pl.lit(number), num_nodes=count.cast(pl.Int64), nodes=None
    )


def _medians(blocks: Blocks) -> pl.DataFrame:
    """Compute the medians of each allocation: a sweep has millions of numbers."""
    by = tuple(name for name in blocks[0].columns if name not in ("value", _START))
    allocation, known = numbered(blocks, by)
    numbers = pl.concat(block.select("value", _START) for block in blocks)
    value = pl.col("value").fill_null(float("nan"))
    middle = pl.when(value.is_finite().all()).then(value.median()).otherwise(None)
    medians = (
        numbers.with_columns(allocation=allocation)
        .group_by("allocation")
        .agg(value=middle, start_time=pl.col(_START).min())
        .sort("allocation")
    )
    return known.hstack(medians.drop("allocation"))


def _require_units(table: pl.DataFrame, entrants: Sequence[Entrant]) -> None:
    for column in ("unit", "direction"):
        counts = table.group_by("check", "metric").agg(pl.col(column).n_unique())
        mixed = counts.filter(pl.col(column) > 1).sort("check", "metric")
        if mixed.is_empty():
            continue
        check, metric, _ = mixed.row(0)
        rows = table.filter((pl.col("check") == check) & (pl.col("metric") == metric))
        first = rows.group_by("side", maintain_order=True).agg(pl.col(column).first())
        names = ", ".join(
            f"{name!r} in {entrants[side].side.name}"
            for side, name in first.sort("side").iter_rows()
        )
        raise SeatrialError(
            f"the {column} of {metric} of {check} is {names}; expected the same: "
            "measure or import one of them again"
        )


def _one_statistic(table: pl.DataFrame) -> pl.DataFrame:
    """Keep one statistic of each number: the first that most sides have."""
    order = {name: number for number, name in enumerate(STATISTICS)}
    chosen = (
        table.group_by(*KEY, "statistic")
        .agg(pl.col("side").n_unique())
        .with_columns(
            order=pl.col("statistic").replace_strict(
                order, default=len(order), return_dtype=pl.Int64
            )
        )
        .sort("side", "order", "statistic", descending=[True, False, False])
        .group_by(KEY, maintain_order=True)
        .agg(pl.col("statistic").first())
    )
    return table.join(chosen, on=[*KEY, "statistic"], how="semi", nulls_equal=True)


def parameters_of(text: str) -> dict[str, object]:
    """Return the parameters of a case as its numbers hold them."""
    parameters = json.loads(text) if text else {}
    return parameters if isinstance(parameters, dict) else {}


def case_words(text: str) -> str:
    """Name a case by its parameters: `benchmark=Alltoall, ppn=2`."""
    return ", ".join(f"{key}={value}" for key, value in parameters_of(text).items())
