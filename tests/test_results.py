"""Closed runs: found, verified, and refused when they are not whole."""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from closed_runs import close_run, rewrite_manifest
from fake_home import write_home
from judge_samples import CASE, sample

from seatrial.campaign.schedule import Agenda
from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.plain_files import sha256_plain
from seatrial.runs.closed_run import (
    closed_runs,
    find_run,
    load_run,
    read_manifests,
)
from seatrial.runs.measurement_table import LOADED, table_of
from seatrial.runs.open_run import (
    RunFolder,
    disk_errors,
    new_run_id,
    newest_open,
    open_runs,
    write_file,
)

MANIFEST: dict[str, Any] = {
    "schema": 1,
    "run": "r1",
    "system": "lab",
    "campaign": "smoke",
    "started": "2026-01-01T00:00:00+00:00",
    "ended": "2026-01-01T01:00:00+00:00",
    "nodes": [],
}


def close(results: Path, system: str = "lab", run_id: str = "r1") -> Path:
    folder = RunFolder(results, system, run_id)
    folder.create()
    raw = folder.path / "raw" / "pairs-1"
    raw.mkdir(parents=True)
    (raw / "report.json").write_text("{}")
    case = replace(CASE, parameters={"x": [1, 2]}, raw="raw/pairs-1")
    manifest = {**MANIFEST, "run": run_id, "system": system}
    table = table_of([sample(case, 80.0, pair="cn01 cn02")])
    return folder.close(manifest, [case], [table])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return close(tmp_path / "results")


def test_what_is_closed_is_what_is_loaded(run: Path) -> None:
    loaded = load_run(run)
    assert loaded.path == run
    assert loaded.cases == (replace(CASE, parameters={"x": [1, 2]}, raw="raw/pairs-1"),)
    assert loaded.measurements.collect_schema() == pl.Schema(LOADED)
    assert loaded.measurements.collect().row(0, named=True)["value"] == 80.0
    assert set(loaded.manifest["checksums"]) == {
        "cases.json",
        "measurements.parquet",
        "raw/pairs-1/report.json",
    }
    assert [path.name for path in run.parent.iterdir()] == ["r1"]


def test_run_without_numbers_keeps_its_columns(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "lab", "empty")
    folder.create()
    loaded = load_run(folder.close({**MANIFEST, "run": "empty"}, [], []))
    assert loaded.measurements.collect_schema() == pl.Schema(LOADED)
    assert loaded.cases == ()


def test_run_from_before_a_column_existed_has_nothing_in_it(run: Path) -> None:
    file = run / "measurements.parquet"
    pl.read_parquet(file).drop("hca", "round").write_parquet(file)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["checksums"][file.name] = sha256_plain(file)
    (run / "manifest.json").write_text(json.dumps(manifest))
    loaded = load_run(run)
    assert loaded.measurements.collect_schema() == pl.Schema(LOADED)
    assert loaded.measurements.collect()["hca"].to_list() == [None]


@pytest.mark.parametrize(
    "name", ["cases.json", "measurements.parquet", "raw/pairs-1/report.json"]
)
def test_changed_file_is_refused(run: Path, name: str) -> None:
    with (run / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(SeatrialError, match=f"{name}: changed: SHA-256 is"):
        load_run(run)


def test_missing_file_is_refused(run: Path) -> None:
    (run / "measurements.parquet").unlink()
    with pytest.raises(SeatrialError, match=r"measurements\.parquet: missing"):
        load_run(run)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected a manifest of schema 1 to 2"),
        ('{"schema": "2"}', "expected a manifest of schema 1 to 2"),
        ('{"schema": 0}', "expected a manifest of schema 1 to 2"),
        ('{"schema": 3}', "made by a newer Seatrial: schema 3, this one knows up to 2"),
        ('{"schema": 1}', "damaged: Object missing required field `run`"),
        ('{"schema": 2}', "damaged: Object missing required field `run`"),
    ],
)
def test_bad_manifest_is_refused(run: Path, text: str, expected: str) -> None:
    (run / "manifest.json").write_text(text)
    with pytest.raises(SeatrialError, match=expected):
        load_run(run)


def test_run_of_the_first_schema_is_read(tmp_path: Path) -> None:
    run = close_run(tmp_path, schema=1)
    assert load_run(run).manifest["schema"] == 1


@pytest.mark.parametrize("size", [0, 3, 100, 1000])
def test_truncated_parquet_is_refused(run: Path, size: int) -> None:
    file = run / "measurements.parquet"
    file.write_bytes(file.read_bytes()[:size])
    rewrite_manifest(run)
    with pytest.raises(SeatrialError, match=r"measurements\.parquet: not readable: "):
        load_run(run)


