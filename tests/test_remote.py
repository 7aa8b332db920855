"""A run over ssh, with a stand-in for ssh that runs its command on this machine."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_home import fake_program, write, write_home

from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.remote import Remote, load_remote
from seatrial.results import load_run

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
    home = write_home(tmp_path / "home")
    shutil.rmtree(home / "etc")
    inventory = INVENTORY.replace("BASE", str(tmp_path))
    write(home / "inventories" / "lab" / "hosts.yml", inventory)
    remote = write_home(tmp_path / "remote")
    wrapper = f'SEATRIAL_HOME={remote} exec {SEATRIAL} "$@"'
    fake_program(remote / "bin", "seatrial", wrapper)
    log = f'printf "%s\\n" "$*" >> {tmp_path / "ssh.log"}'
    last = 'for command in "$@"; do :; done'
    fake_program(tmp_path / "bin", "ssh", f'{log}\n{last}\nexec sh -c "$command"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    return home


def test_inventory_is_read_as_ansible_sees_it(home: Path, tmp_path: Path) -> None:
    remote = load_remote(home, "lab")
    assert remote.host == "10.0.0.1"
    assert remote.prefix == f"{tmp_path}/remote"
    assert remote.ssh(["echo", "a b"]) == [
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
    ("campaign", "status", "verdict"), [("smoke", 0, "PASS"), ("high", 1, "FAIL")]
)
def test_run_comes_back_and_is_judged_here(
    home: Path, tmp_path: Path, campaign: str, status: int, verdict: str
) -> None:
    arguments = ["run", "lab", "--campaign", campaign, "--run-id", "r1"]
    process = seatrial(*arguments, "--repeats", "2")
    assert process.returncode == status, process.stderr
    assert "[1/8] pass Echo" in process.stdout, "4 cases, each twice"
    assert f"{verdict}  lab, campaign {campaign}" in process.stdout
    here = tmp_path / "results" / "lab" / "r1"
    there = tmp_path / "remote" / "results" / "lab" / "r1"
    assert load_run(here).manifest == load_run(there).manifest
    assert "--no-judge" in (tmp_path / "ssh.log").read_text()


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
        ("exit 127", "not provisioned; run `ansible-playbook -i inventories/lab"),
        (
            'case "$*" in *tar*) echo broken;; esac',
            "the copy of run r1 from 10.0.0.1 broke off",
        ),
        ('case "$*" in *tar*) exit 1;; esac', "cannot copy run r1|broke off"),
    ],
)
def test_ssh_that_fails(home: Path, tmp_path: Path, script: str, expected: str) -> None:
    fake_program(tmp_path / "bin", "ssh", script)
    process = seatrial("run", "lab", "--campaign", "smoke", "--run-id", "r1")
    assert process.returncode == 2
    assert any(text in process.stderr for text in expected.split("|"))
    assert "Traceback" not in process.stderr
    assert not (tmp_path / "results" / "lab" / "r1").exists()


def test_copy_that_is_damaged_on_the_way_does_not_count(
    home: Path, tmp_path: Path
) -> None:
    spoil = f"echo x >> {tmp_path}/remote/results/lab/r1/cases.json"
    last = 'for command in "$@"; do :; done'
    damage = f'case "$command" in tar*) {spoil};; esac'
    fake_program(tmp_path / "bin", "ssh", f'{last}\n{damage}\nexec sh -c "$command"')
    process = seatrial("run", "lab", "--campaign", "smoke", "--run-id", "r1")
    assert process.returncode == 2
    assert "cases.json: damaged on the way" in process.stderr
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


def test_unknown_system_on_the_command_line(home: Path) -> None:
    result = CliRunner().invoke(main, ["run", "lba", "--campaign", "smoke"])
    assert result.exit_code == 2
    assert "unknown system 'lba'; known systems: lab" in result.stderr


def seatrial(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SEATRIAL, *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
