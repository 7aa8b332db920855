"""The pair view: for each number taken of all pairs of nodes, a matrix of nodes.

Rows are sources, columns destinations. Of a number that has no direction, one half is
the mirror image of the other.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from seatrial.judge.judge import Judgement
from seatrial.model.cases import CaseKey
from seatrial.model.metrics import flat_name, judged_statistic
from seatrial.model.places import count_pairs, turned
from seatrial.names import natural_key
from seatrial.report.render import text
from seatrial.report.render.heat_grid import LEVELS, SLOW
from seatrial.runs.closed_run import Run

MAX_NODES = 64
"""Nodes of one matrix; of more, the worst are shown."""

MAX_CELLS = 50_000
"""Cells of all matrices; where they would be more, each matrix shows fewer nodes."""

MIN_NODES = 8
"""Nodes that every matrix may show, however many matrices there are."""

MAX_RETESTED = 50
"""Rows of the table of pairs that were tested again; the rest is counted."""


_CROWDED = "crowded_"
_NOT_OF_PAIRS = ("start_spread",)
"""Metrics of pairs that describe the sweep, not the pairs."""

_KEYS = ("parameters", "metric", "size_bytes", "hca", "unit", "direction")
_COLUMNS = (
    *CaseKey._fields,
    *_KEYS,
    *("session", "source", "destination", "statistic", "value"),
)


@dataclass(frozen=True)
class Cell:
    """A pair: its median over the repeats, how bad that is, and what it was before.

    `level` counts the ratios of `LEVELS` that are missed; `crowded` is the value
    while other pairs measured too, of a pair that was tested again alone.
    """

    value: float
    level: int
    crowded: float | None = None


@dataclass(frozen=True)
class Retested:
    """A pair that was tested again alone."""

    source: str
    destination: str
    cell: Cell


@dataclass(frozen=True)
class Matrix:
    """One metric of one case between nodes: `cells` by number of row and column.

    `nodes` are those shown, `of` counts all; `median` is that of all `measured`
    pairs (each direction counts if `directed`), `missing` counts the others, `slow`
    those of level `SLOW`, `missed` those beyond `limit`; `silent` names the nodes of
    which no pair was measured.
    """

    check: str
    detail: str
    metric: str
    size_bytes: int | None
    unit: str
    direction: str
    statistic: str
    repeats: int
    directed: bool
    nodes: tuple[str, ...]
    of: int
    convicted: tuple[str, ...]
    cells: dict[tuple[int, int], Cell]
    median: float
    measured: int
    missing: int
    silent: tuple[str, ...]
    slow: int
    limit: float | None
    missed: int
    retested: tuple[Retested, ...]

    @property
    def marked(self) -> tuple[bool, ...]:
        """Tell of each shown node whether it is named as cause."""
        return tuple(node in self.convicted for node in self.nodes)


def matrices(run: Run, judgement: Judgement) -> list[Matrix]:
    """Find every matrix of a run, in the order of checks and metrics."""
    found = list(_groups(run))
    each = math.isqrt(MAX_CELLS // max(1, len(found)))
    most = max(MIN_NODES, min(MAX_NODES, each))
    return [_matrix(group, judgement, most) for group in found]


@dataclass(frozen=True)
class _Group:
    """The samples of one matrix, those of a crowded network, and the nodes."""

    case: CaseKey
    pairs: pl.DataFrame
    crowded: pl.DataFrame
    nodes: Sequence[str]


def _groups(run: Run) -> Iterator[_Group]:
    rows = run.columns(*_COLUMNS).filter(
        pl.col("source").is_not_null()
        & pl.col("destination").is_not_null()
        & ~pl.col("metric").is_in(_NOT_OF_PAIRS)
    )
    allocated: dict[CaseKey, set[str]] = {}
    for case in run.cases:
        key = CaseKey(case.check, case.case, case.partition, case.environment)
        allocated.setdefault(key, set()).update(case.nodes)
    for names, part in rows.group_by(*CaseKey._fields, maintain_order=True):
        key = CaseKey(*(str(name) for name in names))
        yield from _groups_of_case(key, part, allocated.get(key, set()))


def _groups_of_case(
    key: CaseKey, rows: pl.DataFrame, allocated: set[str]
) -> Iterator[_Group]:
    crowded = pl.col("metric").cast(pl.String).str.starts_with(_CROWDED)
    before = rows.filter(crowded)
    for (parameters, metric, size_bytes, hca, *_), group in rows.filter(
        ~crowded
    ).group_by(*_KEYS, maintain_order=True):
        statistic = judged_statistic(group["statistic"].unique())
        pairs = turned(group.filter(pl.col("statistic") == statistic))
        measured = {*pairs["source"].unique(), *pairs["destination"].unique()}
        nodes = sorted(measured | allocated, key=natural_key)
        sizes = rows.filter(pl.col("metric") == metric)["size_bytes"].n_unique()
        if _is_matrix(pairs, len(nodes), sizes):
            same = {"parameters": parameters, "size_bytes": size_bytes, "hca": hca}
            yield _Group(key, pairs, _of(before, f"{_CROWDED}{metric}", same), nodes)


def _is_matrix(pairs: pl.DataFrame, nodes: int, sizes: int) -> bool:
    """Tell a sweep from a ring, which has as many pairs as nodes and many sizes."""
    return nodes > 2 and (sizes == 1 or count_pairs(pairs)[1] > nodes)


def _of(rows: pl.DataFrame, metric: str, same: dict[str, Any]) -> pl.DataFrame:
    """Give the one statistic of a metric that counts, by pair."""
    rows = rows.filter(
        pl.col("metric") == metric,
        *(pl.col(name).eq_missing(pl.lit(value)) for name, value in same.items()),
    )
    if not rows.height:
        return rows
    statistic = judged_statistic(rows["statistic"].unique())
    return rows.filter(pl.col("statistic") == statistic)


def _matrix(group: _Group, judgement: Judgement, most: int) -> Matrix:
    first = group.pairs.row(0, named=True)
    lower_is_better = first["direction"] == "lower"
    pairs = _by_pair(group.pairs)
    middle = _middle(pairs["value"], lower_is_better)
    directed, unordered = count_pairs(pairs)
    ways = 2 if directed > unordered else 1
    pairs = pairs.with_columns(level=_level(first["direction"], middle)).join(
        _by_pair(group.crowded if ways == 2 else _both(group.crowded)).rename(
            {"value": "crowded"}
        ),
        on=("source", "destination"),
        how="left",
    )
    ranked, silent = _worst_first(pairs, group.nodes, judgement, lower_is_better)
    nodes = sorted(ranked[:most], key=natural_key)
    limit = _limit(judgement, group.case, first)
    return Matrix(
        check=group.case.check,
        detail=_detail(group.case, first),
        metric=first["metric"],
        size_bytes=first["size_bytes"],
        unit=first["unit"],
        direction=first["direction"],
        statistic=first["statistic"],
        repeats=group.pairs["session"].n_unique(),
        directed=ways == 2,
        nodes=tuple(nodes),
        of=len(group.nodes),
        convicted=judgement.convicted,
        cells=_cells(pairs, nodes, mirrored=ways == 1),
        median=middle,
        measured=pairs.height,
        missing=ways * math.comb(len(group.nodes), 2) - pairs.height,
        silent=silent,
        slow=pairs.filter(pl.col("level") >= SLOW).height,
        limit=limit,
        missed=_missed(pairs["value"], limit, lower_is_better),
        retested=_retested(pairs, lower_is_better),
    )


def _middle(values: pl.Series, lower_is_better: bool) -> float:
    """Give the median; of two middle values the better one.

    One bad node of four spoils half of all pairs: between good and bad is no median.
    """
    middle = values.quantile(0.5, "lower" if lower_is_better else "higher")
    return math.nan if middle is None else middle


def _by_pair(rows: pl.DataFrame) -> pl.DataFrame:
    """Give the median over the repeats of each pair."""
    return rows.group_by("source", "destination", maintain_order=True).agg(
        pl.col("value").median()
    )


def _both(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add every pair in the other direction too."""
    swapped = {"source": "destination", "destination": "source"}
    return pl.concat([pairs, pairs.rename(swapped).select(pairs.columns)])


