"""A closed run: read, find and check the immutable folder of one campaign."""

import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from seatrial.errors import SeatrialError
from seatrial.paths import results_dir
from seatrial.records import Case
from seatrial.signature import SIGNATURE, check_signature
from seatrial.units import UNITS

OPEN_SUFFIX = ".open"
MANIFEST = "manifest.json"
NEWEST_SCHEMA = 2
"""Schema of the manifests that are written today; all older ones can be read."""

_MOST_AHEAD_S = 3600.0
"""How far clocks may differ before a run counts as one of the future."""

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run": pl.String,
    "session": pl.String,
    "block": pl.String,
    "repeat": pl.Int64,
    "system": pl.String,
    "partition": pl.String,
    "environment": pl.String,
    "check": pl.String,
    "case": pl.String,
    "parameters": pl.String,
    "job_id": pl.String,
    "nodes": pl.Categorical(),
    "node": pl.String,
    "socket": pl.Int64,
    "source": pl.String,
    "destination": pl.String,
    "hca": pl.String,
    "round": pl.Int64,
    "metric": pl.String,
    "size_bytes": pl.Int64,
    "statistic": pl.String,
    "n": pl.Int64,
    "value": pl.Float64,
    "unit": pl.String,
    "direction": pl.String,
    "start_time": pl.Float64,
    "replay": pl.Boolean,
    "attempt": pl.Int64,
}
"""Columns of measurements.parquet: the fields of `records.Measurement`."""


@dataclass(frozen=True)
class Run:
    """A closed run: its manifest, its cases, and every number taken."""

    path: Path
    manifest: dict[str, Any]
    cases: tuple[Case, ...]
    measurements: pl.DataFrame

    def columns(self, *names: str) -> pl.DataFrame:
        """Give some columns of the measurements, their texts as categories.

        A sweep has millions of rows with a few thousand texts in them: to compare
        these is slow, to compare their numbers is not.
        """
        return self.measurements.select(
            pl.col(name).cast(pl.Categorical) if SCHEMA[name] == pl.String else name
            for name in names
        )