@pytest.mark.parametrize("key", ["started", "ended"])
def test_run_of_the_future_is_refused(run: Path, key: str) -> None:
    now = datetime.now(UTC)
    rewrite_manifest(run, **{key: (now + timedelta(minutes=59)).isoformat()})
    assert load_run(run)
    rewrite_manifest(run, **{key: (now + timedelta(minutes=61)).isoformat()})
    with pytest.raises(
        SeatrialError, match=f"manifest.json: {key} lies in the future: 20.*; set the c"
    ):
        load_run(run)


def test_a_run_whose_clock_was_set_back_counts_from_its_end(run: Path) -> None:
    ahead = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    session = {"repeat": 1, "started": ahead, "ended": ahead, "cases": 1}
    set_back = [
        {"name": "a-1", **session},
        {"name": "b-1", **session, "clock_went_back_s": 86400},
    ]
    rewrite_manifest(run, started=ahead, sessions=set_back)
    assert load_run(run)
    rewrite_manifest(run, ended=ahead)
    with pytest.raises(SeatrialError, match="ended lies in the future"):
        load_run(run)


@pytest.mark.parametrize("text", ["yesterday", "9999-12-31T23:59:59-23:59", None, 5])
def test_time_that_is_none_is_refused(run: Path, text: object) -> None:
    rewrite_manifest(run, started=text)
    with pytest.raises(SeatrialError, match=r"manifest\.json: .*started"):
        load_run(run)


@pytest.mark.parametrize(
    ("units", "imported", "told"),
    [
        (("MB/s", "MB/s"), False, None),
        (("MB/s", "GB/s"), False, "'GB/s', 'MB/s'"),
        (("MB/s", "GB/s"), True, "'GB/s', 'MB/s'"),
        (("", ""), False, "''"),
        (("img/s", "img/s"), False, "'img/s'"),
        (("img/s", "img/s"), True, None),
    ],
)
def test_mixed_and_unknown_units_are_refused(
    tmp_path: Path, units: tuple[str, ...], imported: bool, told: str | None
) -> None:
    rows = [replace(sample(CASE, 80.0), unit=unit) for unit in units]
    more: dict[str, Any] = {"imported": {"source": "report.json"}} if imported else {}
    run = close_run(tmp_path, rows=rows, **more)
    if told is None:
        assert load_run(run).measurements.collect()["unit"].to_list() == [*units]
        return
    expected = rf"measurements\.parquet: bw of ImbRing is in units {told}; expected one"
    with pytest.raises(SeatrialError, match=expected):
        load_run(run)


def test_units_of_different_checks_may_differ(tmp_path: Path) -> None:
    other = sample(replace(CASE, check="Other"), 1.0)
    run = close_run(tmp_path, rows=[sample(CASE, 80.0), replace(other, unit="GB/s")])
    assert load_run(run).measurements.collect().height == 2


def test_same_run_in_two_folders_is_refused(run: Path) -> None:
    other = run.parents[1] / "copy" / "r1"
    shutil.copytree(run, other)
    with pytest.raises(SeatrialError, match=r"r1 and .*r1 are both run r1 of lab"):
        read_manifests([run, other])
    rewrite_manifest(other, system="big")
    assert set(read_manifests([run, other, run / "."])) == {run, other}


def test_results_that_cannot_be_listed_are_an_error(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> Iterator[Path]:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refused)  # root may read everything
    for system in (None, "lab"):
        with pytest.raises(SeatrialError, match="cannot be listed: Permission denied"):
            closed_runs(run.parents[1], system)


def test_no_results_yet(tmp_path: Path) -> None:
    assert closed_runs(tmp_path / "results") == []
    assert closed_runs(tmp_path / "results", "lab") == []


def test_damaged_cases_are_refused(run: Path) -> None:
    (run / "cases.json").write_text('[{"session": "a"}]')
    rewrite_manifest(run)
    with pytest.raises(SeatrialError, match=r"cases\.json: damaged"):
        load_run(run)


def test_open_run_is_refused(run: Path) -> None:
    opened = run.with_name("r1.open")
    run.rename(opened)
    with pytest.raises(SeatrialError, match="not closed"):
        load_run(opened)
    assert closed_runs(run.parents[1]) == []


def test_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SeatrialError, match="not a run"):
        load_run(tmp_path)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SEATRIAL_RESULTS", raising=False)
    close(tmp_path / "results", "lab", "20260101T000000Z-smoke")
    close(tmp_path / "results", "lab", "20260102T000000Z-smoke")
    close(tmp_path / "results", "big", "20260101T000000Z-smoke")
    close(tmp_path / "results", "big", "20260103T000000Z-smoke")
    RunFolder(tmp_path / "results", "lab", "20260104T000000Z-smoke").create()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("latest", "big/20260103T000000Z-smoke"),
        ("lab/latest", "lab/20260102T000000Z-smoke"),
        ("20260102T000000Z-smoke", "lab/20260102T000000Z-smoke"),
        ("lab/20260101T000000Z-smoke", "lab/20260101T000000Z-smoke"),
    ],
)
def test_find_run(home: Path, text: str, expected: str) -> None:
    assert find_run(home, text) == home / "results" / expected


