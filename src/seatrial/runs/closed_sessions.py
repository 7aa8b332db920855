"""Closed sessions of an open run, and the starts of its driver.

A session is closed if and only if `sessions/<name>.json` exists: it is written last,
as a whole, and has the checksums of all that the session left.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.errors import SeatrialError
from seatrial.limits import MANIFEST_SIZE
from seatrial.model.cases import Case
from seatrial.model.manifest import decoded
from seatrial.model.records import Measurement, as_dict
from seatrial.names import is_inside
from seatrial.plain_files import read_plain
from seatrial.runs.closed_run import case_from, read_json, sha256
from seatrial.runs.open_run import (
    SESSIONS_FOLDER,
    STARTS_FILE,
    WORK_FOLDER,
    sync,
    write_file,
)
from seatrial.runs.raw_output import INTERRUPTED

if TYPE_CHECKING:
    import polars as pl

_EVIDENCE = ("rfm_*", "seatrial.*")
"""What is kept of the stage folders of a session that was cut off."""


@dataclass(frozen=True)
class ClosedSession:
    """A closed session: its record for the manifest, and its cases."""

    record: dict[str, Any]
    cases: tuple[Case, ...]


def close_session(
    folder: Path,
    record: dict[str, Any],
    cases: Sequence[Case],
    measurements: Sequence[Measurement],
) -> ClosedSession:
    """Close a session of an open run for good; OSError if that cannot be written.

    `record` is what the manifest will say of it, above all its `name`.
    """
    from seatrial.runs.measurement_table import parquet

    name = record["name"]
    sessions = folder / SESSIONS_FOLDER
    sessions.mkdir(exist_ok=True)
    table = sessions / f"{name}.parquet"
    write_file(table, parquet(measurements))
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
            str(file.relative_to(folder)): sha256(file) for file in (table, *kept)
        },
    }
    write_file(sessions / f"{name}.json", json.dumps(content, indent=1).encode())
    return ClosedSession({**record, "cases": len(cases)}, tuple(cases))


def closed_session(folder: Path, name: str) -> ClosedSession | None:
    """Read and verify a session of an open run; None if it is not closed.

    Raises SeatrialError if a file of it is missing or has changed.
    """
    file = folder / SESSIONS_FOLDER / f"{name}.json"
    if not file.is_file():
        return None
    content = read_json(file)
    try:
        checksums = content.pop("checksums")
        cases = tuple(case_from(row) for row in content["cases"])
        if content["name"] != name or not all(map(is_inside, checksums)):
            raise ValueError("another session, or files that are not in the run")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SeatrialError(f"{file}: damaged: {error!r}") from error
    for part, expected in checksums.items():
        place = folder / part
        found = sha256(place) if place.is_file() else "missing"
        if found != expected:
            raise SeatrialError(
                f"{place}: changed after its session was closed: SHA-256 is {found}, "
                f"expected {expected}; bring the file back, or remove {file} to take "
                "the whole session again"
            )
    return ClosedSession({**content, "cases": len(cases)}, cases)


def session_table(folder: Path, name: str) -> "pl.DataFrame":
    """Read the measurements of a closed session."""
    from seatrial.runs.measurement_table import read_table

    return read_table(folder / SESSIONS_FOLDER / f"{name}.parquet")


def set_aside(folder: Path, name: str) -> list[str]:
    """Keep the files of a try of a session that was cut off.

    It moves to `raw/<name>.interrupted-<n>`. Gives the names of all such folders, for
    the record of the session.
    """
    raw, work = folder / "raw" / name, folder / WORK_FOLDER / name
    if raw.is_dir() or work.is_dir():
        number = len(_interrupted(folder, name)) + 1
        kept = raw.with_name(f"{name}{INTERRUPTED}{number}")
        for pattern in _EVIDENCE:
            for file in sorted(work.rglob(pattern)):
                if file.is_file():
                    target = raw / "-".join(file.relative_to(work).parts[:-1])
                    target.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(file, target)
        shutil.rmtree(work, ignore_errors=True)
        if raw.is_dir():
            raw.rename(kept)
    return _interrupted(folder, name)


def note_start(folder: Path, start: dict[str, Any]) -> list[dict[str, Any]]:
    """Add a start of the driver; return all of them."""
    starts = [*read_starts(folder), start]
    write_file(folder / STARTS_FILE, json.dumps(starts, indent=1).encode())
    return starts


def read_starts(folder: Path) -> list[dict[str, Any]]:
    """Read the starts of the driver of an open run."""
    file = folder / STARTS_FILE
    if not file.is_file():
        return []
    content = read_plain(file, MANIFEST_SIZE)
    return decoded(content, file, list[dict[str, Any]], "the starts of a driver")


def _interrupted(folder: Path, name: str) -> list[str]:
    raw = folder / "raw"
    found = raw.glob(f"{name}{INTERRUPTED}*") if raw.is_dir() else []
    return sorted(path.name for path in found)
