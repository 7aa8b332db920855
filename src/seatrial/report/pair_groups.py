"""The numbers of all pairs of nodes, by check, metric and size: one group a matrix."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from seatrial.model.cases import CaseKey
from seatrial.model.places import count_pairs, turned
from seatrial.names import natural_key
from seatrial.report.measured_rows import judged_rows
from seatrial.runs.closed_run import Run

_CROWDED = "crowded_"
_NOT_OF_PAIRS = ("start_spread",)
"""Metrics of pairs that describe the sweep, not the pairs."""

_KEYS = ("parameters", "metric", "size_bytes", "hca", "unit", "direction")
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
    """The samples of one matrix, those of a crowded network, and the nodes.

    `drawn`: the check measured some pairs only.
    """

    case: CaseKey
    pairs: pl.DataFrame
    crowded: pl.DataFrame
    nodes: Sequence[str]
    drawn: bool


def groups(run: Run) -> Iterator[Group]:
    """Find the sweeps of a run, in the order of checks and metrics."""
    rows = run.columns(*_COLUMNS).filter(
        pl.col("source").is_not_null()
        & pl.col("destination").is_not_null()
        & ~pl.col("metric").is_in(_NOT_OF_PAIRS)
    )
    allocated: dict[CaseKey, set[str]] = defaultdict(set)
    drawn = {case.key for case in run.cases if case.draws_pairs}
    for case in run.cases:
        allocated[case.key].update(case.nodes)
    for names, part in rows.group_by(*CaseKey._fields, maintain_order=True):
        key = CaseKey(*(str(name) for name in names))
        yield from _groups_of_case(key, part, allocated[key], drawn=key in drawn)


def _groups_of_case(
    key: CaseKey, rows: pl.DataFrame, allocated: set[str], *, drawn: bool
) -> Iterator[Group]:
    crowded = pl.col("metric").cast(pl.String).str.starts_with(_CROWDED)
    before = rows.filter(crowded)
    for (parameters, metric, size_bytes, hca, *_), group in rows.filter(
        ~crowded
    ).group_by(*_KEYS, maintain_order=True):
        pairs = turned(judged_rows(group))
        measured = {*pairs["source"].unique(), *pairs["destination"].unique()}
        nodes = sorted(measured | allocated, key=natural_key)
        sizes = rows.filter(pl.col("metric") == metric)["size_bytes"].n_unique()
        # A ring is no matrix: it has as many pairs as nodes, and many sizes.
        if len(nodes) > 2 and (sizes == 1 or count_pairs(pairs)[1] > len(nodes)):
            same = {"parameters": parameters, "size_bytes": size_bytes, "hca": hca}
            again = _of(before, f"{_CROWDED}{metric}", same)
            yield Group(key, pairs, again, nodes, drawn)


def _of(rows: pl.DataFrame, metric: str, same: dict[str, Any]) -> pl.DataFrame:
    """Return the rows of the statistic of a metric that is judged."""
    rows = rows.filter(
        pl.col("metric") == metric,
        *(pl.col(name).eq_missing(pl.lit(value)) for name, value in same.items()),
    )
    return judged_rows(rows) if rows.height else rows
