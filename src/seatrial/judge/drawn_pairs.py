"""Pairs of a sweep that drew some of them, and perhaps others in each allocation.

Nodes and leafs are judged by all their pairs. A pair itself, or a way between leafs, is
judged if it was drawn in each allocation; of the others no allocation lacks a number.
"""

import numpy as np
import polars as pl

from seatrial.judge.sampling import Marks, Values


def steady(values: Values, pairs: pl.DataFrame) -> Marks:
    """Mark the pairs measured in each allocation that measured both of their nodes.

    `values` (pairs, allocations) has NaN where a pair was not measured; `pairs` has the
    columns `source` and `destination`.
    """
    ends = pairs.select(pl.col("source", "destination").cast(pl.String))
    names = pl.concat([ends["source"], ends["destination"]]).rank("dense")
    first, second = np.split(names.to_numpy().astype(np.int64) - 1, 2)
    measured = ~np.isnan(values)
    present = np.zeros((2 * len(values), values.shape[1]), dtype=np.bool_)
    for own in (first, second):
        np.logical_or.at(present, own, measured)
    both: Marks = present[first] & present[second]
    return np.asarray((measured | ~both).all(axis=1))


def always(values: Values) -> Marks:
    """Mark places measured in each allocation that measured any of them."""
    measured = ~np.isnan(values)
    return np.asarray((measured | ~measured.any(axis=0)).all(axis=1))
