"""The measurements of a closed run that was verified, read block by block."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.limits import TABLE_SIZE
from seatrial.model.manifest import MANIFEST
from seatrial.runs.closed_run import TABLE, whole_contents
from seatrial.runs.measurement_table import check_units, table_blocks, table_rows


@dataclass(frozen=True)
class StoredTable:
    """The bytes of the table of a run; its rows are never in memory as a whole."""

    path: Path
    manifest: dict[str, Any]
    content: bytes = field(repr=False)

    def blocks(self) -> Iterator[pl.DataFrame]:
        """Parse the table block by block (measurement_table.LOADED)."""
        return table_blocks(self.content, self.path / TABLE)

    def rows(self, where: pl.Expr, *columns: str) -> pl.DataFrame:
        """Return some columns of some rows (measurement_table.LOADED)."""
        return table_rows(self.content, where, *columns)


def stored_table(path: Path) -> StoredTable:
    """Verify a closed run, and check its measurements; SeatrialError as `load_run`."""
    contents = whole_contents(path, {TABLE: TABLE_SIZE})
    if TABLE not in contents.kept:
        raise SeatrialError(f"{path / MANIFEST}: lists no {TABLE}; expected one")
    stored = StoredTable(path, contents.manifest, contents.kept[TABLE])
    imported = "imported" in stored.manifest
    check_units(stored.blocks(), path / TABLE, imported=imported)
    return stored
