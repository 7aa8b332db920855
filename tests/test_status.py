"""`seatrial status`: open runs read from their folders, with a stand-in for squeue."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fake_home import fake_program, write, write_home

from seatrial.campaign.node_log import clock
from seatrial.campaign.schedule import Agenda, Planned
from seatrial.campaign.status import Status, read_status
from seatrial.cli import main
from seatrial.model.cases import Case, ListedCase, NodeEvent
from seatrial.runs.closed_sessions import close_session, note_start
from seatrial.runs.lock import driver_lock, driver_of
from seatrial.runs.open_run import RunFolder, open_runs

SEATRIAL = str(Path(sys.executable).parent / "seatrial")
NOW = 1795242615.0  # 2026-11-21T06:30:15Z
START = {"host": "head", "pid": 4711, "started": "2026-11-21T06:30:00+00:00"}
ECHO, GPU, SLOW, HALO = (
    ListedCase("Echo %x=1", "lab:batch", "openmpi"),
    ListedCase("Gpu", "lab:batch", "openmpi"),
    ListedCase("Slow", "lab:batch", "openmpi"),
    ListedCase("Halo %n=2", "lab:batch", "mpich"),
)
LOG = """\
[ReFrame Setup]
[ RUN      ] Echo %x=1 /0000aaaa @lab:batch+openmpi
[     FAIL ] (1/4) Echo %x=1 /0000aaaa @lab:batch+openmpi
==> test failed during 'sanity': test staged in '/x'
[ RUN      ] Gpu /0000bbbb @lab:batch+openmpi
[     SKIP ] (2/4) Gpu /0000bbbb @lab:batch+openmpi [no gpu here]
[ RUN      ] Slow /0000cccc @lab:batch+openmpi
[ RUN      ] Halo %n=2 /0000dddd @lab:batch+mpich
"""


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The results folder of a login node where Slurm has nothing in its queue."""
    results = tmp_path / "results"
    monkeypatch.setenv("SEATRIAL_HOME", str(write_home(tmp_path / "home")))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(results))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(time, "time", lambda: NOW)
    queue(tmp_path)
    return results


def queue(tmp_path: Path, *jobs: str) -> None:
    lines = "\n".join(f"echo '{job}'" for job in jobs) or "true"
    fake_program(tmp_path / "bin", "squeue", lines)


def planned(name: str, *cases: ListedCase, **missing: str) -> Planned:
    block, _, repeat = name.rpartition("-")
    checks = (*(case.check for case in cases), *missing)
    return Planned(name, block, int(repeat), checks, {}, cases, missing)


def open_run(results: Path, run: str = "r1", system: str = "lab") -> Path:
    """An open run of three sessions, none of which is closed."""
    agenda = Agenda(
        run=run,
        system=system,
        created="2026-11-21T06:29:00+00:00",
        campaign={"name": "two", "retries": 0, "max_jobs": 1},
        sessions=(
            planned("all-1", ECHO, GPU, SLOW, HALO, Missing="no feature x"),
            planned("all-2", ECHO, GPU, SLOW, HALO),
            planned("last-1", ECHO),
        ),
    )
    folder = RunFolder(results, system, run)
    folder.create(agenda.write())
    note_start(folder.path, START)
    return folder.path


def close(folder: Path, name: str, times: str, *cases: Case) -> None:
    block, _, repeat = name.rpartition("-")
    started, ended = times.split()
    record = {
        **{"name": name, "block": block, "repeat": int(repeat), "variables": {}},
        **{"started": f"2026-11-21T{started}+00:00", "interrupted": []},
        "ended": f"2026-11-21T{ended}+00:00",
    }
    (folder / "raw" / name).mkdir(parents=True)
    close_session(folder, record, cases, [])


def case(listed: ListedCase, result: str, *nodes: str, attempt: int = 1) -> Case:
    row = {
        **{"session": "all-1", "repeat": 1, "check": listed.check},
        **{"case": listed.case, "partition": listed.partition, "parameters": {}},
        **{"environment": listed.environment, "result": result, "nodes": nodes},
        **{"attempt": attempt, "elapsed_s": None if result == "skip" else 10.0},
    }
    # The row is a mixture of types, each right for its field.
    return Case(**row)  # type: ignore[arg-type]


