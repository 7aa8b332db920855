"""A run over ssh, with a stand-in for ssh that runs its command on this machine."""

import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_home import TOLERANT, fake_program, write, write_home

from seatrial.campaign import remote
from seatrial.campaign.schedule import Agenda
from seatrial.cli import main
from seatrial.commands import _running
from seatrial.errors import SeatrialError
from seatrial.runs.closed_run import load_run
from seatrial.runs.lock import driver_lock
from seatrial.runs.open_run import RunFolder
from seatrial.system.login_node import Remote, load_remote

ALIVE = ("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
SEATRIAL = Path(sys.executable).parent / "seatrial"
INVENTORY = """
all:
  vars:
    seatrial_prefix: "{{ base }}/remote"
    base: BASE
  children:
    login:
      hosts:
        head:
          ansible_host: 10.0.0.1
          ansible_port: 2222
          ansible_user: tester
          ansible_ssh_private_key_file: "{{ base }}/key"
          ansible_ssh_common_args: -o "ProxyCommand=nc %h" -C
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A control machine's home; the login node's prefix is `remote` beside it."""
    home = write_home(tmp_path / "home", TOLERANT)
    shutil.rmtree(home / "etc")
    inventory = INVENTORY.replace("BASE", str(tmp_path))
    write(home / "inventories" / "lab" / "hosts.yml", inventory)
    prefix = write_home(tmp_path / "remote", TOLERANT)
    wrapper = f'SEATRIAL_HOME={prefix} exec {SEATRIAL} "$@"'
    fake_program(prefix / "bin", "seatrial", wrapper)
    log = f'printf "%s\\n" "$*" >> {tmp_path / "ssh.log"}'
    last = 'for command in "$@"; do :; done'
    fake_program(tmp_path / "bin", "ssh", f'{log}\n{last}\nexec sh -c "$command"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    return home


def test_inventory_is_read_as_ansible_sees_it(home: Path, tmp_path: Path) -> None:
    login = load_remote(home, "lab")
    assert login.host == "10.0.0.1"
    assert login.prefix == f"{tmp_path}/remote"
    assert login.ssh(["echo", "a b"]) == [
        "ssh",
        "-T",
        *ALIVE,
        *("-p", "2222"),
        *("-i", f"{tmp_path}/key"),
        *("-l", "tester"),
        *("-o", "ProxyCommand=nc %h", "-C"),
        "10.0.0.1",
        "echo 'a b'",
    ]


def test_terminal_is_passed_on() -> None:
    assert Remote("h", "/p").ssh(["true"], tty=True) == [
        *("ssh", "-tt", *ALIVE, "h", "true")
    ]


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        ("all: {hosts: {a: }}", "expected a host in the group `login`"),
        ("login: {hosts: {a: }}", "needs the variable `seatrial_prefix`"),
        ("login: [", "Ansible says"),
    ],
)
def test_inventory_that_lacks_something(
    home: Path, inventory: str, expected: str
) -> None:
    write(home / "inventories" / "lab" / "hosts.yml", inventory)
    with pytest.raises(SeatrialError) as raised:
        load_remote(home, "lab")
    assert expected in str(raised.value)


def test_unknown_system(home: Path) -> None:
    with pytest.raises(SeatrialError, match="unknown system 'lba'; known systems: lab"):
        load_remote(home, "lba")


@pytest.mark.parametrize(
    ("campaign", "status", "verdict"),
    [pytest.param("smoke", 0, "PASS", marks=pytest.mark.slow), ("high", 1, "FAIL")],
)
def test_run_comes_back_and_is_judged_here(
    home: Path, tmp_path: Path, campaign: str, status: int, verdict: str
) -> None:
    """Beside another run, by the criteria here, not those that site.yml copied."""
    criteria = home / "reference-data" / "lab"
    copied = tmp_path / "remote" / "reference-data" / "lab"
    write(criteria / "criteria.yaml", TOLERANT.replace("10 us", "7 us"))
    write(copied / "old.yaml", "left over\n")
    arguments = ["run", "lab", "--campaign", campaign, "--run-id", "r1"]
    with at_work(tmp_path / "remote" / "results", "r0"):
        process = seatrial(*arguments, "--repeats", "2", "--beside")
    assert process.returncode == status, process.stderr
    assert "[1/8] pass Echo" in process.stdout, "4 cases, each twice"
    assert f"{verdict}  lab, campaign {campaign}" in process.stdout
    here = tmp_path / "results" / "lab" / "r1"
    there = tmp_path / "remote" / "results" / "lab" / "r1"
    manifest = load_run(here).manifest
    assert manifest == load_run(there).manifest
    assert {tuple(each["beside"]) for each in manifest["sessions"]} == {("r0",)}
    files = {file.name: file.read_text() for file in copied.iterdir()}
    assert files == {file.name: file.read_text() for file in criteria.iterdir()}
    assert "[7, null, 0, us]" in files["echo.yaml"]
    assert "--no-judge" in (tmp_path / "ssh.log").read_text()


