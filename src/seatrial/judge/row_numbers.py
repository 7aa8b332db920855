"""Numbers of the distinct rows of a table: a sweep has millions of rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

RowNumbers = npt.NDArray[np.integer[Any]]

_MOST_CODES = 1 << 62
"""Numbers of combinations that an integer holds."""

_MOST_SPARSE = 4
"""Numbers of combinations, for each row, that a table may have an entry for."""


def numbered(
    rows: pl.DataFrame, columns: tuple[str, ...]
) -> tuple[RowNumbers, pl.DataFrame]:
    """Number the distinct rows of some columns in the order of their appearance.

    By one integer for each row; also returns the distinct rows.
    """
    codes, most = _codes(rows, columns)
    kind = wide_enough(rows.height)
    first = np.full(most, rows.height, dtype=kind)
    np.minimum.at(first, codes, np.arange(rows.height, dtype=kind))
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < rows.height)]
    rank = np.zeros(most, dtype=kind)
    rank[order] = np.arange(order.size, dtype=kind)
    return rank[codes], rows.select(columns)[first[order]]


def wide_enough(most: int) -> type[np.int32] | type[np.int64]:
    """Return the narrowest integer up to a number: millions of them take half."""
    return np.int32 if most <= np.iinfo(np.int32).max else np.int64


def _codes(rows: pl.DataFrame, columns: tuple[str, ...]) -> tuple[RowNumbers, int]:
    """Return an integer for each row, equal for equal rows, and how many there are."""
    codes: RowNumbers = np.zeros(rows.height, dtype=np.int32)
    most = 1
    for name in columns:
        column = rows[name].to_physical()
        if column.null_count() == rows.height:
            continue
        least, largest = rows.select(
            least=pl.col(name).to_physical().min(),
            most=pl.col(name).to_physical().max(),
        ).row(0)
        least -= column.null_count() > 0  # null is 0
        width = largest - least + 1
        if most * width > _MOST_CODES:
            codes, most = _dense(codes)
        most *= width
        kind = wide_enough(most)
        numbers = (column.cast(pl.Int64) - least).fill_null(0)
        codes = codes.astype(kind, copy=False)
        codes *= kind(width)
        codes += numbers.to_numpy().astype(kind, copy=False)
    return _dense(codes) if most > _MOST_SPARSE * rows.height else (codes, most)


def _dense(codes: RowNumbers) -> tuple[RowNumbers, int]:
    distinct, numbers = np.unique(codes, return_inverse=True)
    return numbers, distinct.size
