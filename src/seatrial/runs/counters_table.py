"""Counters of the ports in a run: a row for each port and session."""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from seatrial.fabric.port_growth import PortGrowth
from seatrial.fabric.quantities import QUANTITIES
from seatrial.runs.measurement_table import parse_columns

CHECK = "PortCounters"
"""The check of measurements and findings that come from counters; no job runs it."""

CONFIDENCE = 0.95
"""Confidence of the bounds in the table."""

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(("session", "node", "node_class", "port", "source"), pl.String),
    **dict.fromkeys(("start_time", "seconds"), pl.Float64),
    **dict.fromkeys(("bits_received", "bits_sent", *QUANTITIES), pl.Int64),
    **dict.fromkeys(("errors", "bit_errors"), pl.Int64),
    "bit_error_rate_below": pl.Float64,
    **dict.fromkeys(("cleared", "wrapped", "full", "missing"), pl.String),
}
"""Columns of counters.parquet: quantities that a port does not count are null."""

_NEVER_NULL = ("session", "node", "port", "missing")
_SEPARATOR = ", "
_LISTS = ("cleared", "wrapped", "full")


def counters_table(
    growths: Iterable[PortGrowth], session: str, class_of: Mapping[str, str]
) -> pl.DataFrame:
    """Return the rows of a session; `class_of` has the class of each node."""
    rows = [_row(one, session, class_of.get(one.node)) for one in growths]
    return pl.DataFrame(rows, schema=SCHEMA)


def _row(one: PortGrowth, session: str, node_class: str | None) -> dict[str, Any]:
    lists = {name: _SEPARATOR.join(getattr(one, name)) for name in _LISTS}
    return {
        **{name: getattr(one, name) for name in ("node", "port", "source", "missing")},
        **{name: getattr(one, name) for name in ("start_time", "seconds")},
        **{name: getattr(one, name) for name in ("bits_received", "bits_sent")},
        **one.counts,
        **lists,
        "session": session,
        "node_class": node_class,
        "errors": one.errors,
        "bit_errors": one.bit_errors,
        "bit_error_rate_below": one.bit_error_rate_below(CONFIDENCE),
    }


def is_exact(row: Mapping[str, Any], quantities: Iterable[str]) -> bool:
    """Return True if a row has all that happened, not only the least of it."""
    full = row["full"].split(_SEPARATOR)
    return not row["cleared"] and not any(name in full for name in quantities)


def partition_of(system: str, node_class: str | None) -> str:
    """Return the partition of the measurements of a node; '' for a switch."""
    return f"{system}:{node_class}" if node_class else ""


def counters_parquet(table: pl.DataFrame) -> bytes:
    """Return the content of counters.parquet."""
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def parse_counters(content: bytes, file: Path) -> pl.DataFrame:
    """Parse counters.parquet; SeatrialError if it is damaged or too large."""
    return parse_columns(content, file, SCHEMA, _NEVER_NULL)
