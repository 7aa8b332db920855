"""The system as provisioned, and its nodes as Slurm sees them."""

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_home import SETTINGS, fake_program, write, write_home

from seatrial import paths
from seatrial.cli import main
from seatrial.errors import Exit, SeatrialError
from seatrial.model.records import Node
from seatrial.paths import home as find_home
from seatrial.system import slurm
from seatrial.system.description import (
    NodeClass,
    NodeState,
    System,
    known_systems,
    load_system,
    node_states,
    usable_nodes,
)
from seatrial.system.slurm import availability


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write_home(tmp_path / "home")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path / "bin"


def on_slurm(system: System) -> System:
    return replace(system, uses_slurm=True)


def test_load_system(home: Path) -> None:
    system = load_system(home, "lab")
    assert system.nodes == (Node("cn01", {"cpus": 2}), Node("cn02", {"cpus": 2}))
    assert system.classes == {"batch": NodeClass(("cn01", "cn02"), "batch")}
    assert system.demonstration is True
    assert system.model is True
    assert system.uses_slurm is False
    assert system.suite["git_commit"] == "abc"


def test_features_are_of_a_partition_with_each_of_its_stacks(home: Path) -> None:
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    settings["systems"][0]["partitions"][0]["features"] = ["slurm"]
    settings["environments"][1]["features"] = ["mpi", "osu"]
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    assert load_system(home, "lab").features == (
        frozenset({"slurm", "mpi"}),
        frozenset({"slurm", "mpi", "osu"}),
    )


@pytest.mark.parametrize(
    ("scheduler", "expected"), [("slurm", True), ("squeue", True), ("local", False)]
)
def test_uses_slurm(home: Path, scheduler: str, expected: bool) -> None:
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    settings["systems"][0]["partitions"][0]["scheduler"] = scheduler
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    assert load_system(home, "lab").uses_slurm is expected


def test_unknown_system_lists_the_known_ones(home: Path) -> None:
    write(home / "inventories" / "sample" / "hosts.yml", "{}")
    write(home / "etc" / "here" / "system.json", "{}")
    assert known_systems(home) == ["here", "lab", "sample"]
    with pytest.raises(SeatrialError) as raised:
        load_system(home, "lba")
    assert "unknown system 'lba'; known systems: here, lab, sample" in str(raised.value)
    assert raised.value.exit_code == Exit.USAGE


def test_system_without_settings_names_the_playbook(home: Path) -> None:
    (home / "etc" / "lab" / "settings.yaml").unlink()
    with pytest.raises(SeatrialError, match=r"inventories/lab playbooks/site\.yml"):
        load_system(home, "lab")


@pytest.mark.parametrize("text", ["{", "{}", '{"nodes": 1}', '{"system": "lab"}'])
def test_damaged_system_is_refused(home: Path, text: str) -> None:
    write(home / "etc" / "lab" / "system.json", text)
    with pytest.raises(SeatrialError, match=r"damaged|not valid JSON"):
        load_system(home, "lab")


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("idle", "none", (True, "")),
        ("mixed", "none", (True, "")),
        ("allocated", "none", (True, "")),
        ("idle~", "none", (True, "")),
        ("maint", "burn-in", (True, "")),
        ("reserved", "none", (True, "")),
        ("idle*", "none", (False, "idle, not responding")),
        ("down*", "lost", (False, "down, not responding (lost)")),
        ("down", "Not responding", (False, "down (Not responding)")),
        ("drained", "bad DIMM", (False, "drained (bad DIMM)")),
        ("draining", "bad DIMM", (False, "draining (bad DIMM)")),
        ("drained*", "", (False, "drained, not responding")),
        ("unknown", "none", (False, "unknown")),
        ("inval", "Low RealMemory", (False, "inval (Low RealMemory)")),
        ("powered_down", "none", (False, "powered_down")),
        ("future", "none", (False, "future")),
    ],
)
def test_availability(state: str, reason: str, expected: tuple[bool, str]) -> None:
    assert availability(state, reason) == expected