def close_first(folder: Path) -> None:
    """Close all-1: one case passed at the second try, two failed."""
    close(
        folder,
        "all-1",
        "06:29:05 06:30:00",
        case(ECHO, "fail", "cn01", attempt=1),
        case(ECHO, "pass", "cn01", attempt=2),
        case(GPU, "skip"),
        case(SLOW, "fail", "cn02", "cn03"),
        case(HALO, "fail", "cn03"),
        case(ListedCase("Missing", "", ""), "skip"),
    )


def start_second(folder: Path) -> Path:
    """Start all-2: Slow on a node, Halo in the queue; return ReFrame's stage."""
    write(folder / "raw" / "all-2" / "reframe.txt", LOG)
    stage = folder / "work" / "all-2" / "stage" / "lab" / "batch"
    nodes = "nodes=cn03\nstart={}\n".format
    write(stage / "openmpi" / "Echo_0000aaaa" / "seatrial.job", nodes(NOW - 9))
    write(stage / "openmpi" / "Slow" / "seatrial.job", nodes(NOW - 4))
    write(stage / "mpich" / "Halo_0000dddd" / "rfm_job.sh", "")
    os.utime(stage / "mpich" / "Halo_0000dddd" / "rfm_job.sh", (NOW - 3, NOW - 3))
    return stage


def jobs_of(stage: Path) -> tuple[str, str, str]:
    return (
        f"7|RUNNING|seatrial:r1:all-2|cn03|None|{stage}/openmpi/Slow",
        f"8|PENDING|seatrial:r1:all-2||Resources|{stage}/mpich/Halo_0000dddd",
        f"9|RUNNING|seatrial:r10:all-2|cn04|None|{stage}/openmpi/Slow",
    )


def read(folder: Path, known: dict[str, list[float]] | None = None) -> Status:
    status = read_status(folder, known or {})
    assert status is not None
    return status


def seatrial(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["status", *arguments])


def test_whole_status(results: Path, tmp_path: Path) -> None:
    folder = open_run(results)
    close_first(folder)
    queue(tmp_path, *jobs_of(start_second(folder)))
    (folder / "raw" / "all-2.interrupted-1").mkdir()
    with driver_lock(folder):
        (status,) = json.loads(seatrial("lab", "--format", "json").stdout)
        table = seatrial("lab").stdout
    driver = status.pop("driver")
    assert driver["pid"] == os.getpid()
    assert status == whole_status(folder)
    since = f" since {driver['started']}"
    assert [line.rstrip() for line in table.splitlines()] == [
        "run             lab/r1, campaign two",
        f"driver          at work: process {driver['pid']} on {driver['host']}{since}",
        "sessions        1 of 3 closed",
        "cases           7 of 10 done: 1 pass, 3 fail, 3 skip",
        "running         Slow @lab:batch+openmpi, 4 s, job 7, cn03",
        "pending         Halo %n=2 @lab:batch+mpich, job 8: Resources",
        "failed by node  cn03: 3, cn02: 1",
        "retries         1",
        "cut off         raw/all-2.interrupted-1",
        "time left       26 s",
    ]


def test_cases_that_share_a_job_wait_for_their_turn(
    results: Path, tmp_path: Path
) -> None:
    folder = open_run(results)
    close_first(folder)
    stage = start_second(folder)
    queue(tmp_path, jobs_of(stage)[0])
    write(stage / "openmpi" / "Slow" / "seatrial.pack", "taken=1\njob=7\nbegin=2\n")
    write(stage / "mpich" / "Halo_0000dddd" / "seatrial.pack", "taken=1\njob=7\n")
    with driver_lock(folder):
        table = seatrial("lab").stdout
    waits = "pending         Halo %n=2 @lab:batch+mpich, job 7: for its turn"
    assert waits in table
    assert "running         Slow @lab:batch+openmpi, 4 s, job 7, cn03" in table
    write(stage / "mpich" / "Halo_0000dddd" / "seatrial.pack", "taken=1\n")
    with driver_lock(folder):
        assert waits.replace(", job 7", "") in seatrial("lab").stdout


