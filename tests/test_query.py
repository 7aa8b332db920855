"""Query: filters and SQL over all closed runs, for reading only."""

import csv
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from closed_runs import close_run, rewrite_manifest
from judge_samples import CASE, sample

from seatrial.cli import main
from seatrial.runs.open_run import RunFolder

FIRST, SECOND = "20260101T000000Z-smoke", "20260201T000000Z-nightly"
ALONE = replace(
    CASE,
    case="OsuLatency",
    check="OsuLatency",
    environment="openmpi",
    nodes=("cn01", "cn02"),
)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs of two systems, one of them a replay, and an open one."""
    folder = tmp_path / "it's"
    monkeypatch.setenv("SEATRIAL_RESULTS", str(folder))
    close_run(folder, FIRST)
    latency = [
        replace(
            sample(ALONE, value, metric="latency", size=8, statistic=statistic),
            attempt=2,
        )
        for value, statistic in ((1.5, "p50"), (9.5, "p99"))
    ]
    rows = [*latency, sample(CASE, 3.0, metric="mem_bw", size=None, node="cn03")]
    close_run(folder, SECOND, rows=rows, cases=[CASE, ALONE])
    close_run(folder, FIRST, "big", rows=[sample(CASE, 55.0, pair="cn04 cn01")])
    replayed = [replace(sample(CASE, 7.0), replay=True)]
    close_run(
        *(folder, "20260301T000000Z-smoke-replay"),
        rows=replayed,
        cases=[replace(CASE, replay=True)],
        replay=f"results/lab/{FIRST}",
    )
    RunFolder(folder, "lab", "20260401T000000Z-smoke").create()
    return folder


def seatrial(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["query", *arguments])


def values(*arguments: str) -> list[Any]:
    result = seatrial(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return [row["value"] for row in json.loads(result.stdout)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", [55.0, 80.0, 90.0, 1.5, 9.5, 3.0]),
        ("--replays", [55.0, 80.0, 90.0, 1.5, 9.5, 3.0, 7.0]),
        ("--system lab", [80.0, 90.0, 1.5, 9.5, 3.0]),
        ("--system big --system lab", [55.0, 80.0, 90.0, 1.5, 9.5, 3.0]),
        ("--system nope", []),
        ("--campaign nightly", [1.5, 9.5, 3.0]),
        ("--since 2026-02-01", [1.5, 9.5, 3.0]),
        ("--until 2026-02-01", [55.0, 80.0, 90.0]),
        ("--since 2026-01-31T23:30-01:00", []),
        ("--since 2026-02-01T01:00+01:00", [1.5, 9.5, 3.0]),
        ("--check OsuLatency", [1.5, 9.5]),
        ("--check OsuLatency --check ImbRing --system big", [55.0]),
        ("--metric latency --statistic p99", [9.5]),
        ("--size 4MiB", [55.0, 80.0, 90.0]),
        ("--size 8B --size 4MiB --metric latency", [1.5, 9.5]),
        ("--environment openmpi", [1.5, 9.5]),
        ("--partition lab:batch --limit 2", [55.0, 80.0]),
        ("--node cn01", [55.0, 80.0, 1.5, 9.5]),
        ("--node cn03", [90.0, 3.0]),
        ("--node cn0", []),
        ("--where value>60", [80.0, 90.0]),
        ("--where attempt=2", [1.5, 9.5]),
        ("--where value>60--or --metric bw", [80.0, 90.0]),
        (f"lab/{FIRST}", [80.0, 90.0]),
        (f"big/latest lab/latest {SECOND}", [55.0, 1.5, 9.5, 3.0]),
        (f"{SECOND} --system big", []),
    ],
)
def test_filters(results: Path, arguments: str, expected: list[float]) -> None:
    assert values(*arguments.split()) == expected


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("", "1 replay is left out: --replays includes them\n"),
        ("--replays", ""),
        ("--system big", ""),
        ("--until 2026-02-01", ""),
        ("--sql SELECT+1", "1 replay is left out: --replays includes them\n"),
    ],
)
def test_replays_that_are_left_out_are_counted(
    results: Path, arguments: str, hint: str
) -> None:
    words = [word.replace("+", " ") for word in arguments.split()]
    assert seatrial(*words).stderr == hint


def test_times_of_runs_are_utc(results: Path) -> None:
    run = results / "lab" / SECOND
    rewrite_manifest(run, started="2026-02-01T01:30:00+02:00")
    assert values("--until", "2026-02-01", "--campaign", "nightly") == [1.5, 9.5, 3.0]
    assert values("--since", "2026-01-31T23:31", "--campaign", "nightly") == []
    assert values("--since", "2026-01-31T23:30", "--campaign", "nightly")
    sql = "SELECT day(started) AS value FROM runs WHERE campaign = 'nightly'"
    assert values("--sql", sql) == [31]


@pytest.mark.usefixtures("results")
def test_csv_begins_no_formula() -> None:
    """A node may be called so, and a spreadsheet computes what begins so."""
    result = seatrial("--sql", "SELECT '=1+1' AS \"@name\", -1.5", "--format", "csv")
    assert result.output.splitlines()[1] == "'=1+1,-1.5"
    assert result.output.startswith("'@name,")


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_formats(results: Path, form: str) -> None:
    text = seatrial("--metric", "latency", "--format", form).stdout
    if form == "table":
        heading, first, _ = text.splitlines()
        assert heading.split()[:3] == ["run", "case", "environment"]
        assert first.split() == [
            *(SECOND, "OsuLatency", "openmpi", "latency", "8", "p50", "1", "1.5", "us"),
        ]
        return
    rows = (
        json.loads(text) if form == "json" else list(csv.DictReader(io.StringIO(text)))
    )
    assert [float(row["value"]) for row in rows] == [1.5, 9.5]
    assert {row["run"] for row in rows} == {SECOND}
    assert {str(row["attempt"]) for row in rows} == {"2"}


def test_not_a_number_is_null_in_json(tmp_path: Path) -> None:
    run = close_run(tmp_path, rows=[sample(CASE, float("nan"))])
    assert values(str(run)) == [None]


def test_nothing_found_is_said(results: Path) -> None:
    result = seatrial("--metric", "lattency", "--format", "csv")
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    assert "no such rows in 3 runs" in result.stderr


def test_no_runs_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "none"))
    assert values() == []
    for view in ("measurements", "cases", "runs"):
        sql = f"SELECT count(*) AS value FROM {view}"
        assert values("--sql", sql) == [0]


def test_cut_table_is_said(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.commands.query._MOST_ROWS", 3)
    result = seatrial()
    assert len(result.stdout.splitlines()) == 4
    assert "only the first 3 rows" in result.stderr
    assert "only" not in seatrial("--limit", "2").stderr
    assert "only" not in seatrial("--metric", "bw").stderr


def test_several_units_are_said(tmp_path: Path) -> None:
    runs = [
        close_run(tmp_path, "20260101T000000Z-a", rows=[sample(CASE, 80.0)]),
        close_run(
            *(tmp_path, "20260102T000000Z-a"),
            rows=[replace(sample(CASE, 0.08), unit="GB/s")],
        ),
    ]
    result = seatrial(*map(str, runs))
    assert "bw is in several units here: GB/s, MB/s" in result.stderr
    assert "several units" not in seatrial(str(runs[0])).stderr


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT max(value) AS value FROM measurements", [90.0]),
        (
            "SELECT count(*) AS value FROM cases GROUP BY system, run ORDER BY 1",
            [1, 1, 2],
        ),
        (
            "FROM measurements JOIN runs USING (system, run) WHERE month(started) = 2",
            [1.5, 9.5, 3.0],
        ),
        (
            "SELECT len(nodes) AS value FROM cases WHERE \"check\" = 'OsuLatency'",
            [2],
        ),
    ],
)
def test_sql(results: Path, sql: str, expected: list[float]) -> None:
    assert values("--sql", sql) == expected


def test_replays_are_marked(results: Path) -> None:
    sql = "SELECT run AS value FROM {} WHERE replay"
    for view in ("measurements", "cases", "runs"):
        assert values("--sql", sql.format(view)) == []
        found = values("--sql", sql.format(view), "--replays")
        assert found == ["20260301T000000Z-smoke-replay"]


def test_replayed_numbers_of_a_measured_run_are_left_out(results: Path) -> None:
    rows = [replace(sample(CASE, 7.5), replay=True), sample(CASE, 8.5)]
    run = close_run(results, "20260302T000000Z-mixed", rows=rows)
    assert values(str(run)) == [8.5]
    assert values(str(run), "--replays") == [7.5, 8.5]


def test_old_runs_lack_columns(results: Path) -> None:
    run = results / "lab" / FIRST
    file = run / "measurements.parquet"
    old = ["block", "attempt", "replay", "hca"]
    pl.read_parquet(file).drop(old).write_parquet(file)
    cases = json.loads((run / "cases.json").read_text())
    kept = [{k: v for k, v in case.items() if k not in old} for case in cases]
    (run / "cases.json").write_text(json.dumps(kept))
    rewrite_manifest(run, schema=1)
    assert values() == [55.0, 80.0, 90.0, 1.5, 9.5, 3.0]
    assert values(str(run), "--where", "attempt IS NULL") == [80.0, 90.0]
    sql = "SELECT count(*) AS value FROM cases WHERE attempt IS NULL"
    assert values("--sql", sql) == [1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--sql", ""), "SQL: found nothing; expected one SELECT"),
        (("--sql", "SELECT 1; SELECT 2"), "SQL: found SELECT, SELECT; expected one"),
        (("--sql", "DROP VIEW measurements"), "SQL: found DROP"),
        (("--sql", "COPY runs TO '{results}/x.csv'"), "SQL: found COPY"),
        (("--sql", "ATTACH '{results}/x.db'"), "SQL: found ATTACH"),
        (("--sql", "INSTALL httpfs"), "SQL: found LOAD"),
        (("--sql", "SET threads = 1"), "SQL: found SET"),
        (("--sql", "SELECT * FROM read_text('/etc/passwd')"), "Permission Error"),
        (("--sql", "SELECT * FROM read_csv('{results}/../x')"), "Permission Error"),
        (("--sql", "SELECT * FROM read_csv('http://localhost/x')"), "SQL: "),
        (("--sql", "SELECT nope FROM measurements"), '"nope" not found'),
        (("--where", "value > 1) OR (nope"), '"nope" not found'),
        (("--where", "1); DROP VIEW cases; SELECT (1"), "SQL: found SELECT, DROP"),
        (("--where", "1 IN (FROM read_text('/etc/passwd'))"), "Permission Error"),
        (("--sql", "SELECT 1", "--metric", "bw"), "--sql selects the rows itself"),
        (("--sql", "SELECT 1", "--node", "cn01"), "--sql selects the rows itself"),
        (("--sql", "SELECT 1", "--where", "true"), "--sql selects the rows itself"),
        (("--size", "8"), "not a message size: '8'"),
        (("--since", "yesterday"), "expected for example 2026-11-21"),
        (("--limit", "0"), "0 is not in the range"),
        (("nope",), "no closed run 'nope'"),
        ((FIRST,), "exists for several systems"),
    ],
)
def test_mistake_is_text_on_stderr(
    results: Path, arguments: tuple[str, ...], expected: str
) -> None:
    before = sorted(results.rglob("*"))
    quoted = str(results).replace("'", "''")
    result = seatrial(*(each.replace("{results}", quoted) for each in arguments))
    assert result.exit_code == 2
    assert expected in result.stderr
    assert "Traceback" not in result.output
    assert sorted(results.rglob("*")) == before


def test_interrupt_ends_a_long_query(results: Path) -> None:
    sql = "SELECT count(*) FROM range(1000000000000) a, range(1000) b WHERE a <> b"
    program = Path(sys.executable).parent / "seatrial"
    with subprocess.Popen([program, "query", "--sql", sql]) as process:
        while "duckdb" not in Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=10) != 0
        finally:
            process.kill()


def truncate(run: Path) -> None:
    file = run / "measurements.parquet"
    file.write_bytes(file.read_bytes()[:-100])


def remove_numbers(run: Path) -> None:
    (run / "measurements.parquet").unlink()


def break_manifest(run: Path) -> None:
    (run / "manifest.json").write_text("{")


def newer(run: Path) -> None:
    rewrite_manifest(run, schema=3)


def future(run: Path) -> None:
    rewrite_manifest(run, started="2100-01-01T00:00:00+00:00")


def twice(run: Path) -> None:
    rewrite_manifest(run, run=FIRST)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (truncate, "measurements.parquet'; `seatrial verify` names"),
        (remove_numbers, "measurements.parquet"),
        (break_manifest, "manifest.json: not valid JSON"),
        (newer, "manifest.json: made by a newer Seatrial: schema 3"),
        (future, "manifest.json: started lies in the future"),
        (twice, f"holds run {FIRST}; expected a folder of the same name"),
    ],
)
def test_damaged_run_is_named(
    results: Path, damage: Callable[[Path], None], expected: str
) -> None:
    run = results / "lab" / SECOND
    damage(run)
    result = seatrial("--metric", "bw")
    assert result.exit_code == 2
    assert expected in result.stderr
    assert SECOND in result.stderr
    assert result.stdout == ""


def test_damaged_cases_are_named(results: Path) -> None:
    (results / "lab" / SECOND / "cases.json").write_text("[{")
    assert len(values()) == 6
    result = seatrial("--sql", "SELECT * FROM cases")
    assert result.exit_code == 2
    assert f"{SECOND}/cases.json" in result.stderr