def _level(direction: str, middle: float) -> pl.Expr:
    value = pl.col("value")
    missed = [
        value > ratio * middle if direction == "lower" else value < ratio * middle
        for ratio in LEVELS[direction]
    ]
    return pl.sum_horizontal(missed).cast(pl.Int64)


def _worst_first(
    pairs: pl.DataFrame,
    nodes: Sequence[str],
    judgement: Judgement,
    lower_is_better: bool,
) -> tuple[list[str], tuple[str, ...]]:
    """Order the nodes by what is wrong with them; give also those without any pair.

    First come the convicted, then nodes whose best pair is bad (or that have none),
    then those with the most slow and missing pairs, then those with the worst pair.
    """
    ends = pl.concat(
        pairs.select(pl.col(end).alias("node"), "level", "value")
        for end in ("source", "destination")
    )
    value = pl.col("value")
    table = ends.group_by("node").agg(
        best=pl.col("level").min(),
        sound=(pl.col("level") < SLOW).sum(),
        worst=value.max() if lower_is_better else -value.min(),
    )
    known = {node: numbers for node, *numbers in table.iter_rows()}
    none = [len(LEVELS["lower"]) + 1, 0, math.inf]

    def goodness(node: str) -> tuple[Any, ...]:
        best, sound, worst = known.get(node, none)
        return (node not in judgement.convicted, -best, sound, -worst)

    silent = tuple(node for node in nodes if node not in known)
    return sorted(nodes, key=goodness), silent


