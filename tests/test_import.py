"""Import of plain ReFrame's records: reports and databases of real versions.

tests/data/reframe holds what ReFrame itself wrote: a session with a retry (JSON), and
the same with a session of two reruns beside it (SQLite).
"""

import copy
import csv
import io
import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from fake_home import write_home

from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.runs.closed_run import closed_runs, load_run
from seatrial.runs.lock import driver_lock
from seatrial.runs.open_run import RunFolder
from seatrial.runs.reframe_report import stored_sessions
from seatrial.runs.reframe_series import Survey
from seatrial.runs.reframe_tables import Tables
from seatrial.runs.seal import verify

DATA = Path(__file__).resolve().parent / "data" / "reframe"
REPORTS = sorted(DATA.glob("*.json"))
NEWEST = DATA / "4.10.4.json"
OPTIONS = ("--unit", "images", "--direction", "done=higher")

CASES = {
    "Broken": [("fail", "sanity"), ("fail", "sanity")],
    "Flaky": [("fail", "sanity"), ("pass", None)],
    "Known": [("skip", None)],
    "Osu": [("pass", None)],
    "Skipped": [("skip", None)],
    "Slow": [("fail", "performance"), ("fail", "performance")],
    "Stream %array=1000": [("pass", None)],
    "Stream %array=2000": [("pass", None)],
}
ROWS = [
    # check, attempt, metric, size_bytes, value, unit, direction
    ("Flaky", 2, "runtime", None, 1.5, "s", "lower"),
    ("Osu", 1, "bw", 4194304, 12000.0, "MB/s", "higher"),
    ("Osu", 1, "done", None, 3.0, "images", "higher"),
    ("Osu", 1, "latency", 8, 1.5, "us", "lower"),
    ("Slow", 1, "rate", None, 50.0, "MB/s", "higher"),
    ("Slow", 2, "rate", None, 50.0, "MB/s", "higher"),
    *[("Stream", 1, "runtime", None, 1.25, "s", "lower")] * 2,
    *[("Stream", 1, "triad", None, 101.5, "GB/s", "higher")] * 2,
]


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "results"
    monkeypatch.setenv("SEATRIAL_RESULTS", str(folder))
    return folder


def seatrial(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def imported(*arguments: str | Path) -> list[dict[str, Any]]:
    result = seatrial("import", "--format", "json", *OPTIONS, *arguments)
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NEWEST.read_text())
    return found


def entry(whole: dict[str, Any], name: str) -> dict[str, Any]:
    tests = (case for run in whole["runs"] for case in run["testcases"])
    return next(case for case in tests if case["display_name"] == name)


