"""Closed sessions of an open run, and the starts of its driver.

A session is closed if and only if `sessions/<name>.json` exists: it is written last,
as a whole, and has the checksums of all files of the session.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.limits import CASES_SIZE, MANIFEST_SIZE, TABLE_SIZE
from seatrial.model.cases import Case
from seatrial.model.manifest import decoded
from seatrial.model.records import as_dict
from seatrial.names import is_inside
from seatrial.plain_files import read_plain, sha256_plain
from seatrial.runs.open_run import (
    SESSIONS_FOLDER,
    STARTS_FILE,
    WORK_FOLDER,
    new_file,
    sync,
    write_file,
)
from seatrial.runs.raw_output import INTERRUPTED

if TYPE_CHECKING:
    import polars as pl

_EVIDENCE = ("rfm_*", "seatrial.*")
"""Files to keep from the stage folders of an interrupted session."""


class _Stored(msgspec.Struct):
    """The checked keys of the file of a session."""

    name: str
    cases: tuple[Case, ...]
    checksums: dict[str, str]


@dataclass(frozen=True)
class ClosedSession:
    """A closed session: record for the manifest, cases, checksums of its files."""

    record: dict[str, Any]
    cases: tuple[Case, ...]
    checksums: Mapping[str, str]


def close_session(
    folder: Path,
    record: dict[str, Any],
    cases: Sequence[Case],
    measurements: "Iterable[pl.DataFrame]",
    counters: bytes | None = None,
) -> None:
    """Close a session of an open run for good; OSError if that cannot be written.

    `record` goes into the manifest; it needs `name` and `interrupted`. `measurements`
    are blocks with the columns of measurements.parquet; `counters` is a table of ports.
    """
    from seatrial.runs.measurement_table import write_table

    name = record["name"]
    sessions = folder / SESSIONS_FOLDER
    sessions.mkdir(exist_ok=True)
    table = sessions / f"{name}.parquet"
    with new_file(table) as stream:
        write_table(stream, measurements)
    tables = [table]
    if counters is not None:
        tables.append(_counters_file(folder, name))
        write_file(tables[-1], counters)
    kept = [
        file
        for part in (name, *record["interrupted"])
        for file in sorted((folder / "raw" / part).rglob("*"))
        if file.is_file()
    ]
    for file in kept:
        sync(file)
    content = {
        **record,
        "cases": [as_dict(case) for case in cases],
        "checksums": {
            str(file.relative_to(folder)): sha256_plain(file)
            for file in (*tables, *kept)
        },
    }
    write_file(sessions / f"{name}.json", json.dumps(content, indent=1).encode())
    shutil.rmtree(tables_of(folder / WORK_FOLDER / name), ignore_errors=True)


def tables_of(work: Path) -> Path:
    """Return the folder of the tables of samples of a session with this work folder."""
    return work.with_name(f"{work.name}.tables")


def read_session(folder: Path, name: str) -> ClosedSession | None:
    """Read a session of an open run without verifying it; None if it is not closed.

    Raises SeatrialError if its file is damaged.
    """
    file = folder / SESSIONS_FOLDER / f"{name}.json"
    if not file.is_file():
        return None
    content = read_plain(file, CASES_SIZE)
    stored = decoded(content, file, _Stored, "a closed session")
    if stored.name != name or not all(map(is_inside, stored.checksums)):
        raise SeatrialError(
            f"{file}: damaged: session {stored.name!r}; expected {name!r}, and files "
            "in the run"
        )
    record = msgspec.json.decode(content) | {"cases": len(stored.cases)}
    del record["checksums"]
    return ClosedSession(record, stored.cases, stored.checksums)


def closed_session(folder: Path, name: str) -> ClosedSession | None:
    """Read and verify a session of an open run; None if it is not closed.

    Raises SeatrialError if a file of it is missing or has changed.
    """
    session = read_session(folder, name)
    for part, expected in session.checksums.items() if session else ():
        file = folder / part
        digest = sha256_plain(file) if file.is_file() else "missing"
        if digest != expected:
            raise SeatrialError(
                f"{file}: changed after its session was closed: SHA-256 is {digest}, "
                f"expected {expected}; bring the file back, or take the whole session "
                f"again: remove {folder / SESSIONS_FOLDER / name}.json"
            )
    return session


def session_blocks(folder: Path, name: str) -> "Iterator[pl.DataFrame]":
    """Read the measurements of a closed session, block by block."""
    import polars as pl

    from seatrial.runs.measurement_table import SCHEMA
    from seatrial.runs.row_groups import blocks_of

    empty = pl.DataFrame(schema=SCHEMA)
    for block in blocks_of(folder / SESSIONS_FOLDER / f"{name}.parquet"):
        # Sessions of older versions lack some columns.
        yield pl.concat([empty, block], how="diagonal").select(SCHEMA.keys())


def session_counters(folder: Path, name: str) -> bytes | None:
    """Read the table of ports of a closed session; None if it has none."""
    file = _counters_file(folder, name)
    return read_plain(file, TABLE_SIZE) if file.is_file() else None


def _counters_file(folder: Path, name: str) -> Path:
    return folder / SESSIONS_FOLDER / f"{name}.counters.parquet"


def set_aside(folder: Path, name: str) -> list[str]:
    """Move the files of an interrupted session to `raw/<name>.interrupted-<n>`.

    Returns the names of all such folders, for the record of the session.
    """
    raw, work = folder / "raw" / name, folder / WORK_FOLDER / name
    interrupted = [path.name for path in raw.parent.glob(f"{name}{INTERRUPTED}*")]
    if raw.is_dir() or work.is_dir():
        for pattern in _EVIDENCE:
            for file in sorted(work.rglob(pattern)):
                if file.is_file():
                    target = raw / "-".join(file.relative_to(work).parts[:-1])
                    target.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(file, target)
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(tables_of(work), ignore_errors=True)
        if raw.is_dir():
            kept = f"{name}{INTERRUPTED}{len(interrupted) + 1}"
            raw.rename(raw.with_name(kept))
            interrupted.append(kept)
    return sorted(interrupted)


def note_start(folder: Path, start: dict[str, Any]) -> None:
    """Add a start of the driver."""
    starts = [*read_starts(folder), start]
    write_file(folder / STARTS_FILE, json.dumps(starts, indent=1).encode())


def read_starts(folder: Path) -> list[dict[str, Any]]:
    """Read the starts of the driver of an open run."""
    file = folder / STARTS_FILE
    if not file.is_file():
        return []
    content = read_plain(file, MANIFEST_SIZE)
    return decoded(content, file, list[dict[str, Any]], "the starts of a driver")
