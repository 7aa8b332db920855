"""Measure imports and comparisons of ReFrame's records, with ReFrame itself beside.

Reports and databases are large ones in the form of a real one.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

HOME = Path(__file__).resolve().parents[1]
REPORT = HOME / "tests" / "data" / "reframe" / "4.10.4.json"
PROGRAMS = Path(sys.executable).parent
SESSIONS = 100
_DAY_S = 86400.0

_CONFIG = """
site_configuration = {{
    'systems': [{{'name': 'tiny', 'hostnames': ['.*'], 'partitions': [
        {{'name': 'cpu', 'scheduler': 'local', 'launcher': 'local',
          'environs': ['gnu']}}]}}],
    'environments': [{{'name': 'gnu'}}],
    'storage': [{{'enable': True, 'sqlite_db_file': {file!r}}}],
}}
"""
_LAST_DAYS = "now-30d:now"
_EARLIER_DAYS = "now-120d:now-30d"
_SAME_QUESTION = """
SELECT "case", partition, environment, metric, size_bytes, unit,
    avg(value) FILTER (start_time < {then}) AS earlier,
    avg(value) FILTER (start_time >= {then}) AS latest,
    round(100 * (earlier - latest) / latest, 2) AS difference
FROM measurements GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class Spent:
    """Cost of a command; `memory_mib` is its peak of resident memory."""

    wall_s: float
    cpu_s: float
    memory_mib: float

    def __str__(self) -> str:
        return (
            f"{self.wall_s:.1f} s ({self.cpu_s:.1f} s of CPU), "
            f"{self.memory_mib:.0f} MiB"
        )


def table() -> Table:
    """Measure, and return the results as a table."""
    rows = Table("records of ReFrame", "measured", "target")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report, database = folder / "report.json", folder / "results.db"
        _made(write_report, report, 50_000, 20)
        spent = _import(report, folder / "of-report")
        target = "<= 10 s, <= 1024 MiB"
        rows.add_row("report of 1 million measurements", str(spent), target)
        report.unlink()
        _made(write_database, database, SESSIONS, 500, 20)
        spent = _import(database, folder / "of-database")
        rows.add_row("database of 1 million measurements", str(spent), target)
        database.unlink()
        _made(write_database, database, SESSIONS, 380, 1)
        spent = _compare(folder, database)
        rows.add_row("38,000 cases, --performance-compare", str(spent), "")
        _import(database, folder / "results")
        spent = _query(folder / "results")
        rows.add_row("the same cases and question, seatrial query", str(spent), "")
    return rows


def _made(write: Callable[..., None], *arguments: Any) -> None:
    """Write in a process of its own: a child counts its parent's memory as its own."""
    with ProcessPoolExecutor(1) as maker:
        maker.submit(write, *arguments).result()


def _import(file: Path, results: Path) -> Spent:
    return watched(["seatrial", "import", str(file)], SEATRIAL_RESULTS=str(results))


def _compare(folder: Path, database: Path) -> Spent:
    config = folder / "config.py"
    config.write_text(_CONFIG.format(file=str(database)))
    question = f"{_EARLIER_DAYS}/{_LAST_DAYS}/mean:/"
    return watched(["reframe", "-C", str(config), "--performance-compare", question])


def _query(results: Path) -> Spent:
    question = _SAME_QUESTION.format(then=time.time() - 30 * _DAY_S)
    return watched(
        ["seatrial", "query", "--sql", question], SEATRIAL_RESULTS=str(results)
    )


def watched(command: list[str], **environment: str) -> Spent:
    """Run a program beside this Python, which must succeed."""
    started = time.monotonic()
    process = subprocess.Popen(
        [PROGRAMS / command[0], *command[1:]],
        env={**os.environ, "SEATRIAL_HOME": str(HOME), **environment},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"status {status}: {' '.join(command)}")
    return Spent(
        time.monotonic() - started,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
    )


def session(number: int, cases: int, values: int) -> dict[str, Any]:
    """Build a report of some cases with some performance values each."""
    report: dict[str, Any] = json.loads(REPORT.read_text())
    started = time.time() - _DAY_S * (number + 0.5)
    uuid = f"{number:08x}-0000-4000-8000-000000000000"
    times = {"time_start_unix": started, "time_end_unix": started + 3600}
    report["session_info"] |= {"uuid": uuid, **times}
    run = report["runs"][0]
    tests = list(_cases(run["testcases"][0], number, cases, values, started))
    report["runs"] = [{**run, "num_cases": cases, "testcases": tests}]
    return report


def _cases(
    template: dict[str, Any], number: int, cases: int, values: int, started: float
) -> Iterator[dict[str, Any]]:
    for case in range(cases):
        name, when = f"Stream %array={case}", started + case % 3600
        perfvalues = {
            f"tiny:cpu:bw_{2**k}B": (
                *(100.0 + (case * 7 + k + number) % 13, 110.0),
                *(-0.2, None, "MB/s", "pass"),
            )
            for k in range(values)
        }
        yield {
            **template,
            **{"display_name": name, "name": name, "perfvalues": perfvalues},
            **{"job_nodelist": [f"cn{case % 100:03}"], "jobid": case + 1},
            **{"job_submit_time": when, "job_completion_time_unix": when + 1},
        }


def write_report(file: Path, cases: int, values: int) -> None:
    """Write a report as ReFrame does."""
    with file.open("w") as stream:
        json.dump(session(0, cases, values), stream, indent=2)


def write_database(file: Path, sessions: int, cases: int, values: int) -> None:
    """Write a database as ReFrame's storage does; one session a day."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, "
            "session_end_unix REAL, json_blob TEXT, report_file TEXT)"
        )
        database.execute(
            "CREATE TABLE testcases(name TEXT, system TEXT, partition TEXT, "
            "environ TEXT, job_completion_time_unix REAL, session_uuid TEXT, uuid TEXT,"
            " FOREIGN KEY(session_uuid) REFERENCES sessions(uuid) ON DELETE CASCADE)"
        )
        database.execute("CREATE TABLE metadata(schema_version TEXT)")
        database.execute("INSERT INTO metadata VALUES('1.0')")
        for number in range(sessions):
            _store(database, session(number, cases, values))


def _store(database: sqlite3.Connection, report: dict[str, Any]) -> None:
    info = report["session_info"]
    uuid = info["uuid"]
    database.execute(
        "INSERT INTO sessions VALUES(?, ?, ?, ?, 'report.json')",
        (uuid, info["time_start_unix"], info["time_end_unix"], json.dumps(report)),
    )
    columns = ("name", "system", "partition", "environ", "job_completion_time_unix")
    database.executemany(
        "INSERT INTO testcases VALUES(?, ?, ?, ?, ?, ?, ?)",
        [
            (*(case[column] for column in columns), uuid, f"{uuid}:0:{number}")
            for number, case in enumerate(report["runs"][0]["testcases"])
        ],
    )