def whole_status(folder: Path) -> dict[str, Any]:
    """Return the status of a run with one closed session and one at work."""
    return {
        "run": "r1",
        "system": "lab",
        "path": str(folder),
        "campaign": "two",
        "replay": False,
        "alive": True,
        "closing": False,
        "sessions": 3,
        "sessions_closed": 1,
        "cases": 10,
        "done": {"pass": 1, "fail": 3, "skip": 3},
        "running": [
            {
                "case": "Slow @lab:batch+openmpi",
                "session": "all-2",
                "since": NOW - 4,
                "job_id": "7",
                "nodes": "cn03",
                "waits": None,
            },
            {
                "case": "Halo %n=2 @lab:batch+mpich",
                "session": "all-2",
                "since": NOW - 3,
                "job_id": "8",
                "nodes": "",
                "waits": "Resources",
            },
        ],
        "slurm_answers": True,
        "orphans": [],
        "failed_by_node": {"cn03": 3, "cn02": 1},
        "lost": {},
        "spoiled": [],
        "retries": 1,
        "interrupted": ["raw/all-2.interrupted-1"],
        "clock": [],
        "left_s": pytest.approx(10 - 4 + 10 + 10, abs=0.1),
        "phase": None,
    }


def test_lost_nodes_are_named(results: Path) -> None:
    folder = open_run(results)
    close_first(folder)
    file = folder / "sessions" / "all-1.json"
    event = NodeEvent("cn02", "drained", "bad DIMM", "root", NOW)
    loss = {**vars(event), "during": "Slow"}
    record = {**json.loads(file.read_text()), "lost": [loss]}
    file.write_text(json.dumps(record))
    status = read(folder)
    words = f"drained at {clock(NOW)} by root during Slow: bad DIMM"
    assert status.lost == {"cn02": words}
    assert f"lost nodes      cn02 {words}" in seatrial("lab").stdout


def test_driver_that_is_gone(results: Path, tmp_path: Path) -> None:
    """An unfinished session is no result, and its jobs are orphans."""
    folder = open_run(results)
    close_first(folder)
    queue(tmp_path, *jobs_of(start_second(folder)))
    status = read(folder)
    assert not status.alive
    assert status.driver == START
    assert status.done == {"pass": 1, "fail": 2, "skip": 2}
    assert status.running == ()
    assert status.orphans == ("7", "8")
    assert status.left_s == 5 * 10
    table = seatrial().stdout
    assert "not at work; the last one: process 4711 on head since 2026-" in table
    assert "to go on        seatrial run lab --resume" in table
    assert "jobs left       7, 8; resuming cancels them first" in table


@pytest.mark.parametrize("tries", [1, 2])
def test_case_that_is_tried_again_is_running(results: Path, tries: int) -> None:
    folder = open_run(results)
    log = "\n".join(LOG.splitlines()[:3]) + "\n"
    if tries == 2:
        log += "[ RUN      ] Echo %x=1 /0000aaaa @lab:batch+openmpi\n"
    write(folder / "raw" / "all-1" / "reframe.txt", log)
    stage = folder / "work" / "all-1" / "stage" / "lab" / "batch" / "openmpi"
    write(stage / "Echo_0000aaaa" / "seatrial.job", "nodes=cn01\nstart=1\n")
    retry = stage / "Echo_0000aaaa_retry1" / "seatrial.job"
    write(retry, "nodes=cn04\nstart=2\n")
    with driver_lock(folder):
        status = read(folder)
    assert status.retries == tries - 1
    assert status.done["fail"] == 2 - tries
    assert status.failed_by_node == ({"cn01": 1} if tries == 1 else {})
    assert [each.nodes for each in status.running] == ["cn04"] * (tries - 1)


