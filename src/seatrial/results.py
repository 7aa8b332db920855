"""A closed run: read, find and check the immutable folder of one campaign."""

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.paths import results_dir
from seatrial.records import Case

OPEN_SUFFIX = ".open"

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run": pl.String,
    "session": pl.String,
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
    unreadable, or if its checksum differs from the manifest's.
    """
    if path.name.endswith(OPEN_SUFFIX):
        raise SeatrialError(
            f"{path}: this run is not closed: it is still going on, or it was "
            "interrupted; it is never judged"
        )
    manifest = read_manifest(path)
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
    try:
        written = pl.read_parquet(path / "measurements.parquet")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SeatrialError(
            f"{path / 'measurements.parquet'}: not readable: {error}"
        ) from error
    # A run that was closed before a column existed has nothing in it.
    measurements = pl.concat([pl.DataFrame(schema=SCHEMA), written], how="diagonal")
    return Run(path, manifest, read_cases(path), measurements)


def read_manifest(path: Path) -> dict[str, Any]:
    """Read manifest.json of a closed run; SeatrialError if there is none."""
    file = path / "manifest.json"
    if not file.is_file():
        raise SeatrialError(f"{path}: not a run: it has no manifest.json")
    manifest = _read_json(file)
    if not isinstance(manifest, dict) or manifest.get("schema") != 1:
        raise SeatrialError(f"{file}: expected a manifest of schema 1")
    if not isinstance(manifest.get("checksums"), dict):
        raise SeatrialError(f"{file}: the checksums are missing")
    return manifest


def read_cases(path: Path) -> tuple[Case, ...]:
    """Read cases.json of a run folder; SeatrialError if it is damaged."""
    try:
        return tuple(_case(row) for row in _read_json(path / "cases.json"))
    except (TypeError, AttributeError) as error:
        raise SeatrialError(f"{path / 'cases.json'}: damaged: {error}") from error


def closed_runs(results: Path, system: str | None = None) -> list[Path]:
    """List the closed runs of one system, or of all; oldest first."""
    pattern = f"{system or '*'}/*/manifest.json"
    runs = [file.parent for file in results.glob(pattern)]
    runs = [run for run in runs if not run.name.endswith(OPEN_SUFFIX)]
    return sorted(runs, key=lambda run: (run.name, run.parent.name))


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


def _case(row: dict[str, Any]) -> Case:
    known = {field.name for field in fields(Case)}
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in row.items()
        if key in known
    }
    return Case(**values)


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SeatrialError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise SeatrialError(f"{file}: not valid JSON: {error}") from error