def test_node_states(home: Path, programs: Path) -> None:
    listing = "echo 'cn01|idle|none'; echo 'cn03|down|x|y'"
    fake_program(programs, "sinfo", f'[ "$SINFO_ALL" ] && {{ {listing}; }}')
    system = on_slurm(load_system(home, "lab"))
    assert node_states(system) == (
        NodeState(system.nodes[0], True, ""),
        NodeState(system.nodes[1], False, "unknown to Slurm"),
    )


def test_system_without_slurm_has_all_its_nodes(home: Path, programs: Path) -> None:
    fake_program(programs, "sinfo", "exit 1")
    assert all(state.present for state in node_states(load_system(home, "lab")))


def test_no_node_left(home: Path, programs: Path) -> None:
    fake_program(programs, "sinfo", "echo 'cn01|drained|fan'; echo 'cn02|down*|none'")
    with pytest.raises(SeatrialError) as raised:
        node_states(on_slurm(load_system(home, "lab")))
    assert "cn01: drained (fan)\n  cn02: down, not responding\n" in str(raised.value)
    assert "state=resume" in str(raised.value)


def test_slurm_that_does_not_answer(
    home: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(programs, "sinfo", "echo 'Unable to contact' >&2; exit 1")
    with pytest.raises(SeatrialError, match="Slurm does not answer: Unable to contact"):
        node_states(on_slurm(load_system(home, "lab")))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SeatrialError, match="sinfo is not installed here"):
        node_states(on_slurm(load_system(home, "lab")))


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        ((), {}),
        (("cn01",), {"thin": 1}),
        (("cn03",), {"fat": 0}),
        (("cn01", "cn03"), {"thin": 1, "fat": 0}),
    ],
)
def test_an_absent_node_counts_in_its_own_partition(
    home: Path, absent: tuple[str, ...], expected: dict[str, int]
) -> None:
    classes = {
        "thin": NodeClass(("cn01", "cn02"), "batch"),
        "fat": NodeClass(("cn03",), "batch"),
    }
    system = replace(load_system(home, "lab"), classes=classes)
    states = tuple(
        NodeState(Node(name), name not in absent, "")
        for name in ("cn01", "cn02", "cn03")
    )
    assert usable_nodes(system, states) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("CANCELLED by 0|None", slurm.JobEnd("CANCELLED by 0", False)),
        ("TIMEOUT|2026-11-21T06:30:15", slurm.JobEnd("TIMEOUT", True)),
        ("PENDING|Unknown", slurm.JobEnd("PENDING", False)),
        ("", None),
    ],
)
def test_job_end(programs: Path, line: str, expected: slurm.JobEnd | None) -> None:
    fake_program(programs, "sacct", f"[ -z '{line}' ] || echo '{line}'")
    fake_program(programs, "scontrol", "exit 1")
    assert slurm.job_end("7") == expected


@pytest.mark.parametrize(
    ("start", "started"), [("2026-11-21T06:30:15", True), ("Unknown", False)]
)
def test_job_end_without_accounting(programs: Path, start: str, started: bool) -> None:
    fake_program(programs, "sacct", "exit 1")
    shown = f"JobId=7 JobName=a b JobState=PREEMPTED Reason=None StartTime={start} X=1"
    fake_program(programs, "scontrol", f"echo '{shown}'")
    assert slurm.job_end("7") == slurm.JobEnd("PREEMPTED", started)


def test_pending_reasons_of_our_own_jobs(programs: Path) -> None:
    reason = "ReqNodeNotAvail, UnavailableNodes:cn03"
    rows = (
        f"1|seatrial:r1:a-1|{reason}",
        "2|(null)|Priority",
        "3|seatrial:r1:a-1|Dependency",
    )
    jobs = "; ".join(f"echo '{row}'" for row in rows)
    fake_program(programs, "squeue", jobs)
    assert slurm.pending_reasons("seatrial:r1:a-1") == {"1": reason}


