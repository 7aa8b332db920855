"""Parquet files that are written and read by blocks of rows, of any size in all.

A block is a row group of the file, so memory does not depend on the number of rows.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import polars as pl
from polars.io.plugins import register_io_source

BLOCK_ROWS = 1 << 16
"""Rows of a block; with all columns of a measurement it takes about 30 MiB."""

FEW_ROWS = 1 << 18
"""Rows that may be in memory as a whole, with all columns."""

Schema = Mapping[str, pl.DataType | type[pl.DataType]]

_ERROR_NUMBER = re.compile(r"\(os error (\d+)\)")


def write_blocks(
    stream: BinaryIO, blocks: Iterable[pl.DataFrame], schema: Schema
) -> None:
    """Write a Parquet file block by block.

    Raises OSError if it cannot be written, and what the iterable raises. After an error
    Polars may go on writing for some milliseconds: do not write the same file again.
    """
    failures: list[BaseException] = []

    def source(*_: object) -> Iterator[pl.DataFrame]:
        try:
            yield from blocks
        except BaseException as error:  # Polars would only quote it
            failures.append(error)
            raise

    try:
        frame = register_io_source(source, schema=pl.Schema(schema))
        frame.sink_parquet(stream, row_group_size=BLOCK_ROWS)
    except pl.exceptions.PolarsError as error:
        if failures:
            raise failures[0] from None
        if number := _ERROR_NUMBER.search(str(error)):
            code = int(number[1])
            raise OSError(code, os.strerror(code), stream.name) from error
        raise


def blocks_of(file: Path | BytesIO, *columns: str) -> Iterator[pl.DataFrame]:
    """Read a Parquet file block by block, all columns or some."""
    table = pl.scan_parquet(file)
    rows = table.select(pl.len()).collect().item()
    if columns:
        table = table.select(columns)
    for first in range(0, rows, BLOCK_ROWS):
        yield table.slice(first, BLOCK_ROWS).collect()
