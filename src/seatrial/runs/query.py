"""SQL over all closed runs: DuckDB on their Parquet files, for reading only.

Nothing is verified here but that the manifests can be read and that no run is there
twice: `seatrial verify` compares checksums, and every judgement and export does.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from seatrial.errors import SeatrialError
from seatrial.model.records import COLUMNS
from seatrial.runs.closed_run import MANIFEST

Manifests = Mapping[Path, Mapping[str, Any]]

_TYPES = {bool: "BOOLEAN", float: "DOUBLE", int: "BIGINT", str: "VARCHAR"}

_RUNS = {
    "system": "VARCHAR",
    "run": "VARCHAR",
    "campaign": "VARCHAR",
    "started": "TIMESTAMP",
    "ended": "TIMESTAMP",
    "partial": "BOOLEAN",
    "replay": "BOOLEAN",
    "imported": "VARCHAR",
    "seatrial": "VARCHAR",
    "git_commit": "VARCHAR",
    "reframe": "VARCHAR",
    "slurm": "VARCHAR",
    "path": "VARCHAR",
}

_CASES = {
    "session": "VARCHAR",
    "repeat": "BIGINT",
    "check": "VARCHAR",
    "case": "VARCHAR",
    "partition": "VARCHAR",
    "environment": "VARCHAR",
    "parameters": "JSON",
    "result": "VARCHAR",
    "phase": "VARCHAR",
    "reason": "VARCHAR",
    "job_id": "VARCHAR",
    "nodes": "VARCHAR[]",
    "start_time": "DOUBLE",
    "elapsed_s": "DOUBLE",
    "payload_s": "DOUBLE",
    "raw": "VARCHAR",
    "declared": "VARCHAR[]",
    "replay": "BOOLEAN",
    "attempt": "BIGINT",
    "start_crashes": "JSON",
    "node_events": "JSON",
}

_GLOB = re.compile(r"[*?\[\]]")
_PLACES = ("node", "source", "destination")
_NOT_SQL = "expected one SELECT, and nothing that writes or opens files"


def choose(
    manifests: Manifests,
    *,
    systems: Sequence[str] = (),
    campaigns: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    replays: bool = False,
) -> dict[Path, Mapping[str, Any]]:
    """Choose runs by system, campaign and start (since <= started < until).

    A replay of recorded output is no measurement: left out unless asked for.
    """
    return {
        path: manifest
        for path, manifest in manifests.items()
        if (not systems or manifest.get("system") in systems)
        and (not campaigns or manifest.get("campaign") in campaigns)
        and (replays or not manifest.get("replay"))
        and (since is None or since <= started(path, manifest))
        and (until is None or started(path, manifest) < until)
    }


def started(path: Path, manifest: Mapping[str, Any]) -> datetime:
    """Return the start of a run, with its zone; SeatrialError if it has none."""
    moment = _moment(manifest.get("started"))
    if moment is None:
        raise SeatrialError(
            f"{path / MANIFEST}: started is missing; expected the time of its start"
        )
    return moment.replace(tzinfo=UTC)


def database(manifests: Manifests, *, replays: bool = False) -> Any:
    """Open a database in memory with the views measurements, cases and runs.

    It can read the folders of these runs and nothing else, write nothing, and load no
    extension. Raises SeatrialError if a Parquet file is damaged.
    """
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": "",
        }
    )
    for path in manifests:
        if _GLOB.search(str(path)):
            raise SeatrialError(
                f"{path}: DuckDB takes this path for a pattern; expected a path "
                "without *, ?, [ and ]; rename the folder"
            )
    folders = _list(str(path) for path in manifests)
    connection.execute(f"SET allowed_directories = {folders}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    _create_runs(connection, manifests)
    measured = "" if replays else "WHERE replay IS NOT TRUE"
    types = {name: _TYPES[kind] for name, kind in COLUMNS.items()}
    files = _list(str(path / "measurements.parquet") for path in manifests)
    read = f"read_parquet({files}, union_by_name = true)"
    _create_view(
        connection, "measurements", types, read if manifests else None, measured
    )
    files = _list(str(path / "cases.json") for path in manifests)
    kinds = ", ".join(f"'{name}': '{kind}'" for name, kind in _CASES.items())
    read = (
        "(SELECT runs.system, runs.run, rows.* EXCLUDE (filename) FROM read_json("
        f"{files}, columns = {{{kinds}}}, format = 'array', filename = true) AS rows "
        "JOIN runs ON rows.filename = runs.path || '/cases.json')"
    )
    types = {"system": "VARCHAR", "run": "VARCHAR", **_CASES}
    _create_view(connection, "cases", types, read if manifests else None, measured)
    return connection


def select(
    filters: Mapping[str, Sequence[str | int]],
    nodes: Sequence[str] = (),
    where: str | None = None,
    limit: int | None = None,
) -> tuple[str, list[str | int]]:
    """Write the SELECT of some measurements, and its parameters.

    `filters`: column to the values that it may have. `nodes`: names of nodes of which
    a number tells: those of its place, else those of its allocation. `where`: more SQL.
    Rows come in the order of the runs.
    """
    conditions, parameters = ["true"], list[str | int]()
    for column, values in filters.items():
        conditions.append(f'"{column}" IN ({_marks(values)})')
        parameters += values
    if nodes:
        places = [f"{column} IN ({_marks(nodes)})" for column in _PLACES]
        shared = f"list_has_any(string_split(nodes, ' '), [{_marks(nodes)}])"
        placeless = f"coalesce({', '.join(_PLACES)}) IS NULL AND {shared}"
        conditions.append(f"({' OR '.join(places)} OR ({placeless}))")
        parameters += [*nodes] * (len(_PLACES) + 1)
    if where is not None:
        conditions.append(f"(\n{where}\n)")  # a comment in it ends with its line
    most = f" LIMIT {limit}" if limit else ""
    return (
        f"SELECT * FROM measurements WHERE {' AND '.join(conditions)}{most}",
        parameters,
    )


def execute(
    connection: Any, sql: str, parameters: Sequence[str | int] = ()
) -> tuple[list[str], Any]:
    """Run one SELECT: the names of its columns, and a cursor for `fetchmany`.

    Raises SeatrialError if it is something else, or if a file is damaged.
    """
    try:
        statements = connection.extract_statements(sql)
        kinds = [str(statement.type) for statement in statements]
        if kinds != ["StatementType.SELECT"]:
            found = ", ".join(kind.partition(".")[2] for kind in kinds) or "nothing"
            raise SeatrialError(f"SQL: found {found}; {_NOT_SQL}")
        cursor = connection.execute(statements[0], [*parameters])
    except duckdb.Error as error:
        raise _failed(error) from error
    return [column[0] for column in cursor.description], cursor


def fetch(cursor: Any, number: int) -> list[tuple[Any, ...]]:
    """Fetch the next rows; SeatrialError if a file turns out to be damaged."""
    try:
        rows: list[tuple[Any, ...]] = cursor.fetchmany(number)
    except duckdb.Error as error:
        raise _failed(error) from error
    return rows


def _create_runs(connection: Any, manifests: Manifests) -> None:
    rows = []
    for path, manifest in manifests.items():
        software = manifest.get("software") or {}
        imported = manifest.get("imported") or {}
        rows.append(
            {
                **{key: manifest.get(key) for key in ("system", "run", "campaign")},
                "started": _moment(manifest.get("started")),
                "ended": _moment(manifest.get("ended")),
                "partial": bool(manifest.get("partial")),
                "replay": bool(manifest.get("replay")),
                "imported": imported.get("source"),
                **{key: software.get(key) for key in ("seatrial", "git_commit")},
                **{key: software.get(key) for key in ("reframe", "slurm")},
                "path": str(path),
            }
        )
    struct = ", ".join(f"{name} {kind}" for name, kind in _RUNS.items())
    connection.execute(
        f"CREATE TABLE runs AS SELECT unnest(?::STRUCT({struct})[], recursive := true)",
        [rows],
    )


def _create_view(
    connection: Any, name: str, types: Mapping[str, str], read: str | None, where: str
) -> None:
    """Create a view with all columns of today; older files may lack some."""
    columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
    connection.execute(f"CREATE TABLE no_{name} ({columns})")
    rows = f"no_{name}"
    if read:
        rows = f"(FROM {rows} UNION ALL BY NAME SELECT * FROM {read})"
    try:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {rows} {where}")
    except duckdb.Error as error:
        raise _failed(error) from error


def _failed(error: duckdb.Error) -> SeatrialError:
    text = str(error).strip()
    if isinstance(error, duckdb.PermissionException):
        return SeatrialError(f"SQL: {text}\n{_NOT_SQL}")
    if isinstance(error, (duckdb.IOException, duckdb.InvalidInputException)):
        first = text.partition("\n")[0]
        return SeatrialError(
            f"{first}; `seatrial verify` names what was changed; bring the file back "
            "from a copy, or move its run elsewhere"
        )
    return SeatrialError(f"SQL: {text}")


def _moment(text: str | None) -> datetime | None:
    """Read a time of a manifest, as UTC without a zone."""
    if text is None:
        return None
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


def _list(texts: Any) -> str:
    quoted = (text.replace("'", "''") for text in texts)
    return "[" + ", ".join(f"'{text}'" for text in quoted) + "]"


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" for _ in values)