def test_controller_that_does_not_answer(programs: Path) -> None:
    fake_program(programs, "squeue", "exit 1")
    assert slurm.pending_reasons("seatrial:r1:a-1") is None


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("7|RUNNING|(null)|cn01|None|/x", ["8", "9"]),
        ("8|RUNNING|(null)|cn01|None|/x", ["9"]),
        ("7|RUNNING|seatrial:r1:a-1|cn01|None|/x", None),
        ("", ["8", "9"]),
    ],
)
def test_lost_jobs(programs: Path, queue: str, expected: list[str] | None) -> None:
    """Job 6 was submitted before, 10 is finished."""
    began = time.mktime((2026, 11, 21, 6, 30, 0, 0, 0, -1))
    fake_program(programs, "squeue", f"[ -z '{queue}' ] || echo '{queue}'")
    rows = (
        "6|RUNNING|2026-11-21T06:29:00",
        "8|RUNNING|2026-11-21T06:30:01",
        "9|PENDING|2026-11-21T06:31:00",
        "10|CANCELLED by 0|2026-11-21T06:31:00",
    )
    fake_program(programs, "sacct", "; ".join(f"echo '{row}'" for row in rows))
    assert slurm.lost_jobs("seatrial:r1:a-1", began) == expected
    fake_program(programs, "squeue", "exit 1")
    assert slurm.lost_jobs("seatrial:r1:a-1", began) is None
    fake_program(programs, "squeue", "true")
    fake_program(programs, "sacct", "true")
    assert slurm.lost_jobs("seatrial:r1:a-1", began) == []
    fake_program(programs, "sacct", "exit 1")
    assert slurm.lost_jobs("seatrial:r1:a-1", began) is None


def test_only_our_own_jobs_are_cancelled(programs: Path, tmp_path: Path) -> None:
    jobs = "; ".join(
        f"echo '{job}|RUNNING|{comment}|cn01|None|/x'"
        for job, comment in ((1, "seatrial:r1:a-1"), (2, "seatrial:r10:a-1"), (3, ""))
    )
    fake_program(programs, "squeue", jobs)
    fake_program(programs, "scancel", f"echo $* >> {tmp_path / 'cancelled'}")
    assert slurm.cancel("seatrial:r1:") == ["1"]
    assert (tmp_path / "cancelled").read_text() == "1\n"


def test_home(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEATRIAL_HOME", raising=False)
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "elsewhere" / "paths.py"))
    monkeypatch.chdir(home / "etc" / "lab")
    assert find_home() == home
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    assert find_home() == home
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path))
    with pytest.raises(SeatrialError, match="no reframe-checks/ and reference-data/"):
        find_home()


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that another user put above our working folder; the suite has its own."""
    monkeypatch.delenv("SEATRIAL_HOME", raising=False)
    own = write_home(tmp_path / "own")
    module = own / "lib" / "seatrial" / "paths.py"
    monkeypatch.setattr(paths, "__file__", str(module))
    planted = write_home(tmp_path / "shared")
    (planted / "work").mkdir()
    monkeypatch.chdir(planted / "work")
    if os.geteuid() == 0:
        os.chown(planted, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    return planted


def test_planted_home_does_not_win(planted: Path) -> None:
    assert find_home() == planted.parent / "own"


def test_home_of_another_user_is_refused(
    planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(planted.parent / "own")
    with pytest.raises(SeatrialError, match="shared: it belongs to another user"):
        find_home()
    monkeypatch.setenv("SEATRIAL_HOME", str(planted))  # named on purpose
    assert find_home() == planted


@pytest.mark.parametrize("part", ["", "reframe-checks", "reference-data"])
def test_home_that_everybody_can_write_is_refused(planted: Path, part: str) -> None:
    folder = planted.parent / "own" / part
    folder.chmod(0o777)
    with pytest.raises(
        SeatrialError, match=r"every user can write to it \(mode 0777\)"
    ):
        find_home()


def test_commands_let_nobody_else_write(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A umask of 000 left closed runs that every user could change."""
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    results = tmp_path / "results"
    begin = ["run", "lab", "--campaign", "smoke", "--run-id", "r1", "--no-judge"]
    before = os.umask(0)
    try:
        done = CliRunner().invoke(main, [*begin, "--results", str(results)])
        assert done.exit_code == 0, done.output
        loose = [path for path in results.rglob("*") if path.stat().st_mode & 0o022]
        assert loose == []
        os.umask(0o077)
        CliRunner().invoke(main, ["status", "lab"])
        assert os.umask(0) == 0o077, "a stricter one stays"
    finally:
        os.umask(before)
