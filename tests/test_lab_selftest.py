"""The self-test on the lab: planted faults are found, named, and lifted in any case."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import HOME, Lab
from lab_runs import wait_idle

from seatrial.system.lab import container, state
from seatrial.system.lab.faults import LAB_FAULTS

pytestmark = pytest.mark.lab

FOLDER = HOME / "build" / "selftest" / "lab"


@pytest.fixture(autouse=True)
def nothing_stands(lab: Lab) -> Iterator[None]:
    yield
    subprocess.run(["seatrial", "selftest", "lab", "--lift"], cwd=HOME, check=True)
    wait_idle(lab, 4)


@pytest.mark.slow
def test_a_fault_is_found_and_nobody_is_blamed_wrongly(lab: Lab) -> None:
    """That a slow link is found is tested with the sweep, and by `make accept`."""
    fault = ("--fault", "dead-daemon", "--node", "cn03", "--repeats", "1")
    done = subprocess.run(
        ["seatrial", "selftest", "lab", *fault, "--format", "json"],
        cwd=HOME,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    control, daemon = json.loads(done.stdout)
    assert (control["found"], control["wrongly"]) == (None, [])
    assert (daemon["node"], daemon["found"]) == ("cn03", True)
    assert (daemon["verdict"], daemon["wrongly"]) == ("fail", [])
    assert daemon["expected"] == "cn03 is absent"
    assert not (FOLDER / "planted.json").exists()
    assert (FOLDER / daemon["run"] / "manifest.json").is_file()


@pytest.mark.slow
def test_a_killed_self_test_lifts_its_fault(lab: Lab) -> None:
    command = ["seatrial", "selftest", "lab", "--fault", "slow-link", "--repeats", "1"]
    process = subprocess.Popen(
        command,
        cwd=HOME,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 200
    while not state.require().slow:
        assert process.poll() is None
        assert time.monotonic() < deadline, "nothing is planted"
        time.sleep(0.2)
    assert list(state.require().slow) == ["cn04"]
    time.sleep(5)  # into the run
    os.kill(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130, said
    assert state.require().slow == {}
    assert not (FOLDER / "planted.json").exists()


def cpu_limit(node: str) -> set[str]:
    groups = Path("/sys/fs/cgroup").glob(f"**/{container.CGROUP}/{node}/cpu.*")
    names = ("cpu.max", "cpu.cfs_quota_us")
    return {file.read_text() for file in groups if file.name in names}


def buffers(lab: Lab, node: str) -> str:
    return lab.ssh(node, "cat /proc/sys/net/ipv4/tcp_rmem").stdout


def test_each_fault_is_there_while_it_is_planted(lab: Lab) -> None:
    before = cpu_limit("cn02"), buffers(lab, "cn02")
    for name in ("slow-cpu", "wrong-setting"):
        fault = LAB_FAULTS[name]
        fault.plant("cn02")
        try:
            now = cpu_limit("cn02"), buffers(lab, "cn02")
            assert now != before, name
        finally:
            fault.lift("cn02")
            fault.lift("cn02")
        assert (cpu_limit("cn02"), buffers(lab, "cn02")) == before, name
