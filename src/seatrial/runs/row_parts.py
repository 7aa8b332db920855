"""Parts of a table, by the values of some columns; few rows are in memory at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import polars as pl

from seatrial.runs.row_groups import BLOCK_ROWS, FEW_ROWS

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
        yield _collected(batch.rows)


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
            return _collected(self.rows)
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


def _collected(rows: pl.LazyFrame) -> pl.DataFrame:
    """Collect rows block by block; a column with one value takes no memory.

    Most columns of a metric of a sweep are of that kind, such as check and unit.
    """
    schema = rows.collect_schema()
    blocks, known = [], []
    for block in rows.collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True):
        if block.height:
            only = _only_values(block)
            blocks.append(block.with_columns(_literals(only, schema)))
            known.append(only.items())
    if len(blocks) < 2:
        return blocks[0] if blocks else pl.DataFrame(schema=schema)
    same = dict(set(known[0]).intersection(*known[1:]))
    varied = [name for name in schema if name not in same] or [*schema][:1]
    joined = []
    for name in varied:  # one after the other: there is no second copy of all
        parts = [block.drop_in_place(name) for block in blocks]
        joined.append(pl.concat(parts, rechunk=True))
    # Polars keeps a literal as one value only beside columns in one piece.
    whole = pl.DataFrame(joined).with_columns(_literals(same, schema))
    return whole.select(schema.names())


def _only_values(block: pl.DataFrame) -> dict[str, Any]:
    """Return the values of columns that have only one."""
    equal = block.select(pl.all().eq_missing(pl.all().first()).all()).row(0)
    first = block.row(0, named=True)
    return {
        name: value
        for (name, value), is_only in zip(first.items(), equal, strict=True)
        if is_only
    }


def _literals(values: Mapping[str, Any], schema: pl.Schema) -> Iterator[pl.Expr]:
    """Yield columns that polars keeps as one value, of any number of rows."""
    for name, value in values.items():
        yield pl.lit(value, schema[name]).alias(name)
