"""Copies, repairs and the order of time: which numbers of a run count."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from closed_runs import rewrite_manifest
from judge_samples import CASE, LIMIT, judged, make_run, repeats, sample
from ledger_runs import LIMITS, NAMES, judged_run, ledger_run, rows_at, start_run

from seatrial.errors import SeatrialError
from seatrial.judge.joint_runs import rows as rows_of_runs
from seatrial.judge.judge import judge
from seatrial.judge.run_history import since_repairs
from seatrial.judge.sampling import rows_of, sampled
from seatrial.model.cases import Case
from seatrial.model.records import Measurement
from seatrial.runs.closed_run import Run, load_run
from seatrial.runs.ledger import LEDGER, note_repair

FIRST, SECOND, THIRD, *_ = NAMES


def rename_copy(
    run: Path, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> Path:
    """Copy a closed run under another name, with other names and ids inside it."""
    copy = run.with_name(name)
    shutil.copytree(run, copy)
    table = change(pl.read_parquet(copy / "measurements.parquet"))
    table = table.with_columns(run=pl.lit(name))
    table.write_parquet(copy / "measurements.parquet")
    rewrite_manifest(copy, run=name)
    return copy


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table,
        lambda table: table.with_columns(job_id=pl.lit("99")),
        lambda table: table.with_columns(
            session=pl.lit("pairs-7"), start_time=pl.col("start_time") + 86400
        ),
        lambda table: table.sample(fraction=1, shuffle=True, seed=1),
    ],
)
def test_a_renamed_copy_of_a_run_is_refused(
    tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    path = ledger_run(tmp_path, FIRST, rows=rows_at(1e9))
    copy = rename_copy(path, SECOND, change)
    with pytest.raises(SeatrialError, match="hold the same 30 numbers; expected"):
        judge(load_run(path), LIMITS, [load_run(copy)])
    judge(load_run(path), LIMITS)


def test_few_numbers_with_the_same_job_and_time_are_a_copy(tmp_path: Path) -> None:
    path = ledger_run(tmp_path, FIRST, rows=rows_at(1e9, count=1))
    copy = rename_copy(path, SECOND, lambda table: table)
    with pytest.raises(SeatrialError, match="hold the same 1 number;"):
        judge(load_run(path), LIMITS, [load_run(copy)])


def two_sessions(
    second: float, shift: float = 0.0
) -> tuple[list[Case], list[Measurement]]:
    cases = repeats(2)
    rows = [replace(row, session="pairs-1") for row in rows_at(1e9)]
    rows += [
        replace(row, session="pairs-2", repeat=2, job_id="9")
        for row in rows_at(second, shift=shift)
    ]
    return cases, rows


def test_a_session_that_is_twice_in_a_run_is_refused() -> None:
    with pytest.raises(
        SeatrialError, match=r"r/pairs-1 and r/pairs-2 hold the same 30"
    ):
        judged(make_run(*two_sessions(1e9 + 3600)), LIMIT)
    judged(make_run(*two_sessions(1e9 + 3600, shift=1e-5)), LIMIT)


def test_rounded_numbers_may_repeat() -> None:
    """On a quiet machine a program prints the same few digits again and again."""
    cases, rows = two_sessions(1e9 + 3600)
    rounded = [replace(row, value=float(f"{row.value:.4g}")) for row in rows]
    judged(make_run(cases, rounded), LIMIT)


def series_of(run: Run) -> dict[str, list[float]]:
    """Return the values of each destination in the order that the judge takes."""
    data = sampled([rows_of(run).collect()], None)
    names = data.places["destination"].cast(pl.String).to_list()
    return dict(zip(names, data.values.tolist(), strict=True))


def test_the_order_of_rows_and_runs_means_nothing(tmp_path: Path) -> None:
    """Allocations count in the order of time: shuffled files change no digit."""
    cases = repeats(12)
    rows = [
        replace(
            sample(case, 70.0 - 0.9 * number + 0.37 * place, pair=f"cn01 cn0{place}"),
            start_time=1e9 + 3600 * number,
        )
        for number, case in enumerate(cases)
        for place in (2, 3, 4)
    ]
    run = make_run(cases, rows)
    whole = judged(run, LIMIT)
    for seed in (1, 2, 3):
        table = run.measurements.collect().sample(fraction=1, shuffle=True, seed=seed)
        shuffled = replace(run, measurements=table.lazy())
        assert judged(shuffled, LIMIT).digest == whole.digest
        assert series_of(shuffled) == series_of(run)
    first = series_of(run)["cn02"]
    assert first == sorted(first, reverse=True), "in the order of time"


def test_sessions_stand_in_for_missing_times() -> None:
    cases = repeats(8)
    rows = [
        replace(
            sample(case, 70.0 - number, pair="cn01 cn02"), start_time=None, repeat=1
        )
        for number, case in enumerate(cases)
    ]
    run = make_run(cases, rows)
    sessions = [
        {"name": case.session, "started": f"2026-01-0{day}T00:00:00+00:00"}
        for day, case in enumerate(cases, 1)
    ]
    run = replace(run, manifest={**run.manifest, "sessions": sessions})
    shuffled = run.measurements.collect().sample(fraction=1, shuffle=True, seed=1)
    again = replace(run, measurements=shuffled.lazy())
    assert series_of(again) == series_of(run)
    assert series_of(run)["cn02"] == [70.0 - number for number in range(8)]


def test_joined_runs_in_any_order(tmp_path: Path) -> None:
    """Runs that are judged together are looks at one series, from the first on."""
    paths = [
        ledger_run(tmp_path, name, rows=rows_at(1e9 + day * 86400, shift=day))
        for day, name in enumerate((FIRST, SECOND, THIRD))
    ]
    first, second, third = map(load_run, paths)
    view = judge(second, LIMITS, [third]).ledger
    assert view is not None and view.number == 2
    one, other = judge(first, LIMITS, [third]), judge(third, LIMITS, [first])
    assert one.ledger is not None and one.ledger.number == 2
    assert f"judged together without the runs between: {SECOND}" in one.history
    assert [f.n for f in one.findings] == [f.n for f in other.findings]
    assert [f.lower for f in one.findings] == [f.lower for f in other.findings]


def test_numbers_from_before_a_repair_do_not_count(tmp_path: Path) -> None:
    """Of a repaired node, and of its pairs; those of others are pooled as before."""
    folder = tmp_path / "lab"
    folder.mkdir()

    def rows(seconds: float, level: float) -> list[Measurement]:
        return [
            replace(sample(CASE, value, pair=pair), start_time=seconds)
            for pair, value in (("cn01 cn02", 80.0), ("cn02 cn03", level))
        ]

    first = ledger_run(tmp_path, FIRST, rows=rows(1e9, 5.0))
    note_repair(folder, "cn03", "new cable")
    repaired = (folder / LEDGER).read_bytes().splitlines()[-1]
    assert b'"node":"cn03"' in repaired
    later = datetime.now().timestamp() + 60
    second = ledger_run(tmp_path, SECOND, rows=rows(later, 80.5))
    run, other = load_run(second), load_run(first)
    judgement = judge(run, LIMITS, [other])
    kept, _ = since_repairs(rows_of_runs([other, run]), judgement.ledger)
    assert kept.select("run", "destination", "value").collect().rows() == [
        (FIRST, "cn02", 80.0),
        (SECOND, "cn02", 80.0),
        (SECOND, "cn03", 80.5),
    ]
    assert 5.0 not in [f.value for f in judgement.findings]
    assert (
        "node cn03 was repaired (new cable): 1 number of it from before that does not "
        "count" in judgement.history
    )
    assert not any("repair" in note for note in judge(other, LIMITS).notes)


def test_a_cut_off_start_is_the_same_run(tmp_path: Path) -> None:
    """A driver that dies between the entry and its run goes on with the same number."""
    place = start_run(tmp_path, FIRST)
    assert start_run(tmp_path, FIRST) == place
    view = judged_run(ledger_run(tmp_path, FIRST)).ledger
    assert view is not None and (view.number, view.count) == (1, 1)
