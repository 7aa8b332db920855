"""Settings of the nodes in a run: their rows as a table, and their summary."""

import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from seatrial.audit.keys import KEYS, key_of
from seatrial.audit.rows import VERDICTS, Row
from seatrial.errors import SeatrialError
from seatrial.names import natural_key, node_set
from seatrial.runs.measurement_table import parse_columns

FOLDER = "settings"
"""The folder of a run with the raw outputs, one archive for each moment."""

Moment = Literal["start", "end"]
MOMENTS: tuple[Moment, ...] = ("start", "end")
"""Before the first session, and after the last one."""

_COLUMNS = tuple(name for name in Row.__annotations__ if name != "peers")
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "moment": pl.String,
    **dict.fromkeys(_COLUMNS, pl.String),
}
"""Columns of settings.parquet: those of `audit.rows.Row`, but the values of the peers,
which are the other rows of the class."""

_NEVER_NULL = ("moment", "node", "node_class", "subject", "key", "verdict")


def settings_parquet(rows: Mapping[Moment, Sequence[Row]]) -> bytes:
    """Return the content of settings.parquet."""
    columns: dict[str, list[str | None]] = {
        name: [getattr(row, name) for of in rows.values() for row in of]
        for name in _COLUMNS
    }
    moments = [moment for moment, of in rows.items() for _ in of]
    buffer = io.BytesIO()
    table = pl.DataFrame({"moment": moments, **columns}, schema=SCHEMA)
    table.write_parquet(buffer)
    return buffer.getvalue()


def parse_settings(content: bytes, file: Path) -> pl.DataFrame:
    """Parse settings.parquet; SeatrialError if it is damaged or too large."""
    table = parse_columns(content, file, SCHEMA, _NEVER_NULL)
    for column, known in (("moment", MOMENTS), ("verdict", VERDICTS)):
        foreign = table.filter(~pl.col(column).is_in(known))[column]
        if len(foreign):
            raise SeatrialError(
                f"{file}: {column} {foreign[0]!r}; expected {', '.join(known)}"
            )
    return table


def told(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows without those that only one moment left unknown.

    A node that had a job at the end of a run was read at its start.
    """
    known = table.filter(pl.col("verdict") != "unknown")
    silent = table.filter(pl.col("verdict") == "unknown")
    left = silent.join(known, on=["node", "subject", "key"], how="anti")
    return pl.concat([known, left])


def is_stable(subject: str, key: str) -> bool:
    """Return True if a setting changes only by a person, and nodes may share it."""
    kind = subject if subject in KEYS else None
    for name in [kind] if kind else ("hca", "interface"):
        try:
            found = key_of(name, key)
        except KeyError:
            continue
        return found.stable and found.alike
    return False


def summary(rows: Mapping[Moment, Sequence[Row]]) -> dict[str, dict[str, str]]:
    """Return the stable settings, by subject and key, each in one text.

    Those of the start of the run; of a node that was not read then, those of its end.
    `8 (cn[1-3]); 16 (cn4)` where nodes differ. What is unknown is left out.
    """
    values: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for moment in MOMENTS:
        for row in rows.get(moment, ()):
            if row.actual is not None and is_stable(row.subject, row.key):
                values[row.subject, row.key].setdefault(row.node, row.actual)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for subject, key in sorted(values, key=lambda pair: [*map(natural_key, pair)]):
        nodes: dict[str, list[str]] = defaultdict(list)
        for node, value in values[subject, key].items():
            nodes[value].append(node)
        texts = [f"{value} ({node_set(of)})" for value, of in sorted(nodes.items())]
        found[subject][key] = "; ".join(texts) if len(nodes) > 1 else next(iter(nodes))
    return dict(found)
