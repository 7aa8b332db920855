"""Where a number was taken: a pair of nodes, a node, or the whole allocation."""

import polars as pl

PLACE = ("source", "destination", "node", "hca")
"""The columns that make a place."""


def with_place(rows: pl.DataFrame, several_rails: bool) -> pl.DataFrame:
    """Add the column `place`: 'cn02 - cn03', 'cn02', null for the whole allocation.

    With `several_rails` a place names its own: 'cn02 - cn03 (mlx5_1)'.
    """
    source, destination, node, hca = (pl.col(name).cast(pl.String) for name in PLACE)
    pair = pl.concat_str(source, destination, separator=" - ")
    place = pl.coalesce(pair, node)
    if several_rails:
        place = pl.coalesce(pl.format("{} ({})", place, hca), place)
    return rows.with_columns(place=place)


def several_rails(rows: pl.DataFrame) -> bool:
    """Tell whether the numbers were taken on more than one rail (hca)."""
    return rows["hca"].drop_nulls().n_unique() > 1


def both_ways(pairs: pl.DataFrame) -> bool:
    """Tell whether every pair was measured from either node to the other."""
    ends = pl.col("source", "destination").cast(pl.Categorical).to_physical()
    ordered = pairs.select(ends).unique()
    pairs = ordered.select(
        pl.min_horizontal("source", "destination").alias("first"),
        pl.max_horizontal("source", "destination").alias("second"),
    )
    return ordered.height == 2 * pairs.n_unique()
