"""The sweep over single nodes on the lab, with programs and nodes that die in it."""

import time

import pytest
from conftest import Lab
from lab_runs import DOWN, KILL_DAEMON, check_run

from seatrial.parsers.nodesweep import parse_nodesweep

pytestmark = pytest.mark.lab

NODES = ["cn01", "cn02", "cn03", "cn04"]
SMALL = {"n": 300, "memlat_mib": 8, "quiet": 1, "fixedwork_s": 2, "hpcc_limit": 60}
"""A sweep of seconds, in which a node can still die."""


def wait_for_hpcc(lab: Lab) -> None:
    """Wait until its ranks run on cn03."""
    deadline = time.monotonic() + 240
    while lab.ssh("cn03", "pgrep -x hpcc").returncode:
        assert time.monotonic() < deadline, "HPCC does not start"
        time.sleep(0.5)
    time.sleep(1)


@pytest.mark.slow
def test_every_node_is_measured(lab: Lab) -> None:
    with check_run(lab, "NodeSweep", **SMALL) as run:
        said = run.end()
        sweep = parse_nodesweep(run.output("nodesweep.jsonl"))
        case = run.result()
    sweep.verify_complete(NODES)
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
        pytest.param(
            *("cn03", "pkill -KILL -x hpcc", "exit status 137"),
            id="killed",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("cn03", "pkill -STOP -x hpcc", "no end in time"),
            id="hangs",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("cn03", f"{KILL_DAEMON}all", "aborted"),
            id="slurmd-and-its-jobs",
            marks=pytest.mark.slow,
        ),
        pytest.param("head", DOWN, "Node failure on cn03", id="taken-by-slurm"),
    ],
)
def test_a_node_that_fails_in_mid_sweep_is_named_and_the_rest_is_measured(
    lab: Lab, where: str, command: str, reason: str
) -> None:
    with check_run(lab, "NodeSweep", **SMALL) as run:
        wait_for_hpcc(lab)
        assert lab.ssh(where, command).returncode == 0
        said = run.end()
        sweep = parse_nodesweep(run.output("nodesweep.jsonl"))
        record, case = run.record(), run.result()
    sweep.verify_complete(NODES)
    events = {event.program: event for event in sweep.events}
    assert {event.node for event in events.values()} == {"cn03"}
    assert reason in events["hpcc"].reason
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
