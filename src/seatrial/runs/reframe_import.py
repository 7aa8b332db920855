"""Convert ReFrame's records to closed runs, one for every session.

An import reads all sessions first, for units, directions and errors, so that an error
leaves nothing written; then it reads each again and writes its run.
"""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import seatrial
from seatrial.errors import SeatrialError
from seatrial.model.manifest import NEWEST_SCHEMA
from seatrial.model.metrics import Direction
from seatrial.names import is_name
from seatrial.runs.lock import driver_lock, driver_of
from seatrial.runs.open_run import RunFolder, utc_text
from seatrial.runs.reframe_report import ReframeSession, Stored, stored_sessions
from seatrial.runs.reframe_series import Key, Series, Survey
from seatrial.runs.reframe_tables import BLOCK, Tables

_MOST_AHEAD_S = 3600.0


@dataclass(frozen=True)
class Choice:
    """Options of an import.

    `system` is our name of the system (None: ReFrame's). `units` are accepted although
    unknown; `directions` are by metric. Imported are sessions that started at `since`
    or later and before `until`, in UTC seconds since the epoch.
    """

    system: str | None = None
    units: frozenset[str] = frozenset()
    directions: Mapping[str, Direction] = field(default_factory=dict)
    since: float = float("-inf")
    until: float = float("inf")


@dataclass(frozen=True)
class Imported:
    """The closed run of a session; `new` if it was imported now.

    `not_finite` counts values that are left out (NaN, infinity); `converted` lists the
    metrics that were converted to another unit.
    """

    path: Path
    cases: int = 0
    measurements: int = 0
    not_finite: int = 0
    converted: tuple[str, ...] = ()
    new: bool = True


def import_reports(
    files: Sequence[Path], results: Path, choice: Choice
) -> Iterator[Imported]:
    """Write a closed run for every session in reports and databases of plain ReFrame.

    A session that was imported before is skipped. Raises SeatrialError if a file cannot
    be read, if a session is damaged, of an older ReFrame or of the future, or if units
    or directions are ambiguous; then nothing is written.
    """
    survey = Survey(choice.units, choice.directions)
    pending: dict[str, tuple[Stored, RunFolder]] = {}
    for stored in chain.from_iterable(map(stored_sessions, files)):
        run = _run_id(stored)
        if run in pending or not choice.since <= stored.started < choice.until:
            continue
        # The run of an earlier import may be of another name of the system.
        earlier = [path for path in results.glob(f"*/{run}") if path.is_dir()]
        if earlier:
            yield Imported(earlier[0], new=False)
            continue
        system = _survey(stored, survey, choice)
        if system is not None:
            pending[run] = (stored, RunFolder(results, system, run))
    series = survey.series()
    for stored, folder in pending.values():
        yield _write(stored, folder, series)


def _run_id(stored: Stored) -> str:
    """Return the id of the run of a session, always the same."""
    try:
        moment = datetime.fromtimestamp(stored.started, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise SeatrialError(
            f"{stored.source}: started at {stored.started} s after 1970: no time"
        ) from error
    return f"{moment:%Y%m%dT%H%M%SZ}-imported-{stored.uuid[:8]}"


def _survey(stored: Stored, survey: Survey, choice: Choice) -> str | None:
    """Survey the values of a session; return its system, None without a case."""
    session = stored.read()
    if max(session.started, session.ended) > time.time() + _MOST_AHEAD_S:
        raise SeatrialError(
            f"{stored.source}: lies in the future: from {utc_text(session.started)} to "
            f"{utc_text(session.ended)}, and now it is {utc_text()}; set the clock of "
            "this machine; if it is right, that of ReFrame's machine was wrong: leave "
            "this session out (--until), and measure again"
        )
    systems = set()
    for entry in chain.from_iterable(session.runs):
        systems.add(entry.system)
        survey.add(entry, stored.source)
    if not systems:
        return None
    system = choice.system or " and ".join(sorted(systems))
    if not is_name(system):
        raise SeatrialError(
            f"{stored.source}: system {system!r}: expected one name of letters, "
            "digits, dot, dash, underscore; give it one with --system"
        )
    return system


def _write(stored: Stored, folder: RunFolder, series: Mapping[Key, Series]) -> Imported:
    if folder.final.is_dir():  # another import was faster
        return Imported(folder.final, new=False)
    session = stored.read()
    tables = Tables(series)
    tables.add(session)
    session = replace(session, runs=())  # hundreds of megabytes that are read now
    system, run = folder.final.parent.name, folder.final.name
    measurements = tables.measurements(run, system)
    driver = driver_of(folder.path)
    if driver is not None:
        raise SeatrialError(
            f"{folder.path}: another import is making this run: process "
            f"{driver.get('pid', 'unknown')} on {driver.get('host', 'unknown')}; wait "
            "for its end, then import again"
        )
    shutil.rmtree(folder.path, ignore_errors=True)  # of an interrupted import
    folder.create()
    with driver_lock(folder.path):
        described = _manifest(stored, session, tables)
        manifest = {"schema": NEWEST_SCHEMA, "run": run, "system": system, **described}
        path = folder.close(manifest, tables.cases, [measurements])
    counts = (len(tables.cases), len(measurements), tables.not_finite)
    return Imported(path, *counts, tables.converted)


def _manifest(
    stored: Stored, session: ReframeSession, tables: Tables
) -> dict[str, Any]:
    cases = tables.cases
    started, ended = utc_text(session.started), utc_text(session.ended)
    nodes = sorted({node for case in cases for node in case.nodes})
    return {
        "description": f"imported from {stored.file.name}",
        "campaign": "imported",
        "checks": sorted({case.check for case in cases}),
        "partial": False,
        "started": started,
        "ended": ended,
        "demonstration": False,
        "replay": None,
        "software": {
            "seatrial": seatrial.__version__,
            "reframe": session.version,
            "slurm": None,
            "stacks": [],
            "spack": None,
        },
        "nodes": [
            {"name": node, "facts": {}, "state": "present", "reason": None}
            for node in nodes
        ],
        "sessions": [
            {
                "name": f"{BLOCK}-{repeat}",
                "block": BLOCK,
                "repeat": repeat,
                "variables": {},
                "started": started,
                "ended": ended,
                "cases": sum(case.repeat == repeat for case in cases),
                "interrupted": [],
            }
            for repeat in range(1, max(case.repeat for case in cases) + 1)
        ],
        "starts": [],
        "imported": {
            "source": stored.file.name,
            "sha256": session.sha256,
            "tool": f"reframe {session.version}",
            "session_uuid": stored.uuid,
            "host": session.host,
            "converted": list(tables.converted),
        },
    }
