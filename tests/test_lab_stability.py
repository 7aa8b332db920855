"""A stability phase of ten minutes in the lab: faults of three causes, and a kill."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Lab
from lab_runs import (
    begin,
    driver_pid,
    only_run,
    results_of,
    seatrial,
    wait_for_job,
    wait_idle,
)

from seatrial.stability.phase import phase_of_run

pytestmark = [pytest.mark.lab, pytest.mark.slow]

CRITERIA = """
schema: 1
risks: {seller: 0.1, buyer: 0.1}
defaults: {document: the lab, clause: stability}
criteria:
  - kind: stability
    availability: {at_least: 0.5}
    unobserved: 0.2
  - kind: stability
    name: many failures
    mtbf: {accepted: 60 h, rejected: 20 h}
    burst: 1 min
    unobserved: 0.2
"""
ROUTE = "sudo ip route {} unreachable $(getent ahostsv4 cn04 | cut -d' ' -f1 | head -1)"
JOBS = "squeue --noheader --states=running --format='%k %D'"
OLD_PROGRAM = (
    "pid=$(pgrep -o -x halo2d) && [ $(ps -o etimes= -p $pid) -ge 3 ] && "
    "sudo kill -SEGV $pid"
)
"""A program of a step of five seconds that has left MPI_Init."""

EVIDENCE = {
    "node": "broken fan",
    "network": "No route to host",
    "application": "Segmentation fault",
}
PAGE = (
    "module load ~/seatrial/modulefiles/seatrial/lab && "
    "seatrial status lab --page /tmp/stability.html >/dev/null && "
    "cat /tmp/stability.html"
)


def until(condition: Callable[[], bool], patience_s: float, what: str) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def wait_for_round(lab: Lab, number: int) -> None:
    wait_for_job(lab, "stable", f"mix-{number}", 300)


def lose_a_node(lab: Lab) -> None:
    lab.ssh("cn03", "sudo systemctl kill --signal=KILL slurmd")
    down = "sudo scontrol update nodename=cn03 state=down reason='broken fan'"
    try:
        assert lab.ssh("head", down).returncode == 0
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
        return any(re.match("seatrial:stable:mix.* 4$", job.strip()) for job in jobs)

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


def test_ten_minutes_with_three_causes_and_a_kill(lab: Lab, tmp_path: Path) -> None:
    lab.ssh("head", f"rm -rf {results_of(lab)}/stable{{,.open}}")
    campaign = ("--campaign", "stability-demo", "--run-id", "stable")
    process = begin(lab, *campaign, results=tmp_path)
    wait_for_round(lab, 1)
    lose_a_node(lab)
    wait_for_round(lab, 2)
    cut_a_route(lab)
    wait_for_round(lab, 3)
    crash_a_program(lab)
    wait_for_round(lab, 4)
    page = lab.ssh("head", f"bash -lc '{PAGE}'").stdout
    pid = driver_pid(lab, "stable")
    lab.ssh("head", f"kill -KILL {pid}")
    said = process.communicate(timeout=120)[0]
    process = begin(lab, "--resume", results=tmp_path)
    said += process.communicate(timeout=600)[0]
    assert process.returncode == 0, said
    run = only_run(tmp_path)
    assert len(run.manifest["starts"]) == 2
    phase = phase_of_run(run)
    assert phase is not None
    evidence: dict[str, str] = {}
    for event in phase.events(60.0):
        told = f"{event.name} {event.words}: {'; '.join(event.evidence)}\n"
        evidence[event.cause] = evidence.get(event.cause, "") + told
    print(json.dumps(evidence, indent=1), phase.hours, phase.load, sep="\n")
    for cause, words in EVIDENCE.items():
        assert words in evidence.get(cause, ""), cause
    assert phase.hours.down > 0
    assert phase.journal.seconds > 9 * 60
    assert "broken fan" in page, "the live page has the events so far"
    file = tmp_path / "criteria.yaml"
    file.write_text(CRITERIA)
    judged = seatrial(
        *("judge", "lab/latest", "--criteria", str(file), "--format", "json"),
        results=tmp_path,
    )
    findings = {
        one["metric"]: one
        for one in json.loads(judged.stdout)["findings"]
        if one["kind"] == "stability"
    }
    print(json.dumps(findings, indent=1))
    assert findings["availability"]["verdict"] == "pass"
    assert findings["mtbf"]["verdict"] == "fail", "three failures in ten minutes"
    wait_idle(lab, 4)