def test_criteria_that_cannot_be_copied(home: Path, tmp_path: Path) -> None:
    there = tmp_path / "remote" / "reference-data" / "lab"
    shutil.rmtree(there)
    write(there, "a file in the way of the folder")
    begin = ["run", "lab", "--campaign", "smoke", "--run-id", "r1"]
    done = CliRunner().invoke(main, begin)
    assert done.exit_code == 2
    assert f"cannot copy {home}/reference-data/lab to 10.0.0.1: " in done.stderr
    assert not (tmp_path / "remote" / "results").exists()


@pytest.mark.slow
def test_system_without_criteria_is_measured(home: Path, tmp_path: Path) -> None:
    """Criteria that an earlier run brought to the login node are gone, too."""
    file = Path("reference-data/lab/criteria.yaml")
    (home / file).unlink()
    arguments = ["run", "lab", "--campaign", "smoke", "--run-id", "r1"]
    assert "`seatrial run --no-judge` measures without" in seatrial(*arguments).stderr
    process = seatrial(*arguments, "--no-judge")
    assert process.returncode == 0, process.stderr
    assert not (tmp_path / "remote" / file).exists()


@pytest.mark.slow
def test_only_some_checks(home: Path, tmp_path: Path) -> None:
    arguments = ["run", "lab", "--campaign", "two", "--checks", "Gpu"]
    process = seatrial(*arguments, "--run-id", "r1", "--no-judge")
    assert process.returncode == 0, process.stderr
    run = load_run(tmp_path / "results" / "lab" / "r1")
    assert {case.check for case in run.cases} == {"Gpu"}


def test_exit_status_of_the_other_side_passes_through(
    home: Path, tmp_path: Path
) -> None:
    process = seatrial("run", "lab", "--campaign", "wrong")
    assert process.returncode == 2
    assert "names unknown checks: Ehco" in process.stderr
    assert "the run on 10.0.0.1 did not finish" in process.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "exit 255",
            "cannot reach the login node 10.0.0.1 over ssh, or lost it; try `ssh",
        ),
        (
            'case "$*" in *bin/seatrial*) exit 127;; esac',
            "not provisioned; run `ansible-playbook -i inventories/lab",
        ),
        (
            'case "$*" in *"-cf"*) echo broken;; esac',
            "the copy of run r1 from 10.0.0.1 broke off",
        ),
        ('case "$*" in *"-cf"*) exit 1;; esac', "cannot copy run r1|broke off"),
    ],
)
def test_ssh_that_fails(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    expected: str,
) -> None:
    there = Remote("10.0.0.1", f"{tmp_path}/remote")
    monkeypatch.setattr(_running, "load_remote", lambda *_: there)
    fake_program(tmp_path / "bin", "ssh", script)
    begin = ["run", "lab", "--campaign", "smoke", "--run-id", "r1"]
    done = CliRunner().invoke(main, begin)
    assert done.exit_code == 2
    assert any(text in done.stderr for text in expected.split("|"))
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results" / "lab" / "r1").exists()