def written(folder: Path, whole: dict[str, Any], name: str = "report.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(whole))
    return file


def of_values(folder: Path, *values: list[Any], name: str = "x") -> Path:
    """Write a report whose only cases are of `Stream`, each with one value."""
    whole = report()
    case = entry(whole, "Stream %array=1000")
    whole["runs"] = whole["runs"][:1]
    whole["runs"][0]["testcases"] = [
        {
            **copy.deepcopy(case),
            "display_name": f"Stream %array={number}",
            "perfvalues": {f"tiny:cpu:{name}": value},
        }
        for number, value in enumerate(values)
    ]
    return written(folder, whole)


def numbers(results: Path) -> pl.DataFrame:
    (path,) = closed_runs(results)
    return load_run(path).measurements.collect()


@pytest.mark.parametrize("file", REPORTS, ids=lambda file: file.stem)
def test_report_of_every_version(file: Path, results: Path) -> None:
    (row,) = imported(file)
    (path,) = closed_runs(results, "tiny")
    run = load_run(path)
    assert verify(path).whole
    assert row == {
        **{"run": f"tiny/{path.name}", "new": True},
        **{"cases": len(run.cases), "measurements": len(ROWS)},
    }
    found: dict[str, list[tuple[str, str | None]]] = {}
    for case in sorted(run.cases, key=lambda case: case.attempt):
        assert case.attempt == len(found.setdefault(case.case, [])) + 1
        found[case.case].append((case.result, case.phase))
    with_xfail = {k: v for k, v in CASES.items() if k != "Known" or "Known" in found}
    assert found == with_xfail
    assert ("Known" in found) == (file.stem not in ("4.7.0", "4.8.4"))
    columns = ("check", "attempt", "metric", "size_bytes", "value", "unit", "direction")
    assert sorted(run.measurements.select(columns).collect().rows(), key=str) == sorted(
        ROWS, key=str
    )
    assert set(run.measurements.collect()["nodes"]) == {"cn01"}
    assert run.measurements.collect()["start_time"].is_between(1795e6, 1796e6).all()


def test_what_a_case_and_the_manifest_say(results: Path) -> None:
    imported(NEWEST)
    (path,) = closed_runs(results)
    run = load_run(path)
    cases = {(case.case, case.attempt): case for case in run.cases}
    stream = cases["Stream %array=1000", 1]
    assert stream.parameters == {"array": "1000"}
    assert (stream.check, stream.partition) == ("Stream", "tiny:cpu")
    assert (stream.environment, stream.nodes) == ("gnu", ("cn01",))
    assert stream.declared == ("runtime", "triad")
    assert (stream.session, stream.repeat, stream.replay) == ("reframe-1", 1, False)
    slow = cases["Slow", 1].reason
    assert slow is not None
    assert "failed to meet reference(s): rate=50 MB/s, expected 100" in slow
    assert cases["Skipped", 1].reason == "ReFrame's records do not say why"
    assert cases["Known", 1].reason == "expected to fail, and did: a known defect"
    manifest = run.manifest
    session = report()["session_info"]
    assert path.name == f"20261121T233348Z-imported-{session['uuid'][:8]}"
    assert (manifest["schema"], manifest["campaign"]) == (2, "imported")
    assert manifest["started"] == "2026-11-21T23:33:48+00:00"
    assert manifest["imported"]["source"] == "4.10.4.json"
    assert manifest["imported"]["tool"] == "reframe 4.10.4"
    assert manifest["imported"]["session_uuid"] == session["uuid"]
    assert len(manifest["imported"]["sha256"]) == 64
    assert [node["name"] for node in manifest["nodes"]] == ["cn01"]


@pytest.mark.parametrize("version", ["4.7.0", "4.10.4"])
def test_database_holds_what_reports_hold(version: str, results: Path) -> None:
    rows = imported(DATA / f"{version}.db")
    assert [row["measurements"] for row in rows] == [len(ROWS), 14]
    retried, again = (load_run(path) for path in closed_runs(results))
    assert {case.repeat for case in retried.cases} == {1}
    repeats = sorted((case.case, case.repeat, case.attempt) for case in again.cases)
    names = ("Osu", "Stream %array=1000", "Stream %array=2000")
    assert repeats == [(name, repeat, 1) for name in names for repeat in (1, 2)]
    sessions = again.manifest["sessions"]
    assert [(each["name"], each["cases"]) for each in sessions] == [
        ("reframe-1", 3),
        ("reframe-2", 3),
    ]
    before = retried.measurements.collect()
    retried.path.rename(results / "elsewhere")
    imported(DATA / f"{version}.json")
    after = load_run(results / "tiny" / retried.path.name).measurements.collect()
    assert after.equals(before.with_columns(pl.col("nodes").cast(after["nodes"].dtype)))


def test_session_without_cases_is_no_run(tmp_path: Path, results: Path) -> None:
    assert imported(of_values(tmp_path)) == []
    assert not results.exists()


def test_nothing_is_imported_twice(results: Path) -> None:
    rows = imported(NEWEST, DATA / "4.10.4.db", NEWEST)
    assert [row["new"] for row in rows] == [True, True]
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
    rows = imported(DATA / "4.10.4.db", "--system", "other")
    assert [(row["run"][:5], row["new"]) for row in rows] == [("tiny/", False)] * 2
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*")} == before


def test_remains_of_an_import_that_was_cut_off_are_made_again(results: Path) -> None:
    imported(NEWEST)
    (path,) = closed_runs(results)
    opened = path.with_name(f"{path.name}.open")
    path.rename(opened)
    (opened / "cases.json").write_text("[")
    assert [row["new"] for row in imported(NEWEST)] == [True]
    assert load_run(path).manifest["run"] == path.name
    assert not opened.exists()


def test_system_has_a_name_of_ours(results: Path) -> None:
    (row,) = imported(NEWEST, "--system", "lab")
    assert row["run"].startswith("lab/")
    (path,) = closed_runs(results, "lab")
    run = load_run(path)
    assert run.manifest["system"] == "lab"
    assert set(run.measurements.collect()["system"]) == {"lab"}


def test_only_sessions_of_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    file = DATA / "4.10.4.db"
    assert imported(file, "--until", "2026-11-21") == []
    (first,) = imported(file, "--until", "2026-11-21T23:33:49")
    (second,) = imported(file, "--since", "2026-11-21T23:33:49")
    assert first["run"] < second["run"]
    monkeypatch.undo()
    time.tzset()


def test_imported_run_is_judged(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(write_home(tmp_path / "home")))
    imported(NEWEST, "--system", "lab")
    result = seatrial("judge", "lab/latest")
    assert result.exit_code == 1, result.output
    assert "FAIL  lab, campaign imported" in result.stdout


@pytest.mark.parametrize(
    ("values", "options", "rows"),
    [
        ([[2, 0, None, None, "GB/s"]], (), [(2.0, "GB/s", "higher")]),
        ([[2, 0, None, None, "Gflops"]], (), [(2.0, "Gflop/s", "higher")]),
        ([[2, 9, None, 0.1, "GB/s"]], (), [(2.0, "GB/s", "lower")]),
        ([[2, 9, -0.1, None, "s"]], (), [(2.0, "s", "higher")]),
        ([[2, 9, -0.1, 0.1, "s"]], (), [(2.0, "s", "lower")]),
        (
            [[2, 9, -0.1, None, "GB/s"], [3, 9, None, 0.1, "GB/s"]],
            (),
            [(2.0, "GB/s", "higher"), (3.0, "GB/s", "higher")],
        ),
        ([[2, 9, None, 0.1, "s"]], ("--direction", "x=higher"), [(2.0, "s", "higher")]),
        (
            [[2, 0, None, None, "GB/s"], [500, 0, None, None, "MB/s"]],
            (),
            [(2.0, "GB/s", "higher"), (0.5, "GB/s", "higher")],
        ),
        (
            [[2, 0, None, None, "img/s"]],
            ("--unit", "img/s"),
            [(2.0, "img/s", "higher")],
        ),
        (
            [[2, 0, None, None, ""]],
            ("--unit", "", "--direction", "x=lower"),
            [(2.0, "1", "lower")],
        ),
    ],
)
def test_unit_and_direction(
    tmp_path: Path,
    results: Path,
    values: list[list[Any]],
    options: tuple[str, ...],
    rows: list[tuple[Any, ...]],
) -> None:
    imported(of_values(tmp_path, *values), *options)
    found = numbers(results)
    assert found.select("value", "unit", "direction").rows() == rows
    assert set(found["metric"]) == {"x"}


@pytest.mark.parametrize(
    ("name", "unit", "metric", "size", "value", "stored"),
    [
        ("latency_8B", "ns", "latency", 8, 0.002, "us"),
        ("mem_bw", "MB/s", "mem_bw", None, 0.002, "GB/s"),
        ("latency_8B", "MB/s", "latency_8B", None, 2.0, "MB/s"),
        ("latency_8", "us", "latency_8", None, 2.0, "us"),
    ],
)
def test_name_of_ours_is_split_and_converted(
    tmp_path: Path,
    results: Path,
    name: str,
    unit: str,
    metric: str,
    size: int | None,
    value: float,
    stored: str,
) -> None:
    imported(of_values(tmp_path, [2, 0, None, None, unit], name=name))
    ((*found, number),) = (
        numbers(results).select("metric", "size_bytes", "unit", "value").rows()
    )
    assert found == [metric, size, stored]
    assert number == pytest.approx(value)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            [[1, 0, None, None, "img/s"], [1, 0, None, None, "mb/s"]],
            (
                "unknown units: 'img/s' (x of Stream, in {}), "
                "'mb/s' (x of Stream, in {}); expected one of "
            ),
        ),
        (
            [[1, 0, None, None, "img/s"], [1, 0, None, None, "mb/s"]],
            "; to take them as they stand: --unit 'img/s' --unit 'mb/s'",
        ),
        (
            [[1, 0, None, None, "s"], [1, 0, None, None, "MB/s"]],
            (
                "units that do not convert into each other: x of Stream: 's' in {}, "
                "'MB/s' in {}; "
            ),
        ),
        (
            [[1, 9, -0.1, 0.1, "GiB"]],
            (
                "cannot be told of x of Stream in 'GiB' ({}): neither reference nor "
                "unit says it; say it: --direction x=higher (or lower)"
            ),
        ),
    ],
)
def test_what_is_unclear_is_refused(
    tmp_path: Path, results: Path, values: list[list[Any]], told: str
) -> None:
    file = of_values(tmp_path, *values)
    # What is right beside it is not imported either.
    result = seatrial("import", *OPTIONS, DATA / "4.7.0.json", file)
    assert result.exit_code == 2
    assert told.replace("{}", str(file)) in result.stderr
    assert not results.exists()


