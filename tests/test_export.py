"""Export: measurements of runs for other programs."""

import io
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result
from closed_runs import close_run, rewrite_manifest
from judge_samples import CASE, sample
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parsed,
)

from seatrial.cli import main
from seatrial.runs.closed_run import load_run

START = 1767225600.0
"""20260101T000000Z."""


def seatrial(*arguments: object) -> Result:
    return CliRunner().invoke(
        main, ["export", *(str(argument) for argument in arguments)]
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    timed = replace(sample(CASE, 80.0, pair="cn01 cn02"), start_time=START + 1.5)
    untimed = replace(
        sample(CASE, 1.25, metric="latency", size=8, node="cn01"), start_time=None
    )
    return close_run(tmp_path, rows=[timed, untimed])


def test_openmetrics_as_a_whole(run: Path) -> None:
    same = (
        'system="lab",run="20260101T000000Z-smoke",campaign="smoke",session="pairs-1",'
        'repeat="1",attempt="1",partition="lab:batch",environment="intelmpi",'
        'check="ImbRing",case="ImbRing"'
    )
    assert seatrial(run, "--format", "openmetrics").stdout == (
        "# TYPE seatrial_bw_MB_per_s gauge\n"
        "# UNIT seatrial_bw_MB_per_s MB_per_s\n"
        f'seatrial_bw_MB_per_s{{{same},source="cn01",destination="cn02",'
        'size_bytes="4194304",statistic="mean"} 80.0 1767225601.500\n'
        "# TYPE seatrial_latency_us gauge\n"
        "# UNIT seatrial_latency_us us\n"
        f'seatrial_latency_us{{{same},node="cn01",size_bytes="8",statistic="mean"}} '
        "1.25 1767225600.000\n"
        "# EOF\n"
    )


def test_openmetrics_of_large_runs_come_session_by_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        replace(
            sample(replace(CASE, session=f"pairs-{repeat}"), value, pair=pair),
            start_time=START + 10 * repeat + value,
        )
        for repeat in (2, 1)
        for pair in ("cn01 cn02", "cn02 cn01")
        for value in (1.0, 2.0)
    ]
    run = close_run(tmp_path, rows=rows)
    small = seatrial(run, "--format", "openmetrics").stdout
    monkeypatch.setattr("seatrial.runs.export.FEW_ROWS", 0)
    assert seatrial(run, "--format", "openmetrics").stdout == small
    assert small.index('session="pairs-1"') < small.index('session="pairs-2"')


def families(*arguments: object) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Read OpenMetrics text as Prometheus' own parser does, which is strict."""
    result = seatrial(*arguments, "--format", "openmetrics")
    assert result.exit_code == 0, result.output
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        # The parser of prometheus_client has no types.
        for family in parsed(result.stdout)  # type: ignore[no-untyped-call]
    }


@pytest.mark.parametrize(
    ("metric", "unit", "family"),
    [
        ("latency", "us", "seatrial_latency_us"),
        ("balance_bw", "1", "seatrial_balance_bw_ratio"),
        ("pairs_answered", "%", "seatrial_pairs_answered_percent"),
        ("throttle_events", "count", "seatrial_throttle_events_count"),
        ("Mops_total", "Mop/s", "seatrial_Mops_total_Mop_per_s"),
        ("time-to.solution", "img/s/W", "seatrial_time_to_solution_img_per_s_per_W"),
        ("µ", "Ω", "seatrial____"),
    ],
)
def test_name_ends_in_the_unit(
    tmp_path: Path, metric: str, unit: str, family: str
) -> None:
    row = replace(sample(CASE, 1.0), metric=metric, unit=unit)
    run = close_run(tmp_path, rows=[row], imported={"source": "x"})
    assert set(families(run)) == {family}


def test_names_that_become_the_same_are_an_error(tmp_path: Path) -> None:
    rows = [replace(sample(CASE, 1.0), metric=name) for name in ("a.b", "a_b")]
    run = close_run(tmp_path, rows=rows)
    result = seatrial(run, "--format", "openmetrics")
    assert result.exit_code == 2
    assert "would both be called seatrial_a_b_MB_per_s" in result.stderr
    assert result.stdout == ""


def test_labels_are_escaped(tmp_path: Path) -> None:
    odd = 'a "quote", a \\ and\na line'
    run = close_run(tmp_path, rows=[replace(sample(CASE, 1.0), case=odd)])
    ((labels, _),) = families(run)["seatrial_bw_MB_per_s"]
    assert labels["case"] == odd


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e300, -0.5])
def test_values(tmp_path: Path, value: float) -> None:
    run = close_run(tmp_path, rows=[sample(CASE, value)])
    assert families(run)["seatrial_bw_MB_per_s"][0][1] == value


