"""SQL over all closed runs: DuckDB on their Parquet files, for reading only.

Checksums are not compared here: `seatrial verify`, judgements and exports do that.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from seatrial.errors import SeatrialError
from seatrial.model.cases import Case, NodeEvent
from seatrial.model.manifest import MANIFEST
from seatrial.model.records import COLUMNS

Manifests = Mapping[Path, Mapping[str, Any]]

_TYPES: dict[Any, str] = {
    bool: "BOOLEAN",
    float: "DOUBLE",
    float | None: "DOUBLE",
    int: "BIGINT",
    tuple[str, ...]: "VARCHAR[]",
    dict[str, Any]: "JSON",
    tuple[dict[str, Any], ...]: "JSON",
    tuple[NodeEvent, ...]: "JSON",
}
"""DuckDB's types of the fields of records; all others are texts."""

_CASES = {field.name: _TYPES.get(field.type, "VARCHAR") for field in fields(Case)}
_MEASUREMENTS = {name: _TYPES.get(kind, "VARCHAR") for name, kind in COLUMNS.items()}
_SOFTWARE = ("seatrial", "git_commit", "reframe", "slurm")
_RUNS = {
    **dict.fromkeys(("system", "run", "campaign"), "VARCHAR"),
    **dict.fromkeys(("started", "ended"), "TIMESTAMP"),
    **dict.fromkeys(("partial", "replay"), "BOOLEAN"),
    **dict.fromkeys(("imported", *_SOFTWARE, "path"), "VARCHAR"),
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

    Replays of recorded output are no measurements: left out by default.
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
    """Return the start of a run with its zone; SeatrialError without one."""
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
    rows = [_run_row(path, manifest) for path, manifest in manifests.items()]
    connection.execute(
        f"CREATE TABLE runs AS SELECT unnest(?::STRUCT({_columns(_RUNS)})[], "
        "recursive := true)",
        [rows],
    )
    chosen = "" if replays else "WHERE replay IS NOT TRUE"
    tables = _list(str(path / "measurements.parquet") for path in manifests)
    read = f"read_parquet({tables}, union_by_name = true)" if manifests else ""
    _create_view(connection, "measurements", _MEASUREMENTS, read, chosen)
    lists = _list(str(path / "cases.json") for path in manifests)
    kinds = ", ".join(f"'{name}': '{kind}'" for name, kind in _CASES.items())
    read = (
        "(SELECT runs.system, runs.run, rows.* EXCLUDE (filename) FROM read_json("
        f"{lists}, columns = {{{kinds}}}, format = 'array', filename = true) AS rows "
        "JOIN runs ON rows.filename = runs.path || '/cases.json')"
    )
    types = {"system": "VARCHAR", "run": "VARCHAR", **_CASES}
    _create_view(connection, "cases", types, read if manifests else "", chosen)
    return connection


def select(
    filters: Mapping[str, Sequence[str | int]],
    nodes: Sequence[str] = (),
    where: str | None = None,
    limit: int | None = None,
) -> tuple[str, list[str | int]]:
    """Write the SELECT of some measurements, and its parameters.

    `filters`: accepted values by column. `nodes`: nodes of the place of a number, else
    of its allocation. `where`: more SQL. Rows come in the order of the runs.
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
    chosen = f"SELECT * FROM measurements WHERE {' AND '.join(conditions)}"
    return f"{chosen}{most}", parameters


def execute(
    connection: Any, sql: str, parameters: Sequence[str | int] = ()
) -> tuple[list[str], Any]:
    """Run one SELECT; return the names of its columns, and a cursor for `fetchmany`.

    Raises SeatrialError for any other statement, or if a file is damaged.
    """
    try:
        statements = connection.extract_statements(sql)
        kinds = [str(statement.type) for statement in statements]
        if kinds != ["StatementType.SELECT"]:
            types = ", ".join(kind.partition(".")[2] for kind in kinds) or "nothing"
            raise SeatrialError(f"SQL: found {types}; {_NOT_SQL}")
        cursor = connection.execute(statements[0], [*parameters])
    except duckdb.Error as error:
        raise _failed(error) from error
    return [column[0] for column in cursor.description], cursor


def fetch(cursor: Any, number: int) -> list[tuple[Any, ...]]:
    """Fetch the next rows; SeatrialError if a file turns out to be damaged."""
    try:
        return list(cursor.fetchmany(number))
    except duckdb.Error as error:
        raise _failed(error) from error


def _run_row(path: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    software = manifest.get("software") or {}
    return {
        **{key: manifest.get(key) for key in ("system", "run", "campaign")},
        **{key: _moment(manifest.get(key)) for key in ("started", "ended")},
        **{key: bool(manifest.get(key)) for key in ("partial", "replay")},
        "imported": (manifest.get("imported") or {}).get("source"),
        **{key: software.get(key) for key in _SOFTWARE},
        "path": str(path),
    }


def _create_view(
    connection: Any, name: str, types: Mapping[str, str], read: str, where: str
) -> None:
    """Create a view with all columns of today; older files may lack some."""
    connection.execute(f"CREATE TABLE no_{name} ({_columns(types)})")
    rows = f"no_{name}"
    if read:
        rows = f"(FROM {rows} UNION ALL BY NAME SELECT * FROM {read})"
    try:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {rows} {where}")
    except duckdb.Error as error:
        raise _failed(error) from error


def _columns(types: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}" {kind}' for name, kind in types.items())


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


def _list(texts: Iterable[str]) -> str:
    quoted = (text.replace("'", "''") for text in texts)
    return "[" + ", ".join(f"'{text}'" for text in quoted) + "]"


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" for _ in values)