def sha256(path: Path) -> str:
    """Give the SHA-256 of a file as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_run(path: Path) -> Run:
    """Read a closed run and verify every file of its manifest.

    Raises SeatrialError if the run is still open, if a file is missing or
    unreadable, if its checksum differs from the manifest's, if a sealed manifest was
    changed, if its times lie in the future, or if a metric has several units.
    """
    require_closed(path)
    manifest = read_manifest(path)
    if (path / SIGNATURE).exists():
        check_signature(path / MANIFEST)
    check_times(path, manifest)
    for name, expected in manifest["checksums"].items():
        try:
            found = sha256(path / name)
        except OSError as error:
            raise SeatrialError(f"{path / name}: {error.strerror}") from error
        if found != expected:
            raise SeatrialError(
                f"{path / name}: changed after the run was closed: SHA-256 is "
                f"{found}, the manifest says {expected}"
            )
    measurements = read_table(path / "measurements.parquet")
    _check_units(path, measurements, imported="imported" in manifest)
    return Run(path, manifest, read_cases(path), measurements)


def read_table(file: Path) -> pl.DataFrame:
    """Read a table of measurements; SeatrialError if it is not readable."""
    try:
        written = pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SeatrialError(f"{file}: not readable: {error}") from error
    # A run that was closed before a column existed has nothing in it.
    return pl.concat([pl.DataFrame(schema=SCHEMA), written], how="diagonal")


def require_closed(path: Path) -> None:
    """Refuse a run that is still open."""
    if is_unfinished(path.name):
        raise SeatrialError(
            f"{path}: this run is not closed: it is still going on, or it was "
            "interrupted; it is never judged"
        )


def read_manifest(path: Path) -> dict[str, Any]:
    """Read manifest.json of a closed run; SeatrialError if there is none."""
    file = path / MANIFEST
    if not file.is_file():
        raise SeatrialError(f"{path}: not a run: it has no manifest.json")
    manifest = read_json(file)
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if isinstance(schema, int) and schema > NEWEST_SCHEMA:
        raise SeatrialError(
            f"{file}: made by a newer Seatrial: schema {schema}, this one knows up to "
            f"{NEWEST_SCHEMA}; upgrade this Seatrial"
        )
    if not isinstance(schema, int) or schema < 1:
        raise SeatrialError(
            f"{file}: expected a manifest of schema 1 to {NEWEST_SCHEMA}"
        )
    if not isinstance(manifest.get("checksums"), dict):
        raise SeatrialError(f"{file}: the checksums are missing")
    return dict(manifest)


def check_times(path: Path, manifest: dict[str, Any]) -> None:
    """Refuse a run that says it started or ended more than an hour from now.

    If the clock was set back in the middle of it, which its sessions tell, only its end
    counts.
    """
    sessions = manifest.get("sessions", ())
    set_back = any("clock_went_back_s" in session for session in sessions)
    for key in ("ended",) if set_back else ("started", "ended"):
        text = manifest.get(key, "1970-01-01")
        try:
            moment = datetime.fromisoformat(text).timestamp()
        except (TypeError, ValueError) as error:
            raise SeatrialError(
                f"{path / MANIFEST}: {key}: {text!r} is no time; expected for example "
                "2026-11-21T06:30:15+00:00"
            ) from error
        if moment > time.time() + _MOST_AHEAD_S:
            raise SeatrialError(
                f"{path / MANIFEST}: {key} lies in the future: {text}; set the clock "
                "of this machine; if it is right, that of the machine that ran it was "
                "wrong, and the run must be repeated"
            )


def _check_units(path: Path, measurements: pl.DataFrame, *, imported: bool) -> None:
    """Refuse several units of a metric of a check, and unknown ones unless imported."""
    each = measurements.group_by("check", "metric").agg(pl.col("unit").unique().sort())
    for check, metric, found in each.sort("check", "metric").iter_rows():
        if len(found) == 1 and (imported or found[0] in UNITS):
            continue
        raise SeatrialError(
            f"{path / 'measurements.parquet'}: {metric} of {check} is in units "
            f"{', '.join(map(repr, found))}; expected one for all numbers, of "
            "those in units.py; measure or import it again"
        )


def read_cases(path: Path) -> tuple[Case, ...]:
    """Read cases.json of a run folder; SeatrialError if it is damaged."""
    try:
        return tuple(case_from(row) for row in read_json(path / "cases.json"))
    except (TypeError, AttributeError) as error:
        raise SeatrialError(f"{path / 'cases.json'}: damaged: {error}") from error


def closed_runs(results: Path, system: str | None = None) -> list[Path]:
    """List the closed runs of one system, or of all, by start time, oldest first.

    Raises SeatrialError if the results folder, or a folder in it, cannot be read.
    """
    runs = [
        run
        for run in run_folders(results, system)
        if not is_unfinished(run.name) and (run / MANIFEST).is_file()
    ]
    return by_start(runs, MANIFEST)


def run_folders(results: Path, system: str | None = None) -> Iterator[Path]:
    """List the folders of the runs of one system, or of all, open and closed ones."""
    for folder in [results / system] if system else _folders(results):
        yield from _folders(folder)


class _Times(msgspec.Struct):
    """The times that a manifest (`started`, `ended`) or an agenda (`created`) has."""

    started: datetime | None = None
    ended: datetime | None = None
    created: datetime | None = None


def by_start(runs: Iterable[Path], file: str) -> list[Path]:
    """Sort runs by the start time in `file` of their folders, oldest first.

    A run that does not tell when it started comes before all others, so that it is
    never the latest one.
    """
    read = msgspec.json.Decoder(_Times).decode

    def start(run: Path) -> float:
        try:
            times = read((run / file).read_bytes())
        except (OSError, ValueError):
            return -math.inf
        # A clock that was set back during the run leaves an end before the start.
        known = (times.created, times.started, times.ended)
        return min((each.timestamp() for each in known if each), default=-math.inf)

    return sorted(runs, key=lambda run: (start(run), run.name, run.parent.name))


def is_unfinished(name: str) -> bool:
    """Tell by its name whether a folder is an open run, or a copy on its way."""
    return name.endswith(OPEN_SUFFIX) or name.startswith(".")


def _folders(folder: Path) -> list[Path]:
    """List the folders in a folder that may not exist."""
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SeatrialError(
            f"{folder}: the runs in it cannot be listed: {error.strerror}; ask its "
            "owner for the right to read it, or set SEATRIAL_RESULTS to another folder"
        ) from error


def read_manifests(runs: Iterable[Path]) -> dict[Path, dict[str, Any]]:
    """Read the manifests of several closed runs, none of them twice.

    Raises SeatrialError as `read_manifest` and `check_times` do, and if two folders
    hold the same run of a system: its numbers would count twice.
    """
    found: dict[Path, dict[str, Any]] = {}
    seen: dict[tuple[Any, Any], Path] = {}
    for path in dict.fromkeys(run.resolve() for run in runs):
        require_closed(path)
        manifest = read_manifest(path)
        check_times(path, manifest)
        run = (manifest.get("system"), manifest.get("run"))
        if run in seen:
            raise SeatrialError(
                f"{seen[run]} and {path} are both run {run[1]} of {run[0]}; expected "
                "one folder for each run; move the copy elsewhere"
            )
        seen[run] = path
        found[path] = manifest
    return found


def find_run(home: Path, text: str) -> Path:
    """Find a run by path, by run id, or by `latest` and `SYSTEM/latest`.

    Raises SeatrialError if there is none, or more than one of that id.
    """
    if (Path(text) / "manifest.json").is_file() or text.endswith(OPEN_SUFFIX):
        return Path(text).resolve()
    results = results_dir(home)
    system, _, name = text.rpartition("/")
    runs = closed_runs(results, system or None)
    if name != "latest":
        runs = [run for run in runs if run.name == name]
    if not runs:
        raise SeatrialError(
            f"no closed run {text!r} below {results}; expected the path of a run, "
            f"its id, latest or SYSTEM/latest; {_newest(results)}"
        )
    if name != "latest" and len(runs) > 1:
        systems = ", ".join(sorted(run.parent.name for run in runs))
        raise SeatrialError(
            f"run {text!r} exists for several systems ({systems}): say SYSTEM/{text}"
        )
    return runs[-1]


def _newest(results: Path) -> str:
    runs = [f"{run.parent.name}/{run.name}" for run in closed_runs(results)[-3:]]
    return f"the newest are: {', '.join(runs)}" if runs else "there is none yet"


def case_from(row: dict[str, Any]) -> Case:
    """Make a case of a row of cases.json."""
    known = {field.name for field in fields(Case)}
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in row.items()
        if key in known
    }
    return Case(**values)


def read_json(file: Path) -> Any:
    """Read a JSON file; SeatrialError if that cannot be done."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SeatrialError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise SeatrialError(f"{file}: not valid JSON: {error}") from error
