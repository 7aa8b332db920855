"""A closed run: read, find and check the immutable folder of one campaign."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.limits import (
    CASES_SIZE,
    LEDGER_SIZE,
    MANIFEST_SIZE,
    TABLE_SIZE,
    YAML_SIZE,
    Limit,
)
from seatrial.model.cases import Case
from seatrial.model.manifest import (
    MANIFEST,
    OPEN_SUFFIX,
    check_times,
    decoded,
    is_unfinished,
    read_manifest,
)
from seatrial.model.metrics import METRICS, Metric, own_metrics_of
from seatrial.names import is_inside, is_name
from seatrial.paths import CRITERIA_FILE, FABRIC_FILES, WEIGHTS_FILE, results_dir
from seatrial.plain_files import read_plain
from seatrial.runs.ledger import LEDGER
from seatrial.runs.run_contents import Contents, read_contents
from seatrial.runs.ssh_signature import Sealed

if TYPE_CHECKING:
    import polars as pl

    from seatrial.runs.kept_fabric import KeptFabric

SYSTEM_FOLDER = "system"
"""The folder of a run with the files of its system."""

KEPT_CRITERIA = f"{SYSTEM_FOLDER}/{CRITERIA_FILE}"
KEPT_WEIGHTS = f"{SYSTEM_FOLDER}/{WEIGHTS_FILE}"
KEPT_FABRIC, KEPT_PLAN, KEPT_DECLARATION = (
    f"{SYSTEM_FOLDER}/{name}" for name in FABRIC_FILES
)

_CASES = "cases.json"
TABLE = "measurements.parquet"
SETTINGS_TABLE = "settings.parquet"
COUNTERS_TABLE = "counters.parquet"
AGENDA_FILE = "plan.json"
_PARSED = {
    _CASES: CASES_SIZE,
    TABLE: TABLE_SIZE,
    SETTINGS_TABLE: TABLE_SIZE,
    COUNTERS_TABLE: TABLE_SIZE,
    AGENDA_FILE: CASES_SIZE,
    KEPT_CRITERIA: YAML_SIZE,
    LEDGER: LEDGER_SIZE,
    KEPT_WEIGHTS: YAML_SIZE,
    KEPT_FABRIC: TABLE_SIZE,
    KEPT_PLAN: CASES_SIZE,
    KEPT_DECLARATION: YAML_SIZE,
}
"""The files of a run that are parsed; all others are only compared."""


@dataclass(frozen=True)
class Run:
    """A closed run: its manifest, its cases, and all its measurements.

    `measurements` are millions of rows after a sweep: collect only what is needed.
    `digest` is the SHA-256 of the manifest; `sealed` is None without a signature;
    `reasons` has those for missing numbers, unverified, None without a file; `kept` has
    the plan, criteria, weights, ledger and fabric that the run kept, by their paths;
    `settings` and `counters` those of its nodes and ports, None if it has none.
    """

    path: Path
    manifest: dict[str, Any]
    cases: tuple[Case, ...]
    measurements: "pl.LazyFrame"
    digest: str = ""
    sealed: Sealed | None = None
    kept: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    settings: "pl.DataFrame | None" = None
    reasons: Sealed | None = None
    counters: "pl.DataFrame | None" = None

    def columns(self, *names: str) -> "pl.LazyFrame":
        """Return some columns of the measurements, their texts as categories."""
        import polars as pl

        from seatrial.runs.measurement_table import SCHEMA

        return self.measurements.select(
            pl.col(name).cast(pl.Categorical) if SCHEMA[name] == pl.String else name
            for name in names
        )

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics that are known: Seatrial's, and those of the site's checks."""
        return METRICS | own_metrics_of(self.manifest)

    @cached_property
    def fabric(self) -> "KeptFabric | None":
        """The fabric that the run kept, parsed once; None if it kept none.

        Raises SeatrialError with file and line if one of its files is damaged.
        """
        from seatrial.runs.kept_fabric import kept_fabric

        return kept_fabric(self)

    @property
    def count(self) -> int:
        """The number of measurements."""
        import polars as pl

        return int(self.measurements.select(pl.len()).collect().item())


def load_run(path: Path) -> Run:
    """Read a closed run and verify it as `seatrial verify` does.

    Raises SeatrialError if the run is still open, if a file is missing, changed, added
    or no plain file, if a sealed manifest was changed, if its times lie in the future,
    if a table is damaged or too large, or if a metric has several units.
    """
    from seatrial.runs.counters_table import parse_counters
    from seatrial.runs.measurement_table import check_units, parse_table
    from seatrial.runs.settings_table import parse_settings

    contents = whole_contents(path, _PARSED)
    kept = dict(contents.kept)
    for name in (_CASES, TABLE):
        if name not in kept:
            raise SeatrialError(f"{path / MANIFEST}: lists no {name}; expected one")
    cases = _parse_cases(kept.pop(_CASES), path / _CASES)
    measurements = parse_table(kept.pop(TABLE), path / TABLE)
    optional = ((SETTINGS_TABLE, parse_settings), (COUNTERS_TABLE, parse_counters))
    settings, counters = (
        parse(kept.pop(name), path / name) if name in kept else None
        for name, parse in optional
    )
    check_units(measurements, path / TABLE, contents.manifest)
    return Run(
        path,
        contents.manifest,
        cases,
        measurements,
        contents.digest,
        contents.sealed,
        kept,
        settings,
        contents.reasons,
        counters,
    )


