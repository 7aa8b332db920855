"""The table of a run's measurements: its columns, parser, checks and writer."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.limits import TABLE_DENSITY, TABLE_ROWS, TABLE_SMALL
from seatrial.model.records import COLUMNS, Measurement, as_dict
from seatrial.model.units import UNITS

_NEVER_NULL = ("session", "check", "case", "metric", "statistic", "n", "value", "unit")

_TYPES: dict[type, type[pl.DataType]] = {
    bool: pl.Boolean,
    float: pl.Float64,
    int: pl.Int64,
    str: pl.String,
}
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    name: _TYPES[kind] for name, kind in COLUMNS.items()
} | {"nodes": pl.Categorical()}
"""Columns of measurements.parquet: the fields of `records.Measurement`."""


_Schema = Mapping[str, pl.DataType | type[pl.DataType]]


def parse_table(content: bytes, file: Path) -> pl.DataFrame:
    """Parse measurements.parquet; SeatrialError as `parse_columns`."""
    return parse_columns(content, file, SCHEMA, _NEVER_NULL)


def parse_columns(
    content: bytes, file: Path, schema: _Schema, needed: Sequence[str]
) -> pl.DataFrame:
    """Parse a table; count its rows before memory is allocated for them.

    Raises SeatrialError if it is damaged, too large, or lacks a value that is needed.
    """
    try:
        table = pl.scan_parquet(io.BytesIO(content))
        rows = table.select(pl.len()).collect().item()
        TABLE_ROWS.check(rows, file)
        if rows > TABLE_SMALL:
            TABLE_DENSITY.check(-(-rows // len(content)), file)
        names = table.collect_schema().names()
        known = [name for name in schema if name in names]
        written = pl.read_parquet(io.BytesIO(content), columns=known)
        # Runs of older versions lack some columns.
        whole = pl.concat([pl.DataFrame(schema=schema), written], how="diagonal")
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise SeatrialError(f"{file}: not readable: {error}") from error
    nulls = whole.select(pl.col(needed).null_count()).row(0)
    if any(nulls):
        raise SeatrialError(
            f"{file}: a row lacks a value; expected {', '.join(needed)} in every row"
        )
    return whole


def check_units(measurements: pl.DataFrame, file: Path, *, imported: bool) -> None:
    """Refuse several units of a metric of a check, and unknown ones unless imported."""
    rows = measurements.group_by("check", "metric").agg(pl.col("unit").unique().sort())
    for check, metric, units in rows.sort("check", "metric").iter_rows():
        if len(units) > 1 or not (imported or units[0] in UNITS):
            raise SeatrialError(
                f"{file}: {metric} of {check} is in units "
                f"{', '.join(map(repr, units))}; expected one for all numbers, of "
                "those in units.py; measure or import it again"
            )


def parquet(measurements: Sequence[Measurement] | pl.DataFrame) -> bytes:
    """Return the content of measurements.parquet; a table has the columns of SCHEMA."""
    if not isinstance(measurements, pl.DataFrame):
        rows = [as_dict(row) for row in measurements]
        measurements = pl.DataFrame(rows, schema=SCHEMA)
    buffer = io.BytesIO()
    measurements.write_parquet(buffer)
    return buffer.getvalue()
