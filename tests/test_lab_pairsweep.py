"""The sweep of all pairs on the lab, with a slow link and with nodes that die in it."""

import json
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from conftest import LAB_HOME, Lab
from lab_runs import only_run, seatrial, wait_idle

from seatrial.lab import cluster
from seatrial.parsers.pairsweep import PairSweep, parse_pairsweep

pytestmark = pytest.mark.lab

NODES = ["cn01", "cn02", "cn03", "cn04"]
PREFIX = "/home/seatrial/seatrial"
FOLDER = "/home/seatrial/sweep-of-a-test"
STAGE = f"{FOLDER}/stage/lab/batch/openmpi/PairSweep"
SLOWLY = {
    "milliseconds_per_size": 400,
    "iterations": 1_000_000,
    "windows": 10_000,
    "retest": 0,
    "pair_limit": 15,
}
"""A sweep of many seconds, in which a node can die."""

KILL = "sudo systemctl kill --signal=KILL slurmd --kill-who="
DOWN = "sudo scontrol update nodename=cn03 state=down reason='broken fan'"


@contextmanager
def slow_link(node: str) -> Iterator[None]:
    cluster.slow_link(node, "200mbit")
    try:
        yield
    finally:
        cluster.slow_link(node, None)


def test_slow_link_is_named_and_no_other(lab: Lab, tmp_path: Path) -> None:
    with slow_link("cn03"):
        done = seatrial(
            *("run", "lab", "--campaign", "smoke", "--checks", "PairSweep"),
            results=tmp_path,
        )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "suspect nodes: cn03\n" in done.stdout
    rows = only_run(tmp_path).measurements
    own = {pair for pair in permutations(NODES, 2) if "cn03" in pair}
    for environment in ("openmpi", "mpich"):
        bw = rows.filter(
            (rows["metric"] == "bw")
            & (rows["environment"] == environment)
            & (rows["value"] < 40)
        )
        assert set(zip(bw["source"], bw["destination"], strict=True)) == own
    judged = seatrial(*("judge", "lab/latest", "--format", "json"), results=tmp_path)
    assert json.loads(judged.stdout)["suspects"] == ["cn03"]


@contextmanager
def slow_sweep(lab: Lab) -> Iterator[subprocess.Popen[str]]:
    """Run the sweep with plain ReFrame, and heal the lab when it has ended."""
    variables = (f"-S PairSweep.{name}={value}" for name, value in SLOWLY.items())
    script = f"""
        rm -rf {FOLDER}; mkdir {FOLDER}; cd {FOLDER}
        module use {PREFIX}/modulefiles; module load seatrial/lab
        reframe -n PairSweep -p openmpi -r --keep-stage-files --prefix={FOLDER} \
            --report-file={FOLDER}/report.json {" ".join(variables)}
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
        lab.ssh("head", "scancel --me")
        lab.ssh("cn03", "sudo systemctl start slurmd")
        lab.ssh("head", "sudo scontrol update nodename=cn03 state=resume")
        lab.ssh("head", f"rm -rf {FOLDER}")
        wait_idle(lab, 4)


def wait_for_a_pair(lab: Lab) -> None:
    deadline = time.monotonic() + 60
    while lab.ssh("head", f"grep -q bw_back {STAGE}/pairsweep.jsonl").returncode:
        assert time.monotonic() < deadline, "the sweep measures nothing"
        time.sleep(0.2)


def read_json(lab: Lab, file: str) -> Any:
    return json.loads(lab.ssh("head", f"cat {file}").stdout)


def read_sweep(lab: Lab) -> PairSweep:
    sweep = parse_pairsweep(lab.ssh("head", f"cat {STAGE}/pairsweep.jsonl").stdout)
    sweep.verify_complete(NODES)
    return sweep


@pytest.mark.parametrize(
    ("where", "command", "stages"),
    [
        # What its daemon started lives on: the sweep may come to its end.
        pytest.param("cn03", f"{KILL}main", {"sweep", "after"}, id="slurmd"),
        pytest.param("cn03", f"{KILL}all", {"sweep"}, id="slurmd-and-its-jobs"),
        pytest.param("head", DOWN, {"sweep"}, id="taken-by-slurm"),
    ],
)
def test_a_node_that_dies_in_mid_sweep_is_named_and_the_rest_is_measured(
    lab: Lab, where: str, command: str, stages: set[str]
) -> None:
    with slow_sweep(lab) as process:
        wait_for_a_pair(lab)
        assert lab.ssh(where, command).returncode == 0
        said, _ = process.communicate(timeout=240)
        sweep = read_sweep(lab)
        record = read_json(lab, f"{STAGE}/seatrial.json")
        report = read_json(lab, f"{FOLDER}/report.json")
    (event,) = sweep.left_out
    assert event.node == "cn03"
    assert event.stage in stages
    assert sweep.hung == ()
    (case,) = report["runs"][-1]["testcases"]
    assert (case["result"], case["fail_phase"]) == ("fail", "performance"), said
    assert "pairs_answered=0.0 %, expected 100" in case["fail_reason"]
    answered = {
        sample["node"]: sample["value"]
        for sample in record["samples"]
        if sample["metric"] == "pairs_answered"
    }
    assert answered == {"cn01": 100, "cn02": 100, "cn03": 0, "cn04": 100}
    measured = {
        (sample["source"], sample["destination"])
        for sample in record["samples"]
        if sample["metric"] == "bw"
    }
    assert measured >= set(permutations(["cn01", "cn02", "cn04"], 2))
