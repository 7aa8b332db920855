"""Parts of a table, by the values of some columns; few rows are in memory at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import polars as pl

from seatrial.runs.row_groups import FEW_ROWS

Load = Callable[[], pl.DataFrame]
"""Read the rows of a part."""

_Key = tuple[Any, ...]


def parts(table: pl.LazyFrame, *columns: str) -> list[tuple[_Key, Load]]:
    """Return the distinct values of some columns, and how to read the rows of each.

    They are in the order of their appearance. Small parts are read together: read them
    in this order, and each once.
    """
    batches = _batches(table, columns)
    return [(key, partial(batch.part, key)) for batch in batches for key in batch.keys]


def batches(table: pl.LazyFrame, *columns: str) -> Iterator[pl.DataFrame]:
    """Read a table, all rows with the same values of some columns at once."""
    for batch in _batches(table, columns):
        yield batch.rows.collect()


@dataclass(frozen=True)
class _Batch:
    """Parts of a table that are read together; `kept` are those not yet asked for."""

    rows: pl.LazyFrame
    columns: Sequence[str]
    keys: Sequence[_Key]
    kept: dict[_Key, pl.DataFrame] = field(default_factory=dict)

    def part(self, key: _Key) -> pl.DataFrame:
        """Return the rows of a part."""
        if len(self.keys) == 1:
            return self.rows.collect()
        if key not in self.kept:
            rows = self.rows.collect()
            self.kept.update(rows.partition_by(self.columns, as_dict=True))
        return self.kept.pop(key)


def _batches(table: pl.LazyFrame, columns: Sequence[str]) -> Iterator[_Batch]:
    """Cut a table between parts where it would have more than `FEW_ROWS` rows."""
    of_part = pl.struct(columns).hash()
    counted = table.group_by(columns, maintain_order=True).len()
    known = counted.collect(engine="streaming").with_columns(hash=of_part)
    ends = [*_ends(known["len"])]
    for first, end in zip([0, *ends], ends, strict=False):
        own = known[first:end]
        rows = table
        if len(ends) > 1:
            rows = table.filter(of_part.is_in(own["hash"].implode()))
        yield _Batch(rows, columns, own.select(columns).rows())


def _ends(counts: Iterable[int]) -> Iterator[int]:
    """Yield the number of the part after the last one of each batch."""
    number = rows = 0
    for number, count in enumerate(counts):
        if rows and rows + count > FEW_ROWS:
            yield number
            rows = 0
        rows += count
    yield number + 1
