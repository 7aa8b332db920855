"""The table of a run's measurements: its columns, parser, checks and writer."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import polars as pl
from polars.io.plugins import register_io_source

from seatrial.errors import SeatrialError
from seatrial.limits import TABLE_DENSITY, TABLE_ROWS, TABLE_SMALL
from seatrial.model.metrics import METRICS, own_metrics_of
from seatrial.model.records import COLUMNS, Measurement, as_dict
from seatrial.model.units import UNITS
from seatrial.runs.row_groups import FEW_ROWS, blocks_of, write_blocks

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

LOADED: dict[str, pl.DataType | type[pl.DataType]] = {
    name: pl.Categorical() if kind == pl.String else kind
    for name, kind in SCHEMA.items()
}
"""Columns in memory: a sweep has millions of rows with a few thousand texts."""


_Schema = Mapping[str, pl.DataType | type[pl.DataType]]


def parse_table(content: bytes, file: Path, few: int = FEW_ROWS) -> pl.LazyFrame:
    """Check measurements.parquet, see `LOADED`; SeatrialError as `parse_columns`.

    A table of a `few` rows stays in memory. Of a larger one, a query reads the columns
    that it needs, block by block.
    """
    kept: list[pl.DataFrame] = []
    rows = 0
    for block in _parsed_blocks(content, file, LOADED, _NEVER_NULL):
        rows += block.height
        kept = [*kept, block] if rows <= few else []
    return pl.concat(kept).lazy() if kept else _scanned(content, file)


def _scanned(content: bytes, file: Path) -> pl.LazyFrame:
    """Return a table that was checked, to be read block by block.

    Its bytes are those that were checked, in a file without a name where that is
    possible: not in memory, and no other process can change them.
    """
    kept = _unnamed(content) or content

    def source(
        columns: list[str] | None, where: pl.Expr | None, first: int | None, _: object
    ) -> Iterator[pl.DataFrame]:
        schema = {name: LOADED[name] for name in columns or LOADED}
        for block in _parsed_blocks(kept, file, schema, ()):
            rows = block.head(block.height if first is None else first)
            first = None if first is None else first - rows.height
            yield rows if where is None else rows.filter(where)

    return register_io_source(source, schema=pl.Schema(LOADED))


def _unnamed(content: bytes) -> BinaryIO | None:
    """Write bytes to a file without a name; None if that is not possible."""
    try:
        stream = TemporaryFile(prefix="seatrial-")  # noqa: SIM115 (read later)
        stream.write(content)
        stream.flush()
    except OSError:
        return None
    return stream if _path_of(stream).exists() else None


def _path_of(stream: BinaryIO) -> Path:
    """Return a path of an open file of this process (proc(5))."""
    return Path("/proc/self/fd", str(stream.fileno()))


def parse_columns(
    content: bytes, file: Path, schema: _Schema, needed: Sequence[str]
) -> pl.DataFrame:
    """Parse a table; count its rows before memory is allocated for them.

    Raises SeatrialError if it is damaged, too large, or lacks a value that is needed.
    """
    return pl.concat(_parsed_blocks(content, file, schema, needed))


def _parsed_blocks(
    content: bytes | BinaryIO, file: Path, schema: _Schema, needed: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Yield an empty table with all columns, then the rows of a table in blocks."""
    empty = pl.DataFrame(schema=schema)
    yield empty
    source: io.BytesIO | Path
    if isinstance(content, bytes):
        source, size = io.BytesIO(content), len(content)
    else:
        source = _path_of(content)
        size = source.stat().st_size
    try:
        table = pl.scan_parquet(source)
        rows = table.select(pl.len()).collect().item()
        TABLE_ROWS.check(rows, file)
        if rows > TABLE_SMALL:
            TABLE_DENSITY.check(-(-rows // size), file)
        written = table.collect_schema()
        known = [name for name in schema if name in written]
        texts: dict[Any, Any] = {
            name: pl.Categorical
            for name in known
            if written[name] == pl.String and schema[name] == pl.Categorical
        }
        for block in blocks_of(source, *known):
            # Runs of older versions lack some columns.
            whole = pl.concat([empty, block.cast(texts)], how="diagonal")
            if any(whole[name].null_count() for name in needed):
                raise SeatrialError(
                    f"{file}: a row lacks a value; expected {', '.join(needed)} in "
                    "every row"
                )
            yield whole.select(schema.keys())
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise SeatrialError(f"{file}: not readable: {error}") from error


_OF_UNITS = ("check", "metric", "unit")


def check_units(table: pl.LazyFrame, file: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse several units of a metric of a check, and unknown ones.

    An imported run may have any unit. A metric of a site's own check has the unit that
    the manifest names.
    """
    imported, own = "imported" in manifest, own_metrics_of(manifest)
    known = table.select(_OF_UNITS).unique().collect(engine="streaming")
    rows = known.group_by("check", "metric").agg(pl.col("unit").unique().sort())
    for check, metric, units in rows.sort("check", "metric").iter_rows():
        expected = [own[metric].unit] if metric in own else UNITS
        if len(units) > 1 or not (imported or units[0] in expected):
            raise SeatrialError(
                f"{file}: {metric} of {check} is in units "
                f"{', '.join(map(repr, units))}; expected one for all numbers, of "
                "those in units.py; measure or import it again"
            )


def table_of(measurements: Sequence[Measurement]) -> pl.DataFrame:
    """Return measurements as a table.

    Names of allocations are long: each text is converted once, not once per row.
    """
    of_row = pl.DataFrame(
        [as_dict(replace(row, nodes="")) for row in measurements], schema=SCHEMA
    )
    numbers: dict[str, int] = {}
    at = [numbers.setdefault(row.nodes, len(numbers)) for row in measurements]
    texts = pl.Series("nodes", [*numbers], SCHEMA["nodes"])
    return of_row.with_columns(texts.gather(pl.Series(at, dtype=pl.UInt32)))


def sample_rows(
    samples: Iterable[pl.DataFrame], same: Mapping[str, Any]
) -> Iterator[pl.DataFrame]:
    """Return the measurements of a table of samples, block by block.

    `same` has the common columns of their case; its start counts for samples without
    one of their own.
    """
    shared = {name: value for name, value in same.items() if name != "start_time"}
    constants = [
        pl.lit(value, SCHEMA[name]).alias(name) for name, value in shared.items()
    ]
    start = pl.lit(same["start_time"], pl.Float64)
    for block in samples:
        names = block["metric"].unique()
        metrics = pl.DataFrame(
            [(name, METRICS[name].unit, METRICS[name].direction) for name in names],
            dict.fromkeys(("metric", "unit", "direction"), pl.String),
            orient="row",
        )
        whole = block.join(metrics, on="metric", how="left", maintain_order="left")
        whole = whole.with_columns(
            *constants, start_time=pl.col("start_time").fill_null(start)
        )
        yield whole.select(SCHEMA.keys())


def write_table(stream: BinaryIO, measurements: Iterable[pl.DataFrame]) -> None:
    """Write measurements.parquet block by block; OSError if that fails."""
    write_blocks(stream, measurements, SCHEMA)