def test_conversion_is_told(tmp_path: Path, results: Path) -> None:
    values = [[2, 0, None, None, "GB/s"], [500, 0, None, None, "MB/s"]]
    result = seatrial("import", of_values(tmp_path, *values))
    assert "converted: x of Stream from MB/s to GB/s\n" in result.stderr
    (path,) = closed_runs(results)
    told = load_run(path).manifest["imported"]["converted"]
    assert told == ["x of Stream from MB/s to GB/s"]
    assert seatrial("import", *OPTIONS, NEWEST).stderr == ""


def test_value_that_was_not_measured_needs_no_unit(
    tmp_path: Path, results: Path
) -> None:
    imported(of_values(tmp_path, [None, 0, None, None, "img/s"]))
    assert numbers(results).is_empty()


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_value_that_is_no_number_is_left_out_and_fails(
    results: Path, tmp_path: Path, value: str
) -> None:
    whole = report()
    name = 'NaN, "Infinity'  # as a text it stays what it is
    stream = entry(whole, "Stream %array=1000")
    stream["fail_reason"] = name
    stream["perfvalues"]["tiny:cpu:triad"][0] = float(value)
    result = seatrial("import", *OPTIONS, written(tmp_path, whole))
    assert result.exit_code == 0
    assert "no number (NaN, infinity): 1 left out; their cases failed" in result.stderr
    (path,) = closed_runs(results)
    run = load_run(path)
    assert run.count == len(ROWS) - 1
    case = next(case for case in run.cases if case.case == "Stream %array=1000")
    assert (case.result, case.phase) == ("fail", "performance")
    assert case.reason == f"triad is {value}: no number; {name}"