def whole_contents(path: Path, keep: Mapping[str, Limit]) -> Contents:
    """Read a closed run whose files are as listed, and its times not in the future."""
    contents = read_contents(path, keep)
    check_times(path, contents.manifest)
    contents.require_whole()
    return contents


def read_cases(path: Path) -> tuple[Case, ...]:
    """Read cases.json of a run folder; SeatrialError if it is damaged."""
    return _parse_cases(read_plain(path / _CASES, CASES_SIZE), path / _CASES)


def _parse_cases(content: bytes, file: Path) -> tuple[Case, ...]:
    """Parse a list of cases; SeatrialError if a name or path in it leads elsewhere."""
    cases = decoded(content, file, tuple[Case, ...], "a list of cases")
    for case in cases:
        if not is_name(case.session) or not (case.raw is None or is_inside(case.raw)):
            raise SeatrialError(
                f"{file}: damaged: session {case.session!r}, raw {case.raw!r}; "
                "expected a name, and a path in the run"
            )
    return cases


def closed_runs(results: Path, system: str | None = None) -> list[Path]:
    """Return the closed runs of one system, or of all, by start time, oldest first.

    Raises SeatrialError if the results folder, or a folder in it, cannot be read.
    """
    folders = run_folders(results, system)
    closed = (run for run in folders if not is_unfinished(run.name))
    return by_start((run for run in closed if (run / MANIFEST).is_file()), MANIFEST)


def run_folders(results: Path, system: str | None = None) -> Iterator[Path]:
    """Yield the folders of the runs of one system, or of all, open and closed ones."""
    for folder in [results / system] if system else _folders(results):
        yield from _folders(folder)


class _Times(msgspec.Struct):
    """The times that a manifest (`started`, `ended`) or an agenda (`created`) has."""

    started: datetime | None = None
    ended: datetime | None = None
    created: datetime | None = None


def by_start(runs: Iterable[Path], file: str) -> list[Path]:
    """Sort runs by the start time in `file` of their folders, oldest first.

    A run without a readable start time comes first, so that it is never the latest.
    """
    read = msgspec.json.Decoder(_Times).decode

    def start(run: Path) -> float:
        try:
            times = read(read_plain(run / file, MANIFEST_SIZE))
        except (SeatrialError, ValueError):
            return -math.inf
        # A clock that was set back during the run leaves an end before the start.
        moments = filter(None, (times.created, times.started, times.ended))
        return min((moment.timestamp() for moment in moments), default=-math.inf)

    return sorted(runs, key=lambda run: (start(run), run.name, run.parent.name))


def _folders(folder: Path) -> list[Path]:
    """Return the folders in a folder that may not exist."""
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
    """Read the manifests of several closed runs, each once.

    Raises SeatrialError as `read_manifest` and `check_times` do, and if two folders
    hold the same run of a system: its numbers would count twice.
    """
    manifests: dict[Path, dict[str, Any]] = {}
    folders: dict[tuple[Any, Any], Path] = {}
    for path in dict.fromkeys(run.resolve() for run in runs):
        manifests[path] = manifest = read_manifest(path)
        check_times(path, manifest)
        system, run = manifest.get("system"), manifest.get("run")
        other = folders.setdefault((system, run), path)
        if other != path:
            raise SeatrialError(
                f"{other} and {path} are both run {run} of {system}; expected one "
                "folder for each run; move the copy elsewhere"
            )
    return manifests


def find_run(home: Path, text: str) -> Path:
    """Find a run by path, run id, `latest` or `SYSTEM/latest`.

    Raises SeatrialError if there is none, or more than one of that id.
    """
    if (Path(text) / MANIFEST).is_file() or text.endswith(OPEN_SUFFIX):
        return Path(text).resolve()
    results = results_dir(home)
    system, _, name = text.rpartition("/")
    runs = closed_runs(results, system or None)
    if name != "latest":
        runs = [run for run in runs if run.name == name]
    if not runs:
        newest = [f"{run.parent.name}/{run.name}" for run in closed_runs(results)[-3:]]
        known = (
            f"the newest are: {', '.join(newest)}" if newest else "there is none yet"
        )
        raise SeatrialError(
            f"no closed run {text!r} below {results}; expected the path of a run, "
            f"its id, latest or SYSTEM/latest; {known}"
        )
    if name != "latest" and len(runs) > 1:
        systems = ", ".join(sorted(run.parent.name for run in runs))
        raise SeatrialError(
            f"run {text!r} exists for several systems ({systems}): use SYSTEM/{text}"
        )
    return runs[-1]
