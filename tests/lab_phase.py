"""A stability phase in the lab, with faults of three causes and a killed driver."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import Lab
from lab_runs import begin, driver_pid, wait_for_job

OLD, NEW = "A3", "B7"
"""Serial numbers of cn03."""

SERIAL = "/run/seatrial-class/dmi/id/product_serial"
FIRMWARE = f"""sudo sh -c '
    umask 022
    rm -rf /run/seatrial-class
    mkdir -p $(dirname {SERIAL})
    cp -a /sys/class/net /run/seatrial-class/
    mount --bind /run/seatrial-class /sys/class
'"""
"""Makes a serial number readable: nodes of the lab have no firmware of their own."""

ROUTE = "sudo ip route {} unreachable $(getent ahostsv4 cn04 | cut -d' ' -f1 | head -1)"
JOBS = "squeue --noheader --states=running --format='%k %D'"
OLD_PROGRAM = (
    "pid=$(pgrep -o -x halo2d) && [ $(ps -o etimes= -p $pid) -ge 3 ] && "
    "sudo kill -SEGV $pid"
)
"""A program of a step of five seconds that has left MPI_Init."""

PAGE = (
    "module load ~/seatrial/modulefiles/seatrial/lab && "
    "seatrial status lab --page ~/stability.html >/dev/null && "
    "cat ~/stability.html"
)


def until(condition: Callable[[], bool], patience_s: float, what: str) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def wait_for_round(lab: Lab, number: int) -> None:
    wait_for_job(lab, "phase", f"mix-{number}", 300)


def write_serial(lab: Lab, serial: str) -> None:
    written = lab.ssh("cn03", f"echo {serial} | sudo tee {SERIAL}")
    assert written.returncode == 0, written.stderr


@contextmanager
def serial_number(lab: Lab) -> Iterator[None]:
    """Let cn03 have a serial number, at first the old one."""
    assert lab.ssh("cn03", FIRMWARE).returncode == 0
    try:
        write_serial(lab, OLD)
        yield
    finally:
        assert lab.ssh("cn03", "sudo umount /sys/class").returncode == 0


def lose_a_node(lab: Lab) -> None:
    """Take cn03 down, change its serial number, and bring it back."""
    lab.ssh("cn03", "sudo systemctl kill --signal=KILL slurmd")
    down = "sudo scontrol update nodename=cn03 state=down reason='broken fan'"
    try:
        assert lab.ssh("head", down).returncode == 0
        write_serial(lab, NEW)
        time.sleep(25)
    finally:
        lab.ssh("cn03", "sudo systemctl start slurmd")
        lab.ssh("head", "sudo scontrol update nodename=cn03 state=resume")


def cut_a_route(lab: Lab) -> None:
    """Cut cn02 off from cn04 until a job of all nodes, begun afterwards, has ended.

    Its first node, which starts the programs, reaches all others.
    """

    def whole() -> bool:
        jobs = lab.ssh("head", JOBS).stdout.splitlines()
        return any(re.match("seatrial:phase:mix.* 4$", job.strip()) for job in jobs)

    until(lambda: not whole(), 100, "a job of all nodes does not end")
    assert lab.ssh("cn02", ROUTE.format("add")).returncode == 0
    try:
        until(whole, 300, "no job of all nodes starts")
        until(lambda: not whole(), 100, "no job fails without its route")
    finally:
        assert lab.ssh("cn02", ROUTE.format("del")).returncode == 0


def crash_a_program(lab: Lab) -> None:
    """Send a running program of the job a signal, on a node that has one."""

    def crashed() -> bool:
        nodes = ("cn01", "cn04")
        return any(lab.ssh(node, OLD_PROGRAM).returncode == 0 for node in nodes)

    until(crashed, 100, "no program runs")


def sweep(lab: Lab, run_id: str, results: Path) -> None:
    """Measure every node by itself, twice."""
    chosen = ("--campaign", "functional", "--checks", "OsNoise", "--repeats", "2")
    process = begin(lab, *chosen, "--run-id", run_id, results=results)
    said = process.communicate(timeout=300)[0]
    assert process.returncode == 0, said


def phase_with_faults(lab: Lab, results: Path) -> str:
    """Run the phase with its faults, kill its driver, resume; return the live page."""
    campaign = ("--campaign", "stability-demo", "--run-id", "phase")
    process = begin(lab, *campaign, results=results)
    wait_for_round(lab, 1)
    lose_a_node(lab)
    wait_for_round(lab, 2)
    cut_a_route(lab)
    wait_for_round(lab, 3)
    crash_a_program(lab)
    wait_for_round(lab, 4)
    page = lab.ssh("head", f"bash -lc '{PAGE}'").stdout
    pid = driver_pid(lab, "phase")
    lab.ssh("head", f"kill -KILL {pid}")
    said = process.communicate(timeout=120)[0]
    process = begin(lab, "--resume", results=results)
    said += process.communicate(timeout=600)[0]
    assert process.returncode == 0, said
    return page
