"""The sweep of all pairs on the lab, with a slow link and with nodes that die in it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path

import pytest
from conftest import Lab
from lab_runs import DOWN, KILL_DAEMON, CheckRun, check_run, only_run, seatrial

from seatrial.parsers.pairsweep import parse_pairsweep
from seatrial.system.lab import cluster

pytestmark = [pytest.mark.lab, pytest.mark.slow]

NODES = ["cn01", "cn02", "cn03", "cn04"]
SLOWLY = {
    "milliseconds_per_size": 400,
    "iterations": 1_000_000,
    "windows": 10_000,
    "retest": 0,
    "pair_limit": 15,
}
"""A sweep of many seconds, in which a node can die."""


@contextmanager
def slow_link(node: str) -> Iterator[None]:
    cluster.slow_link(node, "100mbit")
    try:
        yield
    finally:
        cluster.slow_link(node, None)


def test_slow_link_is_named_and_no_other(lab: Lab, tmp_path: Path) -> None:
    """`make accept` shows it, too; here the rows are looked at."""
    with slow_link("cn03"):
        done = seatrial(
            *("run", "lab", "--campaign", "smoke", "--checks", "PairSweep"),
            results=tmp_path,
        )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "failing nodes: cn03\n" in done.stdout
    rows = only_run(tmp_path).measurements.collect()
    own = {pair for pair in permutations(NODES, 2) if "cn03" in pair}
    for environment in ("openmpi", "mpich"):
        bw = rows.filter(
            (rows["metric"] == "bw")
            & (rows["environment"] == environment)
            & (rows["value"] < 16)
        )
        assert set(zip(bw["source"], bw["destination"], strict=True)) == own
    judged = seatrial(*("judge", "lab/latest", "--format", "json"), results=tmp_path)
    judgement = json.loads(judged.stdout)
    assert judgement["convicted"] == judgement["suspects"] == ["cn03"]


def wait_for_a_pair(run: CheckRun) -> None:
    deadline = time.monotonic() + 60
    while not run.command("grep -q bw_back", "pairsweep.jsonl"):
        assert time.monotonic() < deadline, "the sweep measures nothing"
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("where", "command", "stages"),
    [
        # What its daemon started lives on: the sweep may come to its end.
        pytest.param(*("cn03", f"{KILL_DAEMON}main", {"sweep", "after"}), id="slurmd"),
        pytest.param("cn03", f"{KILL_DAEMON}all", {"sweep"}, id="slurmd-and-its-jobs"),
        pytest.param("head", DOWN, {"sweep"}, id="taken"),
    ],
)
def test_a_node_that_dies_in_mid_sweep_is_named_and_the_rest_is_measured(
    lab: Lab, where: str, command: str, stages: set[str]
) -> None:
    with check_run(lab, "PairSweep", **SLOWLY) as run:
        wait_for_a_pair(run)
        assert lab.ssh(where, command).returncode == 0
        said = run.end()
        sweep = parse_pairsweep(run.output("pairsweep.jsonl"))
        record, case = run.record(), run.result()
    sweep.verify_complete(NODES)
    (event,) = sweep.left_out
    assert event.node == "cn03"
    assert event.stage in stages
    assert sweep.hung == ()
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
