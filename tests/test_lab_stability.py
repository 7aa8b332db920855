"""A stability phase of ten minutes in the lab: faults of three causes, and a kill."""

import json
import time
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
ROUTE = "sudo ip route {} unreachable $(getent ahostsv4 cn01 | cut -d' ' -f1 | head -1)"
PAGE = (
    "seatrial status lab --page /tmp/stability.html >/dev/null; cat /tmp/stability.html"
)


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
    assert lab.ssh("cn02", ROUTE.format("add")).returncode == 0
    try:
        time.sleep(30)
    finally:
        lab.ssh("cn02", ROUTE.format("del"))


def crash_a_program(lab: Lab) -> None:
    """Send a running program of the job a signal, on a node that has one."""
    deadline = time.monotonic() + 100
    while True:
        for node in ("cn01", "cn04"):
            find = "pid=$(pgrep -o -x halo2d) && sudo kill -SEGV $pid"
            if lab.ssh(node, find).returncode == 0:
                return
        assert time.monotonic() < deadline, "no program runs"
        time.sleep(0.2)


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
    page = lab.ssh("head", f"module load seatrial/lab; {PAGE}").stdout
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
    events = phase.events(60.0)
    told = [f"{one.name} {one.cause} {one.words}: {one.evidence}" for one in events]
    causes = {event.cause for event in events}
    assert {"node", "network", "application"} <= causes, "\n".join(told)
    assert phase.hours.down > 0
    assert any("broken fan" in line for line in told)
    assert phase.journal.seconds > 9 * 60
    print("\n".join(told), phase.hours, phase.load, sep="\n")
    assert "Stability" in page or "stability phase" in page
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