def test_time_left_is_that_of_earlier_runs(results: Path) -> None:
    folder = open_run(results)
    assert read(folder).left_s is None
    known = {str(each): [n] for each, n in ((ECHO, 1.0), (GPU, 2.0), (SLOW, 3.0))}
    assert read(folder, known).left_s == 3 * 1 + 2 * 2 + 2 * 3 + 2 * 2
    assert "time left  unknown" in seatrial().stdout


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("06:29:05 06:29:30", "06:29:30 06:30:15", None),
        (
            "06:28:05 06:29:30",
            "06:29:30 06:30:15",
            "all-1 started {}T06:28:05+00:00, 55 s before the run was planned",
        ),
        (
            "06:29:05 06:29:30",
            "04:29:30 04:30:15",
            "all-2 started {}T04:29:30+00:00, 2 h 00 min before all-1 ended",
        ),
        (
            "06:29:05 06:29:30",
            "06:30:00 06:29:59",
            "all-2 ended {}T06:29:59+00:00, 1 s before all-2 started",
        ),
        (
            "06:29:05 06:29:30",
            "06:30:00 06:31:15",
            "this look {}T06:30:15+00:00, 1 min 00 s before all-2 ended",
        ),
    ],
)
def test_clock_that_went_back(
    results: Path, first: str, second: str, expected: str | None
) -> None:
    folder = open_run(results)
    close(folder, "all-1", first)
    close(folder, "all-2", second)
    lines = [] if expected is None else [expected.format("2026-11-21")]
    assert list(read(folder).clock) == lines
    assert ("clock went back" in seatrial().stdout) == bool(lines)


def test_run_that_is_being_closed(results: Path) -> None:
    folder = open_run(results)
    write(folder / "manifest.json", "{}")
    rows = [vars(case(ECHO, "pass", "cn01")), vars(case(HALO, "fail", "cn02"))]
    write(folder / "cases.json", json.dumps(rows))
    status = read(folder)
    assert (status.closing, status.sessions_closed, status.left_s) == (True, 3, 0.0)
    assert status.done == {"pass": 1, "fail": 1, "skip": 0}
    assert "all is measured" in seatrial().stdout


def test_silent_slurm_is_told(results: Path, tmp_path: Path) -> None:
    fake_program(tmp_path / "bin", "squeue", "exit 1")
    assert not read(open_run(results)).slurm_answers
    assert "slurmctld does not answer" in seatrial().stdout


