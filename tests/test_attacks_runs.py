"""Attacks by the folder of a run: what it claims, what it holds, what changes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from closed_runs import CRITERIA, close_run, rewrite_manifest, ssh_key
from fake_home import write

from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.runs.closed_run import load_run
from seatrial.runs.ssh_signature import sign

GENEROUS = CRITERIA.replace("60 MB/s", "1 MB/s")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    write(home / "reference-data" / "lab" / "criteria.yaml", CRITERIA)
    (home / "reframe-checks").mkdir()
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.delenv("SEATRIAL_RESULTS", raising=False)
    return home


@pytest.fixture
def run(home: Path) -> Path:
    return close_run(home / "results")


def seatrial(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def refused(*arguments: object) -> str:
    """Run a command that must refuse its data, and give what it says."""
    result = seatrial(*arguments)
    assert result.exit_code == 2, result.output
    return result.stderr


@pytest.mark.parametrize("key", ["run", "system", "campaign"])
@pytest.mark.parametrize(
    "name", ["../../evil", "a/b", "-r", "", "*", "a\nb", "\x1b[2J"]
)
def test_names_that_are_paths_are_refused(run: Path, key: str, name: str) -> None:
    rewrite_manifest(run, **{key: name})
    for command in ("judge", "verify", "report", "pack"):
        assert f"{key}: " in refused(command, run)
    assert not list(run.parents[3].rglob("evil"))


def test_system_of_a_pack_chooses_no_criteria_of_its_own(home: Path) -> None:
    run = close_run(home / "results", kept={"system/criteria.yaml": GENEROUS})
    shutil.copy(run / "system" / "criteria.yaml", run.parent / "criteria.yaml")
    rewrite_manifest(run, system="../results/lab")
    assert "system: '../results/lab' is no name" in refused("judge", run)


def test_session_and_raw_folder_of_a_case_stay_in_the_run(run: Path) -> None:
    cases = json.loads((run / "cases.json").read_text())
    for key in ("raw", "session"):
        write(run / "cases.json", json.dumps([{**cases[0], key: "../../../etc"}]))
        rewrite_manifest(run)
        assert "cases.json: damaged: session" in refused("judge", run)


def test_renamed_run_is_refused(run: Path) -> None:
    """A renamed smoke run would become the latest, and be counted twice."""
    renamed = run.rename(run.with_name("20991231T000000Z-acceptance"))
    assert f"holds run {run.name}; expected a folder" in refused("judge", renamed)
    assert "holds run" in refused("query")
    renamed.rename(run.with_name("*"))
    assert "holds run" in refused("query")


def test_report_of_another_run_of_this_name_stays(home: Path, run: Path) -> None:
    (home / "reports").symlink_to(Path(__file__).parents[1] / "reports")
    out = home / "out"
    out.mkdir()
    assert seatrial("report", run, "--form", "csv", "--out", out).exit_code == 0
    ours = (out / "manifest.sha256").read_text()
    other = close_run(home / "elsewhere", description="of somebody else")
    assert seatrial("report", other, "--form", "csv", "--out", out).exit_code == 0
    assert (out / "manifest.sha256").read_text() != ours


def test_report_of_a_pack_replaces_no_report_of_ours(
    home: Path, run: Path, tmp_path: Path
) -> None:
    for name in ("templates", "styles"):
        source = Path(__file__).parents[1] / "reports" / name
        if source.is_dir():
            shutil.copytree(source, home / "reports" / name)
    for _ in range(2):
        assert seatrial("report", run, "--form", "csv").exit_code == 0
    folder = home / "reports" / "out" / "lab" / run.name
    before = (folder / "findings.csv").read_bytes()
    other = close_run(tmp_path / "vendor", description="of somebody else")
    file = tmp_path / "offer.tar.xz"
    assert seatrial("pack", other, file).exit_code == 0
    said = refused("report", file, "--form", "csv")
    assert "holds the report of another run of this name" in said
    assert (folder / "findings.csv").read_bytes() == before


def empty_checksums(run: Path) -> None:
    rewrite_manifest(run, checksums={})


def unlisted_table(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["checksums"]["measurements.parquet"]
    write(run / "manifest.json", json.dumps(manifest))


def endless_device(run: Path) -> None:
    checksums = json.loads((run / "manifest.json").read_text())["checksums"]
    rewrite_manifest(run, checksums={**checksums, "/dev/zero": "0" * 64})


def linked_device(run: Path) -> None:
    checksums = json.loads((run / "manifest.json").read_text())["checksums"]
    (run / "zero").symlink_to("/dev/zero")
    rewrite_manifest(run, checksums={**checksums, "zero": "0" * 64})


def device_for_a_manifest(run: Path) -> None:
    (run / "manifest.json").unlink()
    (run / "manifest.json").symlink_to("/dev/zero")


def pipe_for_a_table(run: Path) -> None:
    (run / "measurements.parquet").unlink()
    os.mkfifo(run / "measurements.parquet")


def added_file(run: Path) -> None:
    write(run / "raw" / "new.txt", "")


def pipe_for_a_manifest(run: Path) -> None:
    (run / "manifest.json").unlink()
    os.mkfifo(run / "manifest.json")


def endless_manifest(run: Path) -> None:
    os.truncate(run / "manifest.json", 1 << 40)


_SORT = """
import resource, sys
from pathlib import Path
from seatrial.runs.closed_run import by_start
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + (512 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
print(*(run.name for run in by_start(map(Path, sys.argv[1:]), "manifest.json")))
"""
"""Sort runs in a process that cannot fill the memory of the machine."""


@pytest.mark.parametrize(
    "attack", [device_for_a_manifest, pipe_for_a_manifest, endless_manifest]
)
def test_manifest_without_an_end_does_not_stop_the_search_for_the_latest(
    run: Path, attack: Any
) -> None:
    """A folder may change between the list of runs and the reading of manifests."""
    other = close_run(run.parents[1], "z-attacked")
    attack(other)
    done = subprocess.run(
        [sys.executable, "-c", _SORT, run, other],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == [other.name, run.name], done.stderr


@pytest.mark.parametrize(
    "attack",
    [
        empty_checksums,
        unlisted_table,
        endless_device,
        linked_device,
        device_for_a_manifest,
        pipe_for_a_table,
        added_file,
    ],
)
def test_what_is_judged_is_verified(run: Path, attack: Any) -> None:
    attack(run)
    with pytest.raises(SeatrialError):
        load_run(run)
    refused("judge", run)


def test_no_number_is_read_after_it_was_hashed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a share that changes, each file is opened once."""
    opened: list[str] = []
    real = os.open

    def count(file: Any, *more: Any, **options: Any) -> int:
        opened.append(Path(os.fsdecode(file)).name)
        return real(file, *more, **options)

    monkeypatch.setattr("os.open", count)
    load_run(run)
    names = ("manifest.json", "cases.json", "measurements.parquet", "report.json")
    assert {name: opened.count(name) for name in names} == dict.fromkeys(names, 1)


def test_doctored_copy_swapped_in_meanwhile_does_not_count(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers change as soon as their file was read for the first time."""
    table = run / "measurements.parquet"
    doctored = pl.read_parquet(table).with_columns(value=pl.lit(9e9))
    import seatrial.plain_files as plain

    read = plain.read_plain

    def read_and_swap(file: Path, *more: Any) -> bytes:
        content = read(file, *more)
        if file == table:
            doctored.write_parquet(table)
        return content

    monkeypatch.setattr("seatrial.runs.listed_files.read_plain", read_and_swap)
    assert load_run(run).measurements.collect()["value"].max() == 90.0
    with pytest.raises(SeatrialError, match="changed: SHA-256"):
        load_run(run)


def test_seal_does_not_outlive_a_change_while_it_was_made(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(content: bytes, key: Path) -> bytes:
        write(run / "cases.json", "[]")
        return sign(content, key)

    monkeypatch.setattr("seatrial.runs.seal.sign", slow)
    result = seatrial("seal", run, "--key", ssh_key(tmp_path / "keys", "a"))
    assert result.exit_code == 1, result.output
    assert "changed while the run was sealed" in result.stderr
    assert not (run / "manifest.json.sig").exists()


WRONG: list[tuple[str, Any]] = [
    ("run", ["r"]),
    ("system", None),
    ("campaign", {"a": 1}),
    ("nodes", {"name": "cn01"}),
    ("nodes", [["cn01"]]),
    ("nodes", [{"name": ["cn01"]}]),
    ("nodes", [{"name": "cn01", "facts": {"memory_mib": "much"}}]),
    ("nodes", [{"name": "cn01", "facts": {"hcas": [1]}}]),
    ("started", 5),
    ("started", "9999-12-31T23:59:59-23:59"),
    ("ended", ["2026"]),
    ("sessions", 3),
    ("sessions", [{"name": "a-1"}]),
    ("software", "none"),
    ("software", {"stacks": [{"version": 1}]}),
    ("software", {"spack": {"environments": 7}}),
    ("weights", "none"),
    ("checks", "ImbRing"),
    ("replay", ["x"]),
    ("imported", 1),
    ("checksums", {"cases.json": ["0"]}),
    ("checksums", {"a\0b": "0" * 64}),
    ("description", "a\0b"),
    ("schema", True),
    ("schema", [2]),
]


@pytest.mark.parametrize(("key", "value"), WRONG, ids=str)
def test_wrong_type_in_the_manifest_is_one_clear_error(
    run: Path, key: str, value: Any
) -> None:
    rewrite_manifest(run, **{key: value})
    for command in ("judge", "verify", "export", "query", "pack"):
        if command == "query" and key == "checksums":
            continue
        assert "manifest.json" in refused(command, run)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        '{"schema": 2, "run": 1e999}',
        '{"schema": Infinity}',
        '{"schema": NaN}',
        '{"schema": 2, "run": "\\ud800"}',
        "\xff",
        "",
        "null",
    ],
    ids=lambda text: text[:20],
)
@pytest.mark.parametrize("name", ["manifest.json", "cases.json"])
def test_json_that_is_none_is_one_clear_error(run: Path, name: str, text: str) -> None:
    (run / name).write_bytes(text.encode("latin-1"))
    if name != "manifest.json":
        rewrite_manifest(run)
    assert name in refused("judge", run)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("nodes", "cn01"),
        ("elapsed_s", "long"),
        ("result", "maybe"),
        ("attempt", [1]),
        ("parameters", []),
        ("reason", {"a": 1}),
        ("case", "a\0b"),
    ],
)
def test_wrong_type_in_a_case_is_one_clear_error(
    run: Path, key: str, value: Any
) -> None:
    cases = json.loads((run / "cases.json").read_text())
    write(run / "cases.json", json.dumps([{**cases[0], key: value}]))
    rewrite_manifest(run)
    assert "cases.json" in refused("judge", run)


@pytest.mark.parametrize(
    "change",
    [
        {"value": pl.lit("fast")},
        {"metric": pl.lit(None, pl.String)},
        {"unit": pl.lit(None, pl.String)},
        {"n": pl.lit([1])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_wrong_column_is_one_clear_error(run: Path, change: Any) -> None:
    table = run / "measurements.parquet"
    pl.read_parquet(table).with_columns(**change).write_parquet(table)
    rewrite_manifest(run)
    assert "measurements.parquet" in refused("judge", run)
