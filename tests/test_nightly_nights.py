"""Nights as numbers: one value for each node and metric, faults, and the cache."""

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pytest
from closed_runs import close_run
from judge_samples import CASE, sample
from night_runs import Machine, close_night

from seatrial.errors import SeatrialError
from seatrial.nightly.nights import Night, night_at, night_of
from seatrial.nightly.tonight import risk_of_a_night
from seatrial.nightly.visits import visits_of
from seatrial.nightly.window import Window
from seatrial.runs.closed_run import load_run
from seatrial.runs.ledger_entries import Entry
from seatrial.runs.verified_cache import cache_folder

NODES = tuple(f"cn{number:02}" for number in range(1, 9))
START = datetime(2026, 3, 1, 1, 5)
REFUSED = (
    "command 'sbatch rfm_job.sh' failed: sbatch: error: Batch job submission failed: "
    "Requested time limit is invalid (missing or exceeds some limit)"
)
WINDOW = Window(time(1), time(5))
NO_MODEL = """schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: contract, clause: "3.1"}
criteria:
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "seatrial" / "runs"


def nights_of(paths: Iterable[Path], alarms: float) -> list[Night]:
    return [night_at(path, alarms) for path in paths]


def test_a_night_has_the_median_of_each_node(tmp_path: Path) -> None:
    run = load_run(close_night(tmp_path, Machine(NODES), NODES, START))
    night = night_of(run, 1.0)
    assert {str(one.metric.metric) for one in night.series} == {"bw_4MiB", "latency_8B"}
    values = (
        run.measurements.filter(metric="bw", node="cn03").collect()["value"].to_list()
    )
    of_bandwidth = night.series[0]
    assert of_bandwidth.metric.higher_is_better
    assert of_bandwidth.values["cn03"] == pytest.approx(np.median(values))
    assert night.configurations["cn01"]["kernel"] == "6.1.0"
    assert night.faults == []


def test_a_night_of_a_model_machine_is_known_as_one(tmp_path: Path) -> None:
    measured = load_run(close_run(tmp_path))
    model = load_run(close_run(tmp_path, "20260102T000000Z-smoke", model=True))
    assert not night_of(measured, 1.0).model
    assert night_of(model, 1.0).model


def test_a_number_of_a_pair_counts_for_both_nodes(tmp_path: Path) -> None:
    rows = [sample(CASE, 80.0, pair="cn01 cn02"), sample(CASE, 90.0, pair="cn02 cn03")]
    night = night_of(load_run(close_run(tmp_path, rows=rows)), 1.0)
    assert night.series[0].values == {"cn01": 80.0, "cn02": 85.0, "cn03": 90.0}


def test_a_gross_fault_is_found_in_one_night(tmp_path: Path) -> None:
    machine = Machine(NODES, slow={"cn05": 0.5})
    path = close_night(tmp_path, machine, NODES, START, repeats=4)
    faults = night_of(load_run(path), 1.0).faults
    assert {fault.place for fault in faults} == {"cn05"}
    assert "bw_4MiB" in faults[0].text


@pytest.mark.parametrize("model", ["", "model: any, ", "model: normal, "])
def test_kept_criteria_with_a_limit_of_0_are_judged(tmp_path: Path, model: str) -> None:
    rule = f"  - {{check: ImbRing, {model}limits: {{latency_8B: 0 us}}}}\n"
    path = close_night(
        tmp_path, Machine(NODES), NODES, START, repeats=20, criteria=NO_MODEL + rule
    )
    faults = night_of(load_run(path), 1.0).faults
    assert {fault.place for fault in faults} == {*NODES}
    assert all("latency_8B" in fault.text for fault in faults)


@pytest.mark.parametrize(
    ("reason", "counts"),
    [
        ("the job never started within its pending limit of 60 s: CANCELLED", False),
        ("the job ended as PREEMPTED; no output", False),
        ("the job ended as DEADLINE; no output", False),
        ("the job ended as CANCELLED; no output", False),
        (REFUSED, False),
        ("the job never started within its pending limit: NODE_FAIL", True),
        ("the job never started: BOOT_FAIL", True),
        ("the job ended as NODE_FAIL; no output", True),
        ("the job exceeded its time limit of 60 s; no output", True),
    ],
)
def test_a_job_that_gave_way_is_no_fault(
    tmp_path: Path, reason: str, counts: bool
) -> None:
    path = close_night(
        tmp_path, Machine(NODES), NODES, START, failed={"nodes-2": reason}
    )
    night = night_of(load_run(path), 1.0)
    assert bool(night.faults) == counts
    assert night.yielded == (not counts)
    assert night.series[0].values["cn01"] > 0


def test_a_night_spends_the_same_risk_each_time(tmp_path: Path) -> None:
    assert risk_of_a_night(1.0) == pytest.approx(1 / 2 / 365)
    machine = Machine(NODES)
    paths = [
        close_night(tmp_path, machine, NODES, START + timedelta(days=day))
        for day in range(6)
    ]
    machine.slow["cn05"] = 0.5
    paths.append(
        close_night(tmp_path, machine, NODES, START + timedelta(days=6), repeats=4)
    )
    assert [len(night.faults) > 0 for night in nights_of(paths, 1.0)] == [False] * 6 + [
        True
    ]


def test_a_night_is_kept_and_verified_once(tmp_path: Path, own_cache: Path) -> None:
    path = close_night(tmp_path, Machine(NODES), NODES, START)
    first = nights_of([path], 1.0)
    (file,) = own_cache.iterdir()
    assert file.name.startswith(load_run(path).digest)
    assert own_cache.stat().st_mode & 0o777 == 0o700
    (path / "cases.json").write_text("[]")
    assert nights_of([path], 1.0) == first  # from the cache
    file.write_text("{}")
    with pytest.raises(SeatrialError, match=r"cases\.json"):
        nights_of([path], 1.0)


def test_a_changed_manifest_is_another_night(tmp_path: Path, own_cache: Path) -> None:
    path = close_night(tmp_path, Machine(NODES), NODES, START)
    nights_of([path], 1.0)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["description"] = "changed"
    (path / "manifest.json").write_text(json.dumps(manifest))
    nights_of([path], 1.0)
    assert len([*own_cache.iterdir()]) == 2


@pytest.mark.parametrize("foreign", ["mode", "owner", "link"])
def test_the_cache_of_others_is_not_used(
    tmp_path: Path, own_cache: Path, foreign: str
) -> None:
    own_cache.mkdir(parents=True, mode=0o700)
    if foreign == "mode":
        own_cache.chmod(0o755)
    elif foreign == "owner":
        os.chown(own_cache, 65534, 65534)
    else:
        shutil.move(own_cache, tmp_path / "elsewhere")
        own_cache.symlink_to(tmp_path / "elsewhere")
    assert cache_folder() is None
    path = close_night(tmp_path / "runs", Machine(NODES), NODES, START)
    assert nights_of([path], 1.0)
    assert [*own_cache.iterdir()] == []


def test_visits_have_the_night_whose_window_opened(tmp_path: Path) -> None:
    machine, late = Machine(NODES), Window(time(22), time(4))
    moments = [datetime(2026, 3, 1, 23), datetime(2026, 3, 3, 1)]
    nights = nights_of([close_night(tmp_path, machine, NODES, m) for m in moments], 1.0)
    class_of = dict.fromkeys(NODES[:-1], "batch")
    visits = visits_of(nights, class_of, late, [])
    assert visits.nights.tolist() == [date(2026, 3, 1), date(2026, 3, 2)]
    assert visits.nodes == NODES[:-1]  # cn08 is no node of the system any more
    assert visits.values.shape == (2, 7, 2)
    assert not np.isnan(visits.values).any()


def test_a_retest_of_the_same_night_adds_to_it(tmp_path: Path) -> None:
    machine = Machine(NODES)
    nights = nights_of(
        [
            close_night(tmp_path, machine, NODES[:4], START),
            close_night(tmp_path, machine, NODES[3:6], START + timedelta(minutes=30)),
        ],
        1.0,
    )
    visits = visits_of(nights, dict.fromkeys(NODES, "batch"), WINDOW, [])
    assert visits.nights.size == 1
    assert visits.nodes == NODES[:6]
    assert visits.runs[0].startswith("20260301T010500")
    assert not np.isnan(visits.values).any()


def test_firmware_and_repairs_are_seen(tmp_path: Path) -> None:
    machine = Machine(NODES)
    first = close_night(tmp_path, machine, NODES, START)
    machine.firmware["cn02"] = "20.41"
    second = close_night(tmp_path, machine, NODES, START + timedelta(days=1))
    third = close_night(tmp_path, machine, NODES, START + timedelta(days=2))
    moment = START + timedelta(hours=12)
    repair = Entry(
        9, "repaired", f"{moment.isoformat()}+00:00", "login", "", node="cn05"
    )
    class_of = dict.fromkeys(NODES, "batch")
    visits = visits_of(
        nights_of([first, second, third], 1.0), class_of, WINDOW, [repair]
    )
    one, two = visits.configurations[:, 0], visits.configurations[:, 1]
    assert len({*one.tolist()}) == 1
    assert two[0] != two[1] == two[2]
    changed = visits.configured[two[1]]
    assert "20.41" in changed["firmware"]
    assert visits.repaired[:, 4].tolist() == [False, True, False]
    assert visits.repaired.sum() == 1


def test_a_case_keeps_its_numbers_where_another_gave_way(tmp_path: Path) -> None:
    run = load_run(close_night(tmp_path, Machine(NODES), NODES, START))
    gone = replace(run.cases[1], result="fail", reason="the job ended as PREEMPTED; x")
    assert night_of(replace(run, cases=(run.cases[0], gone)), 1.0).faults == []


def test_a_node_that_no_case_tried_is_not_measured(tmp_path: Path) -> None:
    gave_way = "the job ended as PREEMPTED; no output"
    every = {f"nodes-{repeat}": gave_way for repeat in (1, 2, 3)}
    run = load_run(close_night(tmp_path, Machine(NODES), NODES, START, failed=every))
    night = night_of(run, 1.0)
    assert (night.configurations, night.series, night.yielded) == ({}, [], 3)


def test_a_retest_by_day_belongs_to_the_next_night(tmp_path: Path) -> None:
    machine = Machine(NODES)
    by_day = datetime(2026, 3, 1, 10)
    paths = [
        close_night(tmp_path, machine, NODES, START),
        close_night(tmp_path, machine, NODES[:2], by_day),
        close_night(tmp_path, machine, NODES, START + timedelta(days=1)),
    ]
    class_of = dict.fromkeys(NODES, "batch")
    before, after = (
        visits_of(nights_of(paths[:count], 1.0), class_of, WINDOW, [])
        for count in (1, 3)
    )
    assert after.nights.tolist() == [date(2026, 3, 1), date(2026, 3, 2)]
    assert np.array_equal(before.values[0], after.values[0])
    assert after.runs[1].startswith("20260302")


def test_measured_pairs_are_known_in_both_directions(tmp_path: Path) -> None:
    rows = [sample(CASE, 80.0, pair="cn02 cn01"), sample(CASE, 90.0, pair="cn01 cn02")]
    night = night_of(load_run(close_run(tmp_path, rows=rows)), 1.0)
    assert night.pairs == ["cn01 - cn02"]
