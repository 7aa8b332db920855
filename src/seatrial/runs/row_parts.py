"""Parts of a table, by the values of some columns; few rows are in memory at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import polars as pl

from seatrial.runs.row_groups import BLOCK_ROWS, FEW_ROWS

Load = Callable[[], pl.DataFrame]
"""Read the rows of a part."""

Blocks = Sequence[pl.DataFrame]
"""Rows in blocks with the same columns; none is empty."""

LoadBlocks = Callable[[], Blocks]
"""Read the rows of a part, in blocks if they are many."""

_Key = tuple[Any, ...]


def parts(table: pl.LazyFrame, *columns: str) -> list[tuple[_Key, Load]]:
    """Return the distinct values of some columns, and how to read the rows of each.

    They are in the order of their appearance. Small parts are read together: read them
    in this order, and each once.
    """
    batches = _batches(table, columns)
    return [(key, partial(batch.part, key)) for batch in batches for key in batch.keys]


def parts_in_blocks(
    table: pl.LazyFrame, *columns: str
) -> list[tuple[_Key, LoadBlocks]]:
    """Return the same as `parts`; a large part is read in blocks.

    A block takes less memory: of its columns more have one value, such as the session.
    """
    batches = _batches(table, columns)
    return [
        (key, partial(batch.blocks, key)) for batch in batches for key in batch.keys
    ]


def batches(table: pl.LazyFrame, *columns: str) -> Iterator[pl.DataFrame]:
    """Read a table, all rows with the same values of some columns at once."""
    for batch in _batches(table, columns):
        yield collected(batch.rows)


def batches_in_blocks(table: pl.LazyFrame, *columns: str) -> Iterator[Blocks]:
    """Read the same as `batches`, each in blocks: see `parts_in_blocks`."""
    for batch in _batches(table, columns):
        if blocks := [*_read(batch.rows)]:
            yield blocks


def filtered(blocks: Blocks, kept: pl.Expr) -> Blocks:
    """Return the rows that are kept."""
    return [rows for block in blocks if (rows := block.filter(kept)).height]


def distinct_texts(blocks: Blocks, column: str) -> list[str]:
    """Return the sorted values of a column; most often there is one."""
    texts: set[str] = set()
    for block in blocks:
        values = block[column]
        texts.update([values[0]] if values.n_unique() == 1 else values.unique())
    return sorted(texts)


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
            return collected(self.rows)
        if key not in self.kept:
            rows = self.rows.collect()
            self.kept.update(rows.partition_by(self.columns, as_dict=True))
        return self.kept.pop(key)

    def blocks(self, key: _Key) -> Blocks:
        """Return the rows of a part in blocks."""
        return [*_read(self.rows)] if len(self.keys) == 1 else [self.part(key)]


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


def collected(rows: pl.LazyFrame) -> pl.DataFrame:
    """Collect rows; a column with one value takes no memory.

    Most columns of a metric of a sweep are of that kind, such as check and unit.
    """
    blocks = [*_read(rows)]
    return joined(blocks) if blocks else pl.DataFrame(schema=rows.collect_schema())


def _read(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Read rows block by block; a column with one value takes no memory."""
    for block in rows.collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True):
        if block.height:
            yield _thrifty(block.rechunk(), _only_values(block))


def joined(blocks: list[pl.DataFrame]) -> pl.DataFrame:
    """Join blocks that nothing else needs; a column with one value takes no memory."""
    if len(blocks) == 1:
        return blocks[0]
    known = [_only_values(block).items() for block in blocks]
    same = dict(set(known[0]).intersection(*known[1:]))
    schema = blocks[0].schema
    varied = [name for name in schema if name not in same] or [*schema][:1]
    columns = []
    for name in varied:  # one after the other: there is no second copy of all
        parts = [block.drop_in_place(name) for block in blocks]
        columns.append(pl.concat(parts, rechunk=True))
    return _thrifty(pl.DataFrame(columns), same, schema)


def _only_values(block: pl.DataFrame) -> dict[str, Any]:
    """Return the values of columns that have only one."""
    equal = block.select(pl.all().eq_missing(pl.all().first()).all()).row(0)
    first = block.row(0, named=True)
    return {
        name: value
        for (name, value), is_only in zip(first.items(), equal, strict=True)
        if is_only
    }


def _thrifty(
    block: pl.DataFrame, values: Mapping[str, Any], schema: pl.Schema | None = None
) -> pl.DataFrame:
    """Return a block with columns that polars keeps as one value, of any height.

    Polars does so only beside columns in one piece.
    """
    schema = schema or block.schema
    only = [pl.lit(value, schema[name]).alias(name) for name, value in values.items()]
    return block.with_columns(only).select(schema.names())
