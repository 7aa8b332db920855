"""The numbers of all pairs of nodes, by check, metric and size: one group a matrix."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from seatrial.judge.row_numbers import numbered
from seatrial.model.cases import CaseKey
from seatrial.model.places import count_pairs, turned
from seatrial.names import natural_key
from seatrial.report.measured_rows import judged_rows
from seatrial.runs.closed_run import Run
from seatrial.runs.row_parts import Load, collected, parts

_CROWDED = "crowded_"
_NOT_OF_PAIRS = ("start_spread",)
"""Metrics of pairs that describe the sweep, not the pairs."""

_KEYS = ("parameters", "metric", "size_bytes", "hca", "unit", "direction")
_SAME = ("parameters", "size_bytes", "hca")
_CASE = len(CaseKey._fields)
_COLUMNS = (
    *CaseKey._fields,
    *_KEYS,
    "session",
    "source",
    "destination",
    "statistic",
    "value",
)


@dataclass(frozen=True)
class Group:
    """The pairs of one matrix, those of a crowded network, and the nodes.

    `pairs` has the median of each pair over `repeats` sessions. `first` is the first
    sample; all have its check, metric, unit and rail. `drawn`: the check
    measured some pairs only.
    """

    case: CaseKey
    first: dict[str, Any]
    pairs: pl.DataFrame
    repeats: int
    crowded: pl.DataFrame
    nodes: Sequence[str]
    drawn: bool


def groups(run: Run) -> Iterator[Group]:
    """Find the sweeps of a run, in the order of checks and metrics."""
    table = run.columns(*_COLUMNS).filter(
        pl.col("source").is_not_null()
        & pl.col("destination").is_not_null()
        & ~pl.col("metric").is_in(_NOT_OF_PAIRS)
    )
    crowded = pl.col("metric").cast(pl.String).str.starts_with(_CROWDED)
    before = collected(table.filter(crowded))
    allocated: dict[CaseKey, set[str]] = defaultdict(set)
    drawn = {case.key for case in run.cases if case.draws_pairs}
    for case in run.cases:
        allocated[case.key].update(case.nodes)
    every = parts(table.filter(~crowded), *CaseKey._fields, *_KEYS)
    by_case: dict[CaseKey, list[tuple[dict[str, Any], Load]]] = defaultdict(list)
    for names, load in every:
        key, values = CaseKey(*names[:_CASE]), names[_CASE:]
        by_case[key].append((dict(zip(_KEYS, values, strict=True)), load))
    for key, of_case in by_case.items():
        sizes: dict[str, set[int | None]] = defaultdict(set)
        for same, _ in of_case:
            sizes[same["metric"]].add(same["size_bytes"])
        for same, load in of_case:
            several = len(sizes[same["metric"]]) > 1
            rows = judged_rows(load())
            measured = {*rows["source"].unique(), *rows["destination"].unique()}
            nodes = sorted(measured | allocated[key], key=natural_key)
            # A ring is no matrix: it has as many pairs as nodes, and many sizes.
            if len(nodes) > 2 and not (several and count_pairs(rows)[1] <= len(nodes)):
                again = _of(before, key, same)
                pairs = turned(rows, _sessions(rows))
                first, repeats = pairs.row(0, named=True), pairs["session"].n_unique()
                own = by_pair(pairs)
                yield Group(key, first, own, repeats, again, nodes, key in drawn)


def _sessions(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the pairs of each session."""
    ends = rows.select("session", "source", "destination")
    yield from ends.partition_by("session")


def by_pair(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the median over the repeats of each pair."""
    number, pairs = numbered([rows], ("source", "destination"))
    values = rows.select("value").with_columns(pair=number)
    medians = values.group_by("pair").agg(pl.col("value").median()).sort("pair")
    return pairs.hstack(medians.drop("pair"))


def _of(rows: pl.DataFrame, key: CaseKey, like: dict[str, Any]) -> pl.DataFrame:
    """Return the rows of a crowded network, of the statistic that is judged."""
    same = key._asdict() | {name: like[name] for name in _SAME}
    rows = rows.filter(
        pl.col("metric") == f"{_CROWDED}{like['metric']}",
        *(pl.col(name).eq_missing(pl.lit(value)) for name, value in same.items()),
    )
    return judged_rows(rows) if rows.height else rows
