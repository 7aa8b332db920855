"""The samples of a check as a table: `seatrial.parquet` beside `seatrial.json`.

Checks with millions of samples write it block by block. They have no parameters.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import NoneType
from typing import get_args, get_type_hints

import polars as pl

from seatrial.model.metrics import METRICS
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.runs.row_groups import blocks_of, write_blocks

_TYPES = {float: pl.Float64, int: pl.Int64, str: pl.String}


def _kind(hint: object) -> type[pl.DataType]:
    (kind,) = {*get_args(hint)} - {NoneType} or {hint}
    return _TYPES[kind]


SCHEMA = {
    name: _kind(hint)
    for name, hint in get_type_hints(Sample).items()
    if name != "parameters"
}
"""Columns of the table: the fields of `records.Sample`, without parameters."""


def sample_block(samples: Sequence[Sample]) -> pl.DataFrame:
    """Convert samples without parameters to a block of the table."""
    return pl.DataFrame([vars(sample) for sample in samples], schema=SCHEMA)


def write_samples(file: Path, blocks: Iterable[pl.DataFrame]) -> None:
    """Write the table; ParseError for a metric or a value that is not valid."""
    with file.open("wb") as stream:
        write_blocks(stream, map(_valid, blocks), SCHEMA)


def read_samples(file: Path) -> Iterator[pl.DataFrame]:
    """Read the table block by block; ParseError if it is damaged."""
    try:
        if (schema := pl.read_parquet_schema(file)) != SCHEMA:
            raise ParseError(0, f"columns {', '.join(schema)}")
        yield from map(_valid, blocks_of(file))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ParseError(0, str(error).partition("\n")[0]) from error


def _valid(block: pl.DataFrame) -> pl.DataFrame:
    known = pl.col("metric").is_in([*METRICS]) & pl.col("value").is_finite()
    wrong = block.filter(known.not_().fill_null(True))
    if wrong.height:
        first = Sample(**wrong.row(0, named=True))
        raise ParseError(0, f"not a valid number: {first}")
    return block
