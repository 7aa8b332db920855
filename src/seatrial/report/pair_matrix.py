"""The pair view: for each number taken of all pairs of nodes, a matrix of nodes.

Rows are sources, columns destinations. Of a number that has no direction, one half is
the mirror image of the other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from seatrial.judge.judge import Judgement
from seatrial.model.cases import CaseKey
from seatrial.model.metrics import flat_name
from seatrial.model.places import count_pairs
from seatrial.names import natural_key
from seatrial.report.pair_groups import Group, by_pair, groups
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
class Matrix:
    """One metric of one case between nodes: `cells` by number of row and column.

    `nodes` are those shown, `of` counts all; `median` is that of all `measured`
    pairs (each direction counts if `directed`), `missing` counts the others, `slow`
    those of level `SLOW`, `missed` those beyond `limit`; `silent` names the nodes of
    which no pair was measured; `retested` pairs have source, destination and cell.
    `drawn`: the check measured some pairs only.
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
    retested: tuple[tuple[str, str, Cell], ...]
    drawn: bool = False

    @property
    def coverage(self) -> float:
        """The share of all pairs that was measured, each direction counted."""
        return self.measured / (self.measured + self.missing)

    @property
    def marked(self) -> tuple[bool, ...]:
        """Return True for each shown node that is named as cause."""
        return tuple(node in self.convicted for node in self.nodes)


def matrices(run: Run, judgement: Judgement) -> list[Matrix]:
    """Find every matrix of a run, in the order of checks and metrics."""
    pair_groups = list(groups(run))
    fitting = math.isqrt(MAX_CELLS // max(1, len(pair_groups)))
    most = max(MIN_NODES, min(MAX_NODES, fitting))
    return [_matrix(group, judgement, most) for group in pair_groups]


def _matrix(group: Group, judgement: Judgement, most: int) -> Matrix:
    first = group.first
    lower_is_better = first["direction"] == "lower"
    pairs = group.pairs
    middle = _middle(pairs["value"], lower_is_better)
    directed, unordered = count_pairs(pairs)
    ways = 2 if directed > unordered else 1
    pairs = pairs.with_columns(level=_level(first["direction"], middle)).join(
        by_pair(group.crowded if ways == 2 else _both(group.crowded)).rename(
            {"value": "crowded"}
        ),
        on=("source", "destination"),
        how="left",
    )
    ranked, silent = _worst_first(pairs, group.nodes, judgement, lower_is_better)
    nodes = sorted(ranked[:most], key=natural_key)
    limit = _limit(judgement, group.case, first)
    retested = pairs.drop_nulls("crowded").sort(
        "value", descending=lower_is_better, maintain_order=True
    )
    return Matrix(
        check=group.case.check,
        detail=_detail(group.case, first),
        metric=first["metric"],
        size_bytes=first["size_bytes"],
        unit=first["unit"],
        direction=first["direction"],
        statistic=first["statistic"],
        repeats=group.repeats,
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
        retested=_rows(retested),
        drawn=group.drawn,
    )


def _middle(values: pl.Series, lower_is_better: bool) -> float:
    """Return the median; of two middle values the better one.

    One bad node of four spoils half of all pairs: between good and bad is no median.
    """
    middle = values.quantile(0.5, "lower" if lower_is_better else "higher")
    return math.nan if middle is None else middle


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
    """Return the nodes, worst first, and the nodes without any pair.

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
    """Return the cells between the shown nodes, row by row."""
    index = {node: number for number, node in enumerate(nodes)}
    shown = pairs.filter(
        pl.all_horizontal(pl.col("source", "destination").is_in(nodes))
    )
    cells = {}
    for source, destination, cell in _rows(shown):
        row, column = index[source], index[destination]
        cells[row, column] = cell
        if mirrored:
            cells[column, row] = cell
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


def _rows(pairs: pl.DataFrame) -> tuple[tuple[str, str, Cell], ...]:
    """Return source, destination and cell of each pair."""
    columns = ("source", "destination", "value", "level", "crowded")
    return tuple(
        (source, destination, Cell(*numbers))
        for source, destination, *numbers in pairs.select(columns).iter_rows()
    )


def _detail(case: CaseKey, first: dict[str, Any]) -> str:
    parameters = text.parameters(first["parameters"])
    parts = [text.said(key, value) for key, value in parameters.items()]
    return ", ".join([*parts, case.environment, *filter(None, [first["hca"]])])
