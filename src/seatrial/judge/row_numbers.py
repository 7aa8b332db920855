"""Numbers of the distinct rows of a table: a sweep has millions of rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.runs.row_parts import Blocks, joined

RowNumbers = npt.NDArray[np.integer[Any]]

_MOST_CODES = 1 << 62
"""Numbers of combinations that an integer holds."""

_MOST_SPARSE = 4
"""Numbers of combinations, for each row, that a table may have an entry for."""


def numbered(
    blocks: Blocks, columns: tuple[str, ...]
) -> tuple[RowNumbers, pl.DataFrame]:
    """Number the distinct rows of some columns in the order of their appearance.

    By one integer for each row of all blocks; also returns the distinct rows.
    """
    codes, most = _codes(blocks, columns)
    kind = wide_enough(codes.size)
    first = np.full(most, codes.size, dtype=kind)
    for _, rows in with_rows(blocks):
        own = codes[rows]
        np.minimum.at(first, own, np.arange(rows.start, rows.stop, dtype=kind))
    present = np.flatnonzero(first < codes.size)
    order = present[np.argsort(first[present], kind="stable")]
    rank = np.zeros(most, dtype=kind)
    rank[order] = np.arange(order.size, dtype=kind)
    numbers: RowNumbers = codes.astype(kind, copy=False)
    for _, rows in with_rows(blocks):
        numbers[rows] = rank[codes[rows]]
    distinct = first[order]
    taken = [
        block.select(columns)[distinct[slice(*ends)] - rows.start]
        for block, rows in with_rows(blocks)
        if np.ptp(ends := np.searchsorted(distinct, (rows.start, rows.stop)))
    ]
    return numbers, joined(taken) if taken else blocks[0].select(columns)


def with_rows(blocks: Blocks) -> Iterator[tuple[pl.DataFrame, slice]]:
    """Yield blocks, and the place of each among the rows of all."""
    start = 0
    for block in blocks:
        yield block, slice(start, start + block.height)
        start += block.height


def wide_enough(most: int) -> type[np.int32] | type[np.int64]:
    """Return the narrowest integer up to a number: millions of them take half."""
    return np.int32 if most <= np.iinfo(np.int32).max else np.int64


def _codes(blocks: Blocks, columns: tuple[str, ...]) -> tuple[RowNumbers, int]:
    """Return an integer for each row, equal for equal rows, and how many there are."""
    height = sum(block.height for block in blocks)
    codes: RowNumbers = np.zeros(height, dtype=np.int32)
    most = 1
    for name, (least, largest) in zip(columns, _ends(blocks, columns), strict=True):
        if least == largest:
            continue
        width = largest - least + 1
        if most * width > _MOST_CODES:
            codes, most = _dense(codes)
        most *= width
        kind = wide_enough(most)
        codes = codes.astype(kind, copy=False)
        codes *= kind(width)
        column = pl.col(name).to_physical().cast(pl.Int64) - least
        for block, rows in with_rows(blocks):
            numbers = block.select(column.fill_null(0)).to_series().to_numpy()
            codes[rows] += numbers.astype(kind, copy=False)
    return _dense(codes) if most > _MOST_SPARSE * height else (codes, most)


def _ends(blocks: Blocks, columns: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield the least and the largest number of each column; 0 if all are null.

    A null counts as one less than the least number.
    """
    numbers = pl.col(columns).to_physical()
    known = [
        [(one.min(), one.max(), one.null_count()) for one in block.select(numbers)]
        for block in blocks
    ]
    for ends in zip(*known, strict=True):
        least = min((low for low, _, _ in ends if low is not None), default=None)
        if least is None:
            yield 0, 0
        else:
            most = max(high for _, high, _ in ends if high is not None)
            yield least - any(nulls for _, _, nulls in ends), most


def ranked(codes: RowNumbers, most: int) -> RowNumbers:
    """Number the distinct codes, which are below `most`, in their order."""
    if most > _MOST_SPARSE * codes.size:
        return _dense(codes)[0]
    present = np.zeros(most, dtype=bool)
    present[codes] = True
    rank = np.cumsum(present, dtype=wide_enough(codes.size))
    return np.asarray(rank[codes] - 1)


def _dense(codes: RowNumbers) -> tuple[RowNumbers, int]:
    distinct, numbers = np.unique(codes, return_inverse=True)
    return numbers, distinct.size
