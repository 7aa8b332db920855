"""The scale lab: Slurm with many nodes in few containers, and one node that dies."""

import json
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from cabled_fabric import planned
from conftest import HOME, Lab
from lab_runs import (
    begin,
    driver_pid,
    scale_lab,
    seatrial,
    stopped,
    wait_for_job,
)

from seatrial.fabric.topology import conf, of_plan
from seatrial.fabric.topology_check import check
from seatrial.fabric.topology_file import read_topology
from seatrial.runs.closed_run import load_run
from seatrial.system.lab import cluster

pytestmark = pytest.mark.lab

NODES = 64
START_DEAD = HOME / "playbooks" / "roles" / "slurm" / "files" / "start_dead.sh"

SLOW = {"node": "n0014", "factor": 1.4, "area": "network"}
TRUTH = {"seed": 1, "nodes": f"n[0001-{NODES:04}]", "faults": {"slow_nodes": [SLOW]}}


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The scale lab with the suite and a model machine; no lab afterwards."""
    with scale_lab(tmp_path_factory.mktemp("scale"), NODES) as lab:
        lab.play("site", "-e", json.dumps({"standins_truth": TRUTH}))
        yield lab


def wait_until(scale: Lab, command: str, expected: str) -> None:
    """Wait for the answer of Slurm: accounting and dead nodes take their time."""
    deadline = time.monotonic() + 300
    while not re.search(expected, answer := scale.ssh("mhead", command).stdout):
        assert time.monotonic() < deadline, answer
        time.sleep(1)


def test_all_nodes_are_idle_below_their_leafs(scale: Lab) -> None:
    states = {node.node: node.slurm for node in cluster.status()}
    assert states == {"mhead": "-", "carrier1": f"{NODES} idle"}
    topology = scale.ssh("mhead", "scontrol show topology").stdout
    leafs = re.findall(r"SwitchName=(leaf\d+) Level=0 .*Nodes=(\S+)", topology)
    assert leafs == [("leaf01", "n[0001-0032]"), ("leaf02", "n[0033-0064]")]


def test_slurm_loads_the_topology_that_fabric_writes(scale: Lab) -> None:
    """Three levels of a plan, other leafs than the inventory's; which come back."""
    plan = planned(kind="fat-tree-3", hosts=NODES, radix=8, prefix="n00")
    file = "/etc/slurm/topology.conf"
    text = shlex.quote(conf(of_plan(plan)))
    load = f"sudo tee {file}.new && sudo cp -p {file} {file}.own"
    load += f" && sudo mv {file}.new {file} && sudo scontrol reconfigure"
    done = scale.ssh("mhead", f"printf %s {text} | {load}")
    assert done.returncode == 0, done.stderr
    shown = scale.ssh("mhead", "scontrol show topology").stdout
    back = f"sudo mv {file}.own {file} && sudo scontrol reconfigure"
    assert scale.ssh("mhead", back).returncode == 0
    switches = read_topology(shown, "scontrol")
    assert len(switches) == 16 + 4 + 1
    assert {node: one.name for one in switches for node in one.nodes} == {
        cable.a.device: cable.b.device
        for cable in plan.cables
        if plan.kinds[cable.a.device] == "host"
    }
    assert check(switches, of_plan(plan)) == []


def test_a_step_runs_on_every_node_and_knows_its_name(scale: Lab) -> None:
    step = f"srun --nodes={NODES} --mpi=none sh -c 'echo $SLURMD_NODENAME'"
    done = scale.ssh("mhead", step)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == [f"n{i:04}" for i in range(1, NODES + 1)]
    wait_until(scale, "sacct -Xn -o NNodes,State", rf"{NODES} +COMPLETED")
    assert "MESSAGE_NODE_REGISTRATION_STATUS" in scale.ssh("mhead", "sdiag").stdout


@pytest.mark.slow
def test_up_and_cluster_again_change_nothing_but_a_dead_node(scale: Lab) -> None:
    assert scale.play("lab") == 0
    kill = "sudo systemctl kill --signal=KILL slurmd@n0007"
    assert scale.ssh("carrier1", kill).returncode == 0
    assert scale.play("cluster") == 1
    # What the play would run once more; nothing else of it has changed anything.
    start = scale.ssh("carrier1", f"sudo sh -c {shlex.quote(START_DEAD.read_text())}")
    assert (start.returncode, start.stdout) == (0, "")
    wait_until(scale, "sinfo -h -n n0007 -o %T", "idle")
    done = scale.ssh("mhead", "srun --nodelist=n0007 --mpi=none hostname")
    assert done.stdout.strip() == "carrier1"