def _cells(
    pairs: pl.DataFrame, nodes: Sequence[str], *, mirrored: bool
) -> dict[tuple[int, int], Cell]:
    """Give the cells between the shown nodes, row by row."""
    index = {node: number for number, node in enumerate(nodes)}
    shown = pairs.filter(
        pl.all_horizontal(pl.col("source", "destination").is_in(nodes))
    )
    cells = {}
    for source, destination, *numbers in shown.select(
        "source", "destination", "value", "level", "crowded"
    ).iter_rows():
        row, column = index[source], index[destination]
        cells[row, column] = Cell(*numbers)
        if mirrored:
            cells[column, row] = Cell(*numbers)
    return dict(sorted(cells.items()))


def _limit(judgement: Judgement, case: CaseKey, first: dict[str, Any]) -> float | None:
    """Find the limit that the pairs were held to, the strictest of several."""
    flat = flat_name(first["metric"], first["size_bytes"])
    bounds = [
        finding.limit
        for finding in judgement.findings
        if finding.kind in ("limit", "node")
        and finding.limit is not None
        and (finding.check, finding.case) == (case.check, case.case)
        and (finding.environment, finding.metric) == (case.environment, flat)
    ]
    return (min if first["direction"] == "lower" else max)(bounds, default=None)


def _missed(values: pl.Series, limit: float | None, lower_is_better: bool) -> int:
    if limit is None:
        return 0
    return int((values > limit if lower_is_better else values < limit).sum())


def _retested(pairs: pl.DataFrame, lower_is_better: bool) -> tuple[Retested, ...]:
    """Give the pairs that were tested again, the worst first."""
    again = pairs.drop_nulls("crowded").sort(
        "value", descending=lower_is_better, maintain_order=True
    )
    columns = ("source", "destination", "value", "level", "crowded")
    return tuple(
        Retested(source, destination, Cell(*numbers))
        for source, destination, *numbers in again.select(columns).iter_rows()
    )


def _detail(case: CaseKey, first: dict[str, Any]) -> str:
    parameters = text.parameters(first["parameters"])
    parts = [text.said(key, value) for key, value in parameters.items()]
    return ", ".join([*parts, case.environment, *filter(None, [first["hca"]])])
