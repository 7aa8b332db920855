"""The sweep over single nodes on the lab, with programs and nodes that die in it."""

import json
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conftest import LAB_HOME, Lab
from lab_runs import wait_idle

from seatrial.lab import cluster
from seatrial.parsers.nodesweep import NodeSweep, parse_nodesweep

pytestmark = pytest.mark.lab

NODES = ["cn01", "cn02", "cn03", "cn04"]
PREFIX = "/home/seatrial/seatrial"
FOLDER = "/home/seatrial/nodesweep-of-a-test"
STAGE = f"{FOLDER}/stage/lab/batch/openmpi/NodeSweep"
LIMIT_S = 120
KILL_DAEMON = "sudo systemctl kill --signal=KILL slurmd --kill-who=all"
DOWN = "sudo scontrol update nodename=cn03 state=down reason='broken fan'"


@contextmanager
def node_sweep(lab: Lab) -> Iterator[subprocess.Popen[str]]:
    """Run the sweep with plain ReFrame, and heal the lab when it has ended."""
    script = f"""
        rm -rf {FOLDER}; mkdir {FOLDER}; cd {FOLDER}
        module use {PREFIX}/modulefiles; module load seatrial/lab
        reframe -n NodeSweep -r --keep-stage-files --prefix={FOLDER} \
            --report-file={FOLDER}/report.json -S NodeSweep.hpcc_limit={LIMIT_S}
    """
    ssh = ("ssh", "-F", str(cluster.ssh_config(LAB_HOME)), "head")
    process = subprocess.Popen(
        [*ssh, f"bash -lc {shlex.quote(script)}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        lab.ssh("head", "scancel --me --name=rfm_NodeSweep")
        lab.ssh("cn03", "sudo systemctl start slurmd")
        lab.ssh("head", "sudo scontrol update nodename=cn03 state=resume")
        lab.ssh("head", f"rm -rf {FOLDER}")
        wait_idle(lab, 4)


def wait_for_hpcc(lab: Lab) -> None:
    """Wait until its ranks run on cn03."""
    deadline = time.monotonic() + 240
    while lab.ssh("cn03", "pgrep -x hpcc").returncode:
        assert time.monotonic() < deadline, "HPCC does not start"
        time.sleep(0.5)
    time.sleep(1)


def read_json(lab: Lab, file: str) -> Any:
    return json.loads(lab.ssh("head", f"cat {file}").stdout)


def read_sweep(lab: Lab) -> NodeSweep:
    sweep = parse_nodesweep(lab.ssh("head", f"cat {STAGE}/nodesweep.jsonl").stdout)
    sweep.verify_complete(NODES)
    return sweep


def test_every_node_is_measured(lab: Lab) -> None:
    with node_sweep(lab) as process:
        said, _ = process.communicate(timeout=500)
        sweep = read_sweep(lab)
        report = read_json(lab, f"{FOLDER}/report.json")
    (case,) = report["runs"][-1]["testcases"]
    assert case["result"] == "pass", said
    assert sweep.events == ()
    assert {row.node for row in sweep.hpcc} == {row.node for row in sweep.memlat}
    assert set(sweep.counters) == set(NODES)
    for place in sweep.nodes.values():
        assert place.is_bound
        assert place.ranks == place.cores


@pytest.mark.parametrize(
    ("where", "command", "reason"),
    [
        pytest.param("cn03", "pkill -KILL -x hpcc", "exit status 137", id="killed"),
        pytest.param("cn03", "pkill -STOP -x hpcc", "no end in time", id="hangs"),
        pytest.param("cn03", KILL_DAEMON, "aborted", id="slurmd-and-its-jobs"),
        pytest.param("head", DOWN, "Node failure on cn03", id="taken-by-slurm"),
    ],
)
def test_a_node_that_fails_in_mid_sweep_is_named_and_the_rest_is_measured(
    lab: Lab, where: str, command: str, reason: str
) -> None:
    with node_sweep(lab) as process:
        wait_for_hpcc(lab)
        assert lab.ssh(where, command).returncode == 0
        said, _ = process.communicate(timeout=500)
        sweep = read_sweep(lab)
        record = read_json(lab, f"{STAGE}/seatrial.json")
        report = read_json(lab, f"{FOLDER}/report.json")
    events = {event.program: event for event in sweep.events}
    assert {event.node for event in events.values()} == {"cn03"}
    assert reason in events["hpcc"].reason
    (case,) = report["runs"][-1]["testcases"]
    assert (case["result"], case["fail_phase"]) == ("fail", "performance"), said
    assert "cn03: hpcc: " in case["fail_reason"]
    measured = {
        sample["node"]
        for sample in record["samples"]
        if sample["metric"] == "mem_bw" and not sample["parameters"]
    }
    assert measured == {"cn01", "cn02", "cn04"}
    memory = {s["node"] for s in record["samples"] if s["metric"] == "mem_latency"}
    assert memory == set(NODES)