@pytest.fixture
def misnamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of three runs named against their order in time, and a damaged one."""
    monkeypatch.delenv("SEATRIAL_RESULTS", raising=False)
    results = tmp_path / "results"
    for name, started in (
        ("z-first", "2026-01-01T09:00:00+02:00"),
        ("a-last", "2026-01-01T08:30:00+00:00"),
        ("m-second", "2026-01-01T08:00:00+00:00"),
    ):
        close_run(results, name, started=started, ended=started)
    damaged = close_run(results, "zz-damaged")
    (damaged / "manifest.json").write_text("{")
    return tmp_path


def test_latest_is_latest_by_start_time(misnamed: Path) -> None:
    results = misnamed / "results"
    assert [run.name for run in closed_runs(results)] == [
        *("zz-damaged", "z-first", "m-second", "a-last")
    ]
    assert find_run(misnamed, "lab/latest").name == "a-last"
    with pytest.raises(
        SeatrialError, match="newest are: lab/z-first, lab/m-second, lab/a-last"
    ):
        find_run(misnamed, "nope")


def test_a_clock_that_was_set_back_makes_no_run_the_latest(misnamed: Path) -> None:
    run = misnamed / "results" / "lab" / "z-first"
    rewrite_manifest(run, started="2026-06-01T00:00:00+00:00")
    assert find_run(misnamed, "latest").name == "a-last"


def test_commands_take_the_latest_runs_by_start_time(
    misnamed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(misnamed / "results" / "lab" / "zz-damaged")
    monkeypatch.setenv("SEATRIAL_HOME", str(write_home(misnamed)))
    newest = CliRunner().invoke(main, ["status", "lab"])
    assert "the newest closed one is lab/a-last" in newest.output
    trend = ["trend", "lab", "--last", "1", "--check", CASE.check, "--format", "csv"]
    rows = CliRunner().invoke(main, trend).stdout.splitlines()
    assert {row.split(",")[0] for row in rows[1:]} == {"a-last"}


def test_newest_open_run_is_the_newest_by_start_time(tmp_path: Path) -> None:
    for name, hour in (("z-first", 8), ("a-last", 9)):
        agenda = Agenda(name, "lab", f"2026-01-01T{hour:02}:00:00+00:00", {}, ())
        RunFolder(tmp_path, "lab", name).create(agenda.write())
    damaged = RunFolder(tmp_path, "lab", "zz-damaged")
    damaged.create(b"{")
    assert newest_open(tmp_path, "lab") == "a-last"
    assert open_runs(tmp_path)[0] == damaged.path


def test_find_run_by_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = home / "results" / "lab" / "20260101T000000Z-smoke"
    assert find_run(home, str(run)) == run
    monkeypatch.chdir(run.parent)
    assert find_run(home, run.name) == run


def test_find_run_in_another_results_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = close(tmp_path / "elsewhere", "lab", "20250101T000000Z-smoke")
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "elsewhere"))
    assert find_run(home, "latest") == run


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nope", "the newest are: lab/20260101T000000Z-smoke, lab/20260102"),
        ("nope/latest", "no closed run 'nope/latest'"),
        ("20260101T000000Z-smoke", r"several systems \(big, lab\)"),
        ("20260104T000000Z-smoke", "no closed run"),
    ],
)
def test_run_that_cannot_be_found(home: Path, text: str, expected: str) -> None:
    with pytest.raises(SeatrialError, match=expected):
        find_run(home, text)


def test_run_id() -> None:
    run_id = new_run_id("smoke")
    assert len(run_id) == len("20261121T063015Z-smoke")
    assert run_id.endswith("Z-smoke")


def test_files_follow_no_link_of_another_user(tmp_path: Path) -> None:
    """The attack: the name under which a file is written first, as a link to ours."""
    target = tmp_path / "private"
    target.write_text("precious")
    (tmp_path / ".page.html.new").symlink_to(target)
    write_file(tmp_path / "page.html", b"page")
    assert target.read_text() == "precious"
    assert (tmp_path / "page.html").read_bytes() == b"page"


def test_interrupt_whose_clean_up_fails_stays_an_interrupt(tmp_path: Path) -> None:
    """Such as a descriptor that is closed already."""
    with pytest.raises(KeyboardInterrupt), disk_errors(tmp_path):
        try:
            raise KeyboardInterrupt
        finally:
            os.close(-1)
    with (
        pytest.raises(SeatrialError, match="cannot write below"),
        disk_errors(tmp_path),
    ):
        os.close(-1)