def test_a_campaign_finds_the_slow_node_of_the_model(
    scale: Lab, tmp_path: Path
) -> None:
    """The whole way on 64 nodes: driver, Slurm, parsers, judge, report."""
    options = ("--campaign", "smoke", "--repeats", "3")
    done = seatrial("run", "scale-lab", *options, results=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    (path,) = (tmp_path / "scale-lab").iterdir()
    run = load_run(path)
    assert run.manifest["model"] is True
    assert all(len(case.nodes) == NODES for case in run.cases)
    out = tmp_path / "report"
    seatrial("report", "scale-lab/latest", "--out", str(out), results=tmp_path)
    assert "Model machine." in (out / "report.html").read_text()
    properties = ET.parse(out / "junit.xml").iter("property")
    values = {p.attrib["name"]: p.attrib["value"] for p in properties}
    assert values["convicted"] == "n0014"


HOLD = """timeout 100 sh -c '
list="squeue --noheader --states=running --format=%i/%k"
until job=$($list | grep -m 1 {}) && sudo scontrol suspend "${{job%%/*}}"
do sleep 0.1; done
echo "${{job%%/*}}"'"""
"""Suspends a job of a session, which may last only a second, and prints its id."""


def judged(results: Path) -> dict[str, Any]:
    """Judge the run, with its repeat."""
    run = "scale-lab/kills"
    done = seatrial("judge", run, "--format", "json", results=results)
    return dict(json.loads(done.stdout))


@pytest.mark.slow
def test_a_campaign_survives_controller_driver_and_ten_nodes(
    scale: Lab, tmp_path: Path
) -> None:
    """Each is killed in the middle; the run is resumed, and what was lost repeated."""
    process = begin(scale, "--campaign", "smoke", "--run-id", "kills", results=tmp_path)
    wait_for_job(scale, "kills", "pairs-1")
    scale.ssh("mhead", "sudo systemctl kill --signal=KILL slurmctld")
    with stopped(scale, "slurmctld", "mhead"):
        time.sleep(5)
    # It had ended, but the controller may have saved its state before that.
    scale.ssh("mhead", "scancel --name=seatrial-audit")
    wait_for_job(scale, "kills", "pairs-2", patience_s=600)
    scale.ssh("mhead", f"kill -KILL {driver_pid(scale, 'kills')}")
    process.communicate(timeout=120)
    assert process.returncode not in (0, 1, 3)
    process = begin(scale, "--resume", results=tmp_path)
    wait_for_job(scale, "kills", "pairs-3", patience_s=600)
    held = scale.ssh("mhead", HOLD.format("kills:halo-3"))
    assert held.returncode == 0, held.stderr
    daemons = " ".join(f"slurmd@n{number:04}" for number in range(41, 51))
    scale.ssh("carrier1", f"sudo systemctl kill --signal=KILL {daemons}")
    scale.ssh("mhead", f"sudo scontrol resume {held.stdout}")  # on the nodes that live
    update = "sudo scontrol update nodename=n[0041-0050]"
    scale.ssh("mhead", f"{update} state=down reason='lost power'")
    time.sleep(20)
    scale.ssh("carrier1", f"sudo systemctl start {daemons}")
    scale.ssh("mhead", f"{update} state=resume")
    said = process.communicate(timeout=900)[0]
    assert process.returncode == 0, said
    first = judged(tmp_path)
    lost = [f"n{number:04}" for number in range(41, 51)]
    failing = {node["name"] for node in first["nodes"] if node["verdict"] == "fail"}
    assert failing == {*lost, "n0014"}
    assert first["convicted"] == ["n0014"]
    assert "n[0041-0050] were lost at" in first["spoiled"][0]
    again = seatrial("repeat", "scale-lab/kills", results=tmp_path)
    assert again.returncode == 1, again.stdout + again.stderr
    both = judged(tmp_path)
    failing = {node["name"] for node in both["nodes"] if node["verdict"] == "fail"}
    assert failing == {"n0014"}
    assert both["spoiled"] == []