def test_nobody_else_can_hold_the_lock(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who can read a lock can hold it; without that its last start tells the driver."""
    folder = open_run(results)
    before = os.umask(0)
    try:
        with driver_lock(folder):
            assert (folder / "driver.lock").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    opened = os.open

    def refused(path: Path, *arguments: int) -> int:
        if Path(path).name == "driver.lock":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *arguments)

    monkeypatch.setattr(os, "open", refused)  # root may read everything
    assert driver_of(folder) == START
    note_start(folder, {**START, "host": socket.gethostname(), "pid": 2**22 + 1})
    assert driver_of(folder) is None


def test_open_runs_of_all_systems(results: Path) -> None:
    folders = [open_run(results, "r1", "site"), open_run(results, "r2", "lab")]
    (results / "lab" / "r3.open").mkdir()  # a copy that is not complete
    assert open_runs(results) == folders
    assert open_runs(results, "lab") == folders[1:]
    found = json.loads(seatrial("--format", "json").stdout)
    assert [(each["system"], each["run"]) for each in found] == [
        ("site", "r1"),
        ("lab", "r2"),
    ]
    found = json.loads(seatrial("--run-id", "r2", "--format", "json").stdout)
    assert [each["run"] for each in found] == ["r2"]


def test_no_open_run(results: Path) -> None:
    assert seatrial("lab").stdout == "no run is open; none was ever closed\n"
    assert seatrial("lab", "--format", "json").stdout == "[]\n"
    write(results / "lab" / "r0" / "manifest.json", "{}")
    result = seatrial("lab")
    assert result.stdout == "no run is open; the newest closed one is lab/r0\n"
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("lab", "--run-id", "r9"), "no open run 'r9'; none was ever closed"),
        (("lba",), "unknown system 'lba'; known systems: lab"),
        (("--watch", "--format", "json"), "--watch draws a table"),
    ],
)
def test_mistakes(results: Path, arguments: tuple[str, ...], expected: str) -> None:
    result = seatrial(*arguments)
    assert result.exit_code == 2
    assert expected in result.stderr


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("plan.json", "{", "plan.json: not valid JSON"),
        ("plan.json", '{"schema": 3}', "schema 3, expected 2"),
        ("sessions/all-1.json", "{", "all-1.json: "),
        ("sessions/all-1.json", "[]", "all-1.json: damaged"),
        ("sessions/all-1.json", '{"cases": [{"x": 1}]}', "all-1.json: damaged"),
    ],
)
def test_damaged_file_is_named(
    results: Path, file: str, text: str, expected: str
) -> None:
    folder = open_run(results)
    write(folder / file, text)
    result = seatrial()
    assert result.exit_code == 2
    assert expected in result.stderr
    assert str(folder) in result.stderr


def test_run_that_is_closed_meanwhile_is_no_error(results: Path) -> None:
    folder = open_run(results)
    shutil.rmtree(folder)
    assert read_status(folder, {}) is None


@contextmanager
def watching() -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A watching `status`, and the first line that it printed."""
    process = subprocess.Popen(
        [SEATRIAL, "status", "lab", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()


def test_watch_ends_when_no_run_is_open(results: Path) -> None:
    folder = open_run(results)
    with watching() as (process, _):
        write(folder / "manifest.json", "{}")
        folder.rename(results / "lab" / "r1")
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    assert "no run is open; the newest closed one is lab/r1" in output


def test_watch_ends_cleanly_at_ctrl_c(results: Path) -> None:
    open_run(results)
    with watching() as (process, first):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    assert "0 of 3 sessions closed" in first


def test_watch_into_a_file_prints_a_line_for_each_change(results: Path) -> None:
    folder = open_run(results)
    with watching() as (process, first):
        close_first(folder)
        assert process.stdout is not None
        lines = [first, process.stdout.readline()]
    done = [line.partition("; driver")[0].partition(" ")[2] for line in lines]
    assert done == [
        "lab/r1: 0 of 3 sessions closed; 0 of 10 cases done: 0 pass, 0 fail, 0 skip",
        "lab/r1: 1 of 3 sessions closed; 5 of 10 cases done: 1 pass, 2 fail, 2 skip",
    ]


def test_all_systems_are_asked(results: Path, tmp_path: Path) -> None:
    """Without a system: the runs of this machine, and of each login node."""
    open_run(results, "r2", "lab")
    inventory = f"{{login: {{hosts: {{head: {{seatrial_prefix: {tmp_path}/there}}}}}}}}"
    write(tmp_path / "home" / "inventories" / "acme" / "hosts.yml", inventory)
    fake_program(tmp_path / "bin", "ssh", 'echo "asked $@"')
    command = [SEATRIAL, "status"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "lab/r2, campaign two" in done.stdout
    assert "acme, on its login node:\nasked " in done.stdout
    assert "bin/seatrial status acme" in done.stdout
    fake_program(tmp_path / "bin", "ssh", "exit 255")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "seatrial: acme: cannot reach the login node head" in done.stderr
    done = subprocess.run(
        [*command, "--format", "json"], capture_output=True, text=True, check=True
    )
    assert [each["run"] for each in json.loads(done.stdout)] == ["r2"]
    assert done.stderr == "seatrial: not asked: acme; use `seatrial status acme`\n"


def test_status_of_a_run_on_the_login_node(results: Path, tmp_path: Path) -> None:
    """On the machine with the inventory alone it is asked for over ssh."""
    shutil.rmtree(tmp_path / "home" / "etc")
    inventory = f"{{login: {{hosts: {{head: {{seatrial_prefix: {tmp_path}/there}}}}}}}}"
    write(tmp_path / "home" / "inventories" / "lab" / "hosts.yml", inventory)
    fake_program(tmp_path / "bin", "ssh", f'echo "$@" > {tmp_path}/ssh.log; echo here')
    command = [SEATRIAL, "status", "lab", "--run-id", "r1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "here\n"
    asked = f"head '{tmp_path}/there/bin/seatrial status lab --format table"
    log = (tmp_path / "ssh.log").read_text()
    assert asked.replace("'", "") + " --run-id r1 --stop-on-eof" in log