def test_samples_that_nothing_tells_apart_are_counted(tmp_path: Path) -> None:
    times = (START, START + 1, START, START + 1, START)
    rows = [
        replace(sample(CASE, float(i)), start_time=moment)
        for i, moment in enumerate(times)
    ]
    found = families(close_run(tmp_path, rows=rows))["seatrial_bw_MB_per_s"]
    assert [(value, labels.get("occurrence")) for labels, value in found] == [
        *((0.0, None), (1.0, None), (2.0, "2"), (3.0, "2"), (4.0, "3")),
    ]


def test_samples_of_the_same_labels_are_together(tmp_path: Path) -> None:
    rows = [
        replace(sample(CASE, float(number), node=node), start_time=START + number)
        for number, node in enumerate(("cn01", "cn02", "cn01", "cn02", "cn01"))
    ]
    found = families(close_run(tmp_path, rows=rows))["seatrial_bw_MB_per_s"]
    assert [value for _, value in found] == [0.0, 2.0, 4.0, 1.0, 3.0]


def test_labels_that_are_not_shown_do_not_tell_samples_apart(tmp_path: Path) -> None:
    odd = [("{}", 0.0), ('{"x":1}', 1.0), ("", 2.0)]
    rows = [
        replace(sample(CASE, value), parameters=text, start_time=START)
        for text, value in odd
    ]
    found = families(close_run(tmp_path, rows=rows))["seatrial_bw_MB_per_s"]
    assert [(value, labels.get("occurrence")) for labels, value in found] == [
        *((0.0, None), (2.0, "2"), (1.0, None)),
    ]


def test_replays_and_retries_are_marked(tmp_path: Path) -> None:
    rows = [replace(sample(CASE, 1.0), replay=True, attempt=2), sample(CASE, 2.0)]
    found = families(close_run(tmp_path, rows=rows))["seatrial_bw_MB_per_s"]
    assert [(each.get("replay"), each["attempt"]) for each, _ in found] == [
        ("true", "2"),
        (None, "1"),
    ]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_hold_every_number_of_every_run(
    tmp_path: Path, run: Path, form: str
) -> None:
    other = close_run(tmp_path, "20260102T000000Z-nightly")
    file = tmp_path / f"out.{form}"
    result = seatrial(run, other, run, "--format", form, "--output", file)
    assert (result.exit_code, result.output) == (0, "")
    read = pl.read_csv if form == "csv" else pl.read_parquet
    table = read(file)
    numbers = [
        row
        for each in (run, other)
        for row in load_run(each).measurements.collect()["value"]
    ]
    assert table["value"].to_list() == numbers
    assert table["campaign"].to_list() == ["smoke"] * 2 + ["nightly"] * 2
    assert table["start_time"].to_list()[:2] == [START + 1.5, START]


def test_csv_has_allocations_as_slurm_writes_them(tmp_path: Path) -> None:
    nodes = [f"cn{number:04}" for number in range(1, 1001)]
    row = replace(sample(CASE, 1.0), nodes=" ".join(nodes))
    run = close_run(tmp_path, rows=[row, replace(row, value=2.0)])
    table = pl.read_csv(seatrial(run, "--format", "csv").stdout.encode())
    assert table["nodes"].to_list() == ["cn[0001-1000]"] * 2
    file = tmp_path / "out.parquet"
    assert seatrial(run, "--format", "parquet", "--output", file).exit_code == 0
    assert pl.read_parquet(file)["nodes"].to_list() == [" ".join(nodes)] * 2


def test_standard_output_is_the_default(run: Path) -> None:
    text = seatrial(run).stdout
    assert pl.read_csv(io.BytesIO(text.encode())).height == 2


def test_run_without_numbers(tmp_path: Path) -> None:
    run = close_run(tmp_path)
    pl.read_parquet(run / "measurements.parquet").clear().write_parquet(
        run / "measurements.parquet"
    )
    rewrite_manifest(run)
    assert families(run) == {}
    assert len(seatrial(run).stdout.splitlines()) == 1


def test_changed_run_is_not_exported(run: Path, tmp_path: Path) -> None:
    (run / "cases.json").write_text(json.dumps([]))
    file = tmp_path / "out.csv"
    result = seatrial(run, "--output", file)
    assert result.exit_code == 2
    assert "cases.json: changed: SHA-256 is" in result.stderr
    assert not file.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((), "Missing argument 'RUN...'"), (("--output", "/no/x"), "cannot write below")],
)
def test_mistake(run: Path, arguments: tuple[str, ...], expected: str) -> None:
    result = seatrial(*([run] if arguments else []), *arguments)
    assert result.exit_code == 2
    assert expected in result.stderr