def older(whole: dict[str, Any]) -> None:
    """Convert a report to the format of ReFrame 4.6."""
    info = whole["session_info"]
    info |= {"data_version": "3.1", "version": "4.6.4"}
    for key in ("uuid", "time_start_unix", "time_end_unix"):
        del info[key]


def newer(whole: dict[str, Any]) -> None:
    whole["session_info"] |= {"data_version": "5.0", "version": "5.0.0"}


def future(whole: dict[str, Any]) -> None:
    whole["session_info"]["time_end_unix"] = time.time() + 7200


def no_session(whole: dict[str, Any]) -> None:
    del whole["session_info"]


def no_runs(whole: dict[str, Any]) -> None:
    del whole["runs"]


def bad_uuid(whole: dict[str, Any]) -> None:
    whole["session_info"]["uuid"] = "../../../x"


def bad_value(whole: dict[str, Any]) -> None:
    entry(whole, "Osu")["perfvalues"]["tiny:cpu:done"][0] = [1]


def bad_system(whole: dict[str, Any]) -> None:
    for run in whole["runs"]:
        for case in run["testcases"]:
            case["system"] = "../x"


def two_systems(whole: dict[str, Any]) -> None:
    entry(whole, "Osu")["system"] = "big"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (older, "made by ReFrame 4.6.4, with reports of form 3.1; expected form"),
        (newer, "made by ReFrame 5.0.0, with reports of form 5.0; this Seatrial"),
        (future, "lies in the future: from 2026-11-21T23:33:48+00:00 to "),
        (no_session, "not a whole run report of ReFrame: Object missing required"),
        (no_runs, "not a whole run report of ReFrame: Object missing required"),
        (bad_uuid, "uuid of the session is '../../../x'"),
        (bad_value, "Expected `float | str | null`, got `array`"),
        (bad_system, "system '../x': expected one name of letters"),
        (two_systems, "system 'big and tiny': expected one name of letters"),
    ],
)
def test_report_that_cannot_be_taken(
    tmp_path: Path, results: Path, damage: Any, told: str
) -> None:
    whole = report()
    damage(whole)
    file = written(tmp_path, whole)
    result = seatrial("import", *OPTIONS, file)
    assert result.exit_code == 2
    assert f"{file}: " in result.stderr
    assert told in result.stderr
    assert not results.exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "Input data was truncated"),
        (NEWEST.read_bytes()[:20_000], "Input data was truncated"),
        (b"[]", "Expected `object`, got `array`"),
        (b"name,value\n", "JSON is malformed"),
        (b'{"session_info": "\xff"}', "not a whole run report of ReFrame"),
        ((DATA / "4.7.0.db").read_bytes()[:30_000], "not a readable results database"),
        (b"SQLite format 3\0" + bytes(1000), "not a readable results database"),
    ],
)
def test_damaged_file(tmp_path: Path, results: Path, content: bytes, told: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    result = seatrial("import", *OPTIONS, file)
    assert result.exit_code == 2
    assert f"{file}: " in result.stderr
    assert told in result.stderr
    assert not results.exists()


@pytest.mark.parametrize("name", ["nothing", "."])
def test_no_file(tmp_path: Path, name: str) -> None:
    result = seatrial("import", tmp_path / name)
    assert result.exit_code == 2
    assert f"{tmp_path / name}: " in result.stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("json_blob = substr(json_blob, 1, 999)", "Input data was truncated"),
        ("json_blob = replace(json_blob, uuid, 'x')", "or is another's"),
        ("session_start_unix = NULL", "start of the session is None"),
    ],
)
def test_database_with_a_damaged_session(
    tmp_path: Path, results: Path, change: str, told: str
) -> None:
    file = tmp_path / "results.db"
    file.write_bytes((DATA / "4.7.0.db").read_bytes())
    with closing(sqlite3.connect(file)) as database, database:
        (uuid,) = database.execute("SELECT max(uuid) FROM sessions").fetchone()
        database.execute(f"UPDATE sessions SET {change} WHERE uuid = ?", (uuid,))
    result = seatrial("import", *OPTIONS, file)
    assert result.exit_code == 2
    assert f"{file}: session {uuid}: not a whole run report" in result.stderr
    assert told in result.stderr
    assert not results.exists()