def test_interrupt_here_stops_the_run_there(home: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [SEATRIAL, "run", "lab", "--campaign", "slow", "--run-id", "r1"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    there = tmp_path / "remote" / "results" / "lab" / "r1.open"
    stage = there / "work" / "slow-1" / "stage" / "lab" / "batch" / "openmpi"
    deadline = time.monotonic() + 40
    while not list(stage.glob("*/rfm_job.out")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=25)
    assert process.returncode == 130
    assert "r1.open stays open" in errors
    assert "Traceback" not in errors
    assert there.is_dir()


@pytest.mark.parametrize("where", ["results", "remote/results"])
def test_results_that_cannot_be_written_end_it_before_the_first_job(
    home: Path, tmp_path: Path, where: str
) -> None:
    """Here, or on the login node, where the same command tries its own folder."""
    write(tmp_path / where / "lab", "a file in the way of the folder")
    process = seatrial("run", "lab", "--campaign", "smoke", "--run-id", "r1")
    assert process.returncode == 2
    assert f"cannot write to {tmp_path / where}/lab on " in process.stderr
    assert "nothing was started" in process.stderr
    assert "[1/4]" not in process.stdout
    assert (tmp_path / "ssh.log").exists() == (where == "remote/results")


@pytest.mark.parametrize(
    "cause",
    ["ssh", *(pytest.param(c, marks=pytest.mark.slow) for c in ("full", "interrupt"))],
)
def test_run_that_cannot_be_copied_is_fetched_by_the_command_named(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    def fail(*_: object) -> None:
        if cause == "interrupt":
            raise KeyboardInterrupt
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    good = (tmp_path / "bin" / "ssh").read_text()
    with monkeypatch.context() as patch:
        if cause == "ssh":
            bad = good.replace("exec", 'case "$command" in tar*) exit 1;; esac\nexec')
            write(tmp_path / "bin" / "ssh", bad)
        else:
            patch.setattr(remote, "publish", fail)
        begin = ["run", "lab", "--campaign", "smoke", "--run-id", "r1"]
        done = CliRunner().invoke(main, begin)
    assert done.exit_code == (130 if cause == "interrupt" else 2)
    there = tmp_path / "remote" / "results" / "lab" / "r1"
    assert f"Run r1 is closed and safe on 10.0.0.1, in {there}." in done.stderr
    assert ("No space left on device" in done.stderr) == (cause == "full")
    command = re.search(r"fetch it with `seatrial (run lab [^`]+)`", done.stderr)
    assert command
    fetch = shlex.split(command[1])
    here = tmp_path / "results" / "lab" / "r1"
    if cause == "ssh":
        damaged_on_the_way(tmp_path, there, fetch)
        assert not here.exists()
    write(tmp_path / "bin" / "ssh", good)
    again = CliRunner().invoke(main, fetch)
    assert again.exit_code == 3, "one repeat decides nothing"
    assert load_run(here).manifest == load_run(there).manifest


def damaged_on_the_way(folder: Path, there: Path, fetch: list[str]) -> None:
    """Fetch a run whose copy is damaged on the way: it does not count."""
    whole = (there / "cases.json").read_bytes()
    last = 'for command in "$@"; do :; done'
    damage = f'case "$command" in tar*) echo x >> {there}/cases.json;; esac'
    fake_program(folder / "bin", "ssh", f'{last}\n{damage}\nexec sh -c "$command"')
    done = CliRunner().invoke(main, fetch)
    assert done.exit_code == 2
    assert "cases.json: damaged on the way" in done.stderr
    (there / "cases.json").write_bytes(whole)


def test_second_campaign_is_refused_on_the_login_node(
    home: Path, tmp_path: Path
) -> None:
    with at_work(tmp_path / "remote" / "results", "r0"):
        refused = seatrial(
            "run", "lab", "--campaign", "smoke", "--no-judge", "--run-id", "r1"
        )
    assert refused.returncode == 2
    assert "run r0 of system 'lab' is at work since" in refused.stderr


def test_newest_open_run_there_is_the_newest_by_start_time(
    home: Path, tmp_path: Path
) -> None:
    for name, hour in (("z-first", 8), ("a-last", 9)):
        folder = RunFolder(tmp_path / "remote" / "results", "lab", name)
        created = f"2026-01-01T{hour:02}:00:00+00:00"
        campaign = {"name": "smoke", "max_jobs": 1}
        folder.create(Agenda(name, "lab", created, campaign, ()).write())
    assert remote._newest_open(load_remote(home, "lab"), "lab") == "a-last"


def test_id_from_the_login_node_is_no_path(home: Path, tmp_path: Path) -> None:
    answer = """echo '[{"run": "../../r1"}]'"""
    fake_program(tmp_path / "bin", "ssh", answer)
    done = CliRunner().invoke(main, ["run", "lab", "--resume"])
    assert done.exit_code == 2
    assert "its newest open run: '../../r1' is no name; expected" in done.stderr


def test_unknown_system_on_the_command_line(home: Path) -> None:
    result = CliRunner().invoke(main, ["run", "lba", "--campaign", "smoke"])
    assert result.exit_code == 2
    assert "unknown system 'lba'; known systems: lab" in result.stderr


@contextmanager
def at_work(results: Path, name: str) -> Iterator[None]:
    """Let a driver be at work on a run."""
    folder = RunFolder(results, "lab", name)
    folder.create(Agenda(name, "lab", "2026-01-01T00:00:00+00:00", {}, ()).write())
    with driver_lock(folder.path):
        yield


def seatrial(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SEATRIAL, *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
