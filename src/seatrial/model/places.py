"""Places of numbers: a pair of nodes, a node, a socket, or the allocation."""

from collections.abc import Iterable
from typing import Any

import polars as pl

PLACE = ("source", "destination", "node", "hca", "socket")
"""The columns that make a place."""


_MOST_NARROW = 1 << 32


def with_place(rows: pl.DataFrame, several_rails: bool) -> pl.DataFrame:
    """Add the column `place`: 'cn02 - cn03', 'cn02', null for the whole allocation.

    With `several_rails` a place names its own: 'cn02 - cn03 (mlx5_1)'. A socket is
    always named: 'cn02 (socket 1)'.
    """
    source, destination, node, hca, socket = (
        pl.col(name).cast(pl.String) for name in PLACE
    )
    pair = pl.concat_str(source, destination, separator=" - ")
    place = pl.coalesce(pair, pl.format("{} (socket {})", node, socket), node)
    if several_rails:
        place = pl.coalesce(pl.format("{} ({})", place, hca), place)
    return rows.with_columns(place=place)


def several_rails(rows: pl.DataFrame) -> bool:
    """Return True if the numbers were taken on more than one rail (hca)."""
    return rows["hca"].drop_nulls().n_unique() > 1


def count_pairs(rows: pl.DataFrame) -> tuple[int, int]:
    """Count the pairs of nodes: each direction for itself, and without direction."""
    names = pl.col("source", "destination").cast(pl.Categorical)
    ends = rows.select(names.to_physical())
    largest: list[Any] = [end.max() or 0 for end in ends]
    width = max(largest) + 1
    kind = pl.UInt32 if width**2 <= _MOST_NARROW else pl.UInt64  # there are millions
    first, second = (pl.col(name).cast(kind) for name in ends.columns)
    low, high = pl.min_horizontal(first, second), pl.max_horizontal(first, second)
    directed = (first * width + second).n_unique()
    undirected = (low * width + high).n_unique()
    return ends.select(directed).item(), ends.select(undirected).item()


def both_ways(rows: pl.DataFrame) -> bool:
    """Return True if every pair was measured from either node to the other."""
    directed, pairs = count_pairs(rows)
    return directed == 2 * pairs


def turned(rows: pl.DataFrame, sessions: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Merge the two directions of a pair that has no direction.

    A sweep takes one latency of a pair; which node starts may differ from session
    to session. Where that is so, the source is the first by name. `sessions` have the
    pairs of the rows, apart for each session.
    """
    directed, pairs = count_pairs(rows)
    if directed == pairs:
        return rows
    if any(one > both for one, both in map(count_pairs, sessions)):
        return rows
    source, destination = (pl.col(name).cast(pl.String) for name in PLACE[:2])
    return rows.with_columns(
        source=pl.min_horizontal(source, destination).cast(pl.Categorical),
        destination=pl.max_horizontal(source, destination).cast(pl.Categorical),
    )