def test_file_that_changes_between_the_two_readings(tmp_path: Path) -> None:
    (stored,) = stored_sessions(of_values(tmp_path, [1, 0, None, None, "s"]))
    with pytest.raises(SeatrialError, match="changed while it was imported"):
        Tables(Survey((), {}).series()).add(stored.read())


def test_database_of_something_else(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE t(a)")
    result = seatrial("import", file)
    assert result.exit_code == 2
    assert f"{file}: not a readable results database" in result.stderr


@pytest.mark.parametrize("text", ["x", "x=up", "=higher"])
def test_direction_is_one(text: str) -> None:
    result = seatrial("import", NEWEST, "--direction", text)
    assert result.exit_code == 2
    assert f"{text!r}: expected METRIC=higher or =lower" in result.stderr


def test_import_that_is_going_on_elsewhere(results: Path) -> None:
    (run,) = imported(NEWEST)
    path = results / run["run"]
    for file in path.iterdir():
        file.unlink()
    path.rmdir()
    folder = RunFolder(results, "tiny", path.name)
    folder.create()
    with driver_lock(folder.path):
        result = seatrial("import", *OPTIONS, NEWEST)
    assert result.exit_code == 2
    told = f"{folder.path}: another import is making this run: process {os.getpid()} on"
    assert told in result.stderr
    assert folder.path.is_dir()


def test_formats() -> None:
    table = seatrial("import", *OPTIONS, NEWEST).stdout
    assert table.splitlines()[-1] == "runs imported: 1, there already: 0"
    again = seatrial("import", *OPTIONS, NEWEST, "--format", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(again))
    assert row["run"].startswith("tiny/20261121T233348Z-imported-")
    assert row["new"] == "False"
