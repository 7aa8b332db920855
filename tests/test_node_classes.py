"""Ansible module node_classes_info: nodes, facts and options of classes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from fake_home import fake_program

from seatrial.system.doctor.probe import access

MODULE = (
    Path(__file__).parents[1] / "playbooks/roles/nodes/library/node_classes_info.py"
)

_SINFO = """
cat <<'END'
cn1|standard|idle
cn2|standard|mixed
cn3|standard|idle
cn4|standard|down*
cn5|standard|idle
fat1|hidden|allocated
gone1|broken|down*
own1|own|reserved
own2|own|maint
END
"""
_SCONTROL = """
case $2 in
  hostnames)
    case $3 in
      'cn[1-4]') printf 'cn1\\ncn2\\ncn3\\ncn4\\n';;
      'cn[1-4],cn5') printf 'cn1\\ncn2\\ncn3\\ncn4\\ncn5\\n';;
      'cn[1-2]') printf 'cn1\\ncn2\\n';;
      *'['*) echo "Invalid hostlist: $3" >&2; exit 1;;
      *) echo "$3" | tr , '\\n';;
    esac;;
  hostlist) echo "$3";;
esac
"""
_SRUN = """
echo "$@" >>{log}
echo 'welcome {{to}} the machine'
nodes=fat1
for option in "$@"; do
  case $option in --nodelist=*) nodes=${{option#*=}};; esac
done
for node in $(echo $nodes | tr , ' '); do
  cpus=4; [ $node = cn3 ] && cpus=3
  printf '%s {{"cpus": %d, "sockets": 1, "cores_per_socket": %d,' $node $cpus $cpus
  printf ' "threads_per_core": 1, "memory_mib": 1000, "cpu_model": "x"}}\\n'
done
"""

CPU = {"name": "cpu", "hosts": [], "partition": "standard", "nodes": "cn[1-4]"}
FAT = {**CPU, "name": "fat", "partition": "hidden", "nodes": "fat1", "account": "acc"}


class Cluster:
    """A Slurm of shell scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        for name, script in (
            ("sinfo", _SINFO),
            ("scontrol", _SCONTROL),
            ("srun", _SRUN.format(log=self.log)),
        ):
            fake_program(folder, name, script)

    def look(self, *classes: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Run the module as Ansible does."""
        arguments = {"classes": classes, "script": "facts", "wait_s": 1, **more}
        done = subprocess.run(
            [sys.executable, MODULE],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
            env={"PATH": f"{self.folder}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        return cast("dict[str, Any]", json.loads(done.stdout))


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_facts_are_read_from_idle_nodes_and_other_nodes_are_excluded(
    cluster: Cluster,
) -> None:
    found = cluster.look({**CPU, "constraint": "hdr", "mem": "0", "access": ["--nice"]})
    assert found["problems"] == []
    (cpu,) = found["classes"]
    assert cpu["nodes"] == ["cn1", "cn2", "cn3", "cn4"]
    assert cpu["access"] == [
        "--partition=standard",
        "--constraint=hdr",
        "--mem=0",
        "--nice",
        "--exclude=cn5",
    ]
    facts = {node["name"]: node["facts"] for node in found["nodes"]}
    assert {name: one.get("cpus") for name, one in facts.items()} == {
        **{"cn1": 4, "cn2": None, "cn3": 3, "cn4": None},
    }
    assert cpu["facts"]["cpus"] == 4, "the node with most CPUs speaks for the class"
    assert "--nodelist=cn1,cn3" in cluster.log.read_text()


def test_a_busy_class_waits_for_one_node_of_a_hidden_partition(
    cluster: Cluster,
) -> None:
    found = cluster.look(FAT)
    assert found["problems"] == []
    assert found["classes"][0]["access"] == ["--partition=hidden", "--account=acc"]
    command = cluster.log.read_text()
    assert "--nodes=1" in command
    assert "--nodelist" not in command


@pytest.mark.parametrize(
    ("reservation", "expected"),
    [("ours", "--nodelist=own1,own2"), (None, "--nodes=1 ")],
)
def test_nodes_of_a_reservation_are_ready_for_a_class_that_has_it(
    reservation: str | None, expected: str, cluster: Cluster
) -> None:
    own = {**CPU, "partition": "own", "nodes": "own1,own2", "reservation": reservation}
    cluster.look(own)
    command = cluster.log.read_text()
    assert expected in command
    assert ("--nodelist" in command) == (reservation is not None)


def test_racks_and_leafs_become_facts_also_of_nodes_that_are_down(
    cluster: Cluster,
) -> None:
    found = cluster.look({**CPU, "racks": {"r1": "cn[1-2]", "r2": "cn4"}})
    facts = {node["name"]: node["facts"].get("rack") for node in found["nodes"]}
    assert facts == {"cn1": "r1", "cn2": "r1", "cn3": None, "cn4": "r2"}


def test_nodes_of_a_class_are_grouped_by_rack_else_by_leaf(cluster: Cluster) -> None:
    leafs = {"leafs": {"l1": "cn[1-2]", "l2": "cn4"}}
    (by_leaf,) = cluster.look({**CPU, **leafs})["classes"]
    assert by_leaf["racks"] == {"l1": ["cn1", "cn2"], "l2": ["cn4"]}
    (by_rack,) = cluster.look({**CPU, **leafs, "racks": {"r1": "cn[1-2]"}})["classes"]
    assert by_rack["racks"] == {"r1": ["cn1", "cn2"]}
    assert cluster.look(CPU)["classes"][0]["racks"] == {}


def test_ssh_lines_replace_srun(cluster: Cluster) -> None:
    line = (
        'cn2 {"cpus": 8, "sockets": 2, "cores_per_socket": 4, "threads_per_core": 1, '
        '"memory_mib": 5, "cpu_model": "y"}'
    )
    found = cluster.look(CPU, lines=[line])
    assert found["classes"][0]["facts"]["cpus"] == 8
    assert not cluster.log.exists()


def test_declared_cores_stand_in_for_facts(cluster: Cluster) -> None:
    declared = {"cores": 64, "memory_mib": 256_000}
    gone = {**CPU, "name": "gone", "partition": "broken", "nodes": "gone1"}
    found = cluster.look({**gone, **declared})
    assert found["problems"] == []
    facts = found["classes"][0]["facts"]
    assert (facts["cpus"], facts["memory_mib"]) == (64, 256_000)


def test_the_doctor_gives_a_class_the_same_options(cluster: Cluster) -> None:
    described = {
        **CPU,
        **{"nodes": "cn[1-4],cn5", "constraint": "a|b", "account": "x", "qos": "high"},
        **{"reservation": "r", "gres": "gpu:4", "mem": 0, "access": ["--nice"]},
    }
    found = cluster.look(described)
    assert found["classes"][0]["access"] == access(described)


@pytest.mark.parametrize(
    ("described", "problem"),
    [
        (
            {**CPU, "partition": "fast"},
            "partition: Slurm has no 'fast'; it has broken, hidden, own, standard",
        ),
        (
            {**CPU, "nodes": "cn[1-"},
            "nodes: expected a host list such as cn[001-128]",
        ),
        (
            {**CPU, "nodes": "xn1,xn2"},
            "nodes: none of them is in Slurm's partition standard (xn1,xn2); it has",
        ),
        (
            {**CPU, "partition": "broken", "nodes": "gone1"},
            "no node is up to read facts from (gone1 is down*); declare cores and",
        ),
        (
            {**CPU, "partition": "broken", "nodes": "gone1", "cores": 64},
            "no node is up to read facts from (gone1 is down*); declare cores and",
        ),
        (
            {**CPU, "racks": {"r1": "cn[1-"}},
            "racks: r1: expected a host list such as cn[001-128], got 'cn[1-'",
        ),
        (
            {**CPU, "power_command": " "},
            "power_command: expected a command in one line, got ' '",
        ),
        (
            {**CPU, "power_command": "ipmi\nwatts"},
            "power_command: expected a command in one line, got 'ipmi\\nwatts'",
        ),
    ],
)
def test_a_problem_names_class_cause_and_remedy(
    cluster: Cluster, described: dict[str, Any], problem: str
) -> None:
    (text,) = cluster.look(described)["problems"]
    assert text.startswith(f"node_classes: cpu: {problem}")


def test_a_class_whose_srun_fails_is_a_problem(cluster: Cluster) -> None:
    fake_program(
        cluster.folder, "srun", "echo 'srun: error: Invalid account' >&2; exit 1"
    )
    (text,) = cluster.look(FAT)["problems"]
    assert "no facts through srun (srun: error: Invalid account)" in text
    assert "`srun --partition=hidden --account=acc hostname`" in text


def test_slurm_that_does_not_answer_is_the_only_problem(cluster: Cluster) -> None:
    fake_program(cluster.folder, "sinfo", "echo 'slurm_load_node: timeout' >&2; exit 1")
    found = cluster.look(CPU, FAT)
    assert found["problems"] == [
        "sinfo: slurm_load_node: timeout; run site.yml where Slurm answers"
    ]
