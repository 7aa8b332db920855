"""The measurements of a closed run that was verified, without all its other parts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.limits import TABLE_SIZE
from seatrial.model.manifest import MANIFEST
from seatrial.runs.closed_run import TABLE, whole_contents
from seatrial.runs.measurement_table import check_units, parse_table


@dataclass(frozen=True)
class StoredTable:
    """The table of a run (measurement_table.LOADED), read when a query needs it."""

    path: Path
    manifest: dict[str, Any]
    rows: pl.LazyFrame


def stored_table(path: Path) -> StoredTable:
    """Verify a closed run, and check its measurements; SeatrialError as `load_run`."""
    contents = whole_contents(path, {TABLE: TABLE_SIZE})
    if TABLE not in contents.kept:
        raise SeatrialError(f"{path / MANIFEST}: lists no {TABLE}; expected one")
    rows = parse_table(contents.kept[TABLE], path / TABLE, few=0)
    check_units(rows, path / TABLE, contents.manifest)
    return StoredTable(path, contents.manifest, rows)
