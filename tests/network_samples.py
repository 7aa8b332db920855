"""Sweeps over pairs of machines whose truth is known: what is slow, and where.

A number is that of the worst part on the path (bandwidth), or the sum of what each part
adds (latency), times noise. It shares no code with the judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import polars as pl
from sweep_samples import BW_MB_PER_S, LATENCY_US, names, sample_sweep

from seatrial.runs.closed_run import Run


@dataclass(frozen=True)
class Truth:
    """A machine: `leafs` are sizes; factors are below 1 where something is slow.

    `sending`, `receiving` and `uplinks` (traffic that leaves a leaf) are by name,
    `rails` by node and rail, `links` by pair, `ways` by two leafs (both directions). Of
    all pairs, `rounds` of a tournament are measured, all without; `missing` is the
    share of numbers that were lost.
    """

    nodes: int
    leafs: Sequence[int] = ()
    sending: Mapping[str, float] = field(default_factory=dict)
    receiving: Mapping[str, float] = field(default_factory=dict)
    uplinks: Mapping[str, float] = field(default_factory=dict)
    ways: Mapping[tuple[str, str], float] = field(default_factory=dict)
    links: Mapping[tuple[str, str], float] = field(default_factory=dict)
    rails: Mapping[tuple[str, str], float] = field(default_factory=dict)
    rail_names: Sequence[str | None] = (None,)
    rounds: int = 0
    missing: float = 0.0
    cv: float = 0.01
    repeats: int = 6

    @property
    def leaf_of(self) -> dict[str, str]:
        """The leaf of each node."""
        own = [f"l{n}" for n, size in enumerate(self.leafs, 1) for _ in range(size)]
        return dict(zip(names(self.nodes), own, strict=False))

    def slow(self, *nodes: str, factor: float = 0.7) -> "Truth":
        """Return the machine with nodes that are slow in both directions."""
        own = dict.fromkeys(nodes, factor)
        return replace(
            self,
            sending={**self.sending, **own},
            receiving={**self.receiving, **own},
        )


def run_of(truth: Truth, seed: int = 1) -> Run:
    """Build a closed run of a sweep over the pairs of a machine."""
    nodes = names(truth.nodes)
    rng = np.random.default_rng(seed)
    run = sample_sweep(nodes, rails=truth.rail_names, repeats=truth.repeats)
    rows = run.measurements.collect()
    kept = _measured(rows, _rounds(nodes, truth.rounds))
    rows = rows.filter(kept & (rng.random(rows.height) >= truth.missing))
    columns = rows.select(
        pl.col("source", "destination", "hca", "metric").cast(pl.String)
    )
    known = {row: _factors(truth, *row) for row in columns.unique().iter_rows()}
    values = np.array([known[row] for row in columns.iter_rows()])
    values *= np.exp(rng.normal(0.0, truth.cv, rows.height))
    paired = pl.col("metric").is_in(["bw", "latency"])
    rows = rows.with_columns(
        value=pl.when(paired).then(pl.Series(values)).otherwise("value")
    )
    leafs = truth.leaf_of
    manifest = run.manifest | {
        "nodes": [
            node | {"facts": {"leaf": leafs.get(node["name"])}}
            for node in run.manifest["nodes"]
        ]
    }
    return replace(run, measurements=rows.lazy(), manifest=manifest)


def _factors(
    truth: Truth, source: str | None, destination: str | None, hca: str, metric: str
) -> float:
    """Return the number of a pair without noise."""
    if source is None or destination is None or metric not in ("bw", "latency"):
        return 1.0
    leafs = truth.leaf_of
    a, b = leafs.get(source, ""), leafs.get(destination, "")
    parts = [truth.rails.get((node, hca), 1.0) for node in (source, destination)]
    parts += [
        table.get(pair, 1.0)
        for table, ends in ((truth.links, (source, destination)), (truth.ways, (a, b)))
        for pair in (ends, ends[::-1])
    ]
    parts += [truth.uplinks.get(leaf, 1.0) for leaf in (a, b) if a != b]
    if metric == "bw":
        parts += [truth.sending.get(source, 1.0), truth.receiving.get(destination, 1.0)]
        return BW_MB_PER_S * min(parts)
    parts += [
        max(truth.sending.get(node, 1.0), truth.receiving.get(node, 1.0))
        for node in (source, destination)
    ]
    return LATENCY_US * (1 + sum(1 / part - 1 for part in parts))


def _rounds(nodes: Sequence[str], rounds: int) -> set[frozenset[str]]:
    """Return the pairs of the first rounds of a tournament, all without."""
    if not rounds:
        return {frozenset(pair) for pair in combinations(nodes, 2)}
    order, pairs = list(nodes), set()
    for _ in range(rounds):
        half = len(order) // 2
        pairs |= {frozenset((order[k], order[-1 - k])) for k in range(half)}
        order = [order[0], order[-1], *order[1:-1]]
    return pairs


def _measured(rows: pl.DataFrame, pairs: set[frozenset[str]]) -> np.ndarray:
    ends = rows.select(pl.col("source", "destination").cast(pl.String)).rows()
    return np.array([a is None or frozenset((a, b)) in pairs for a, b in ends])
