"""The lab's inventory script."""

import json
import os
import runpy
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "inventories/lab/hosts.py"


def run(count: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"LAB_NODES": count}
    return subprocess.run(
        [SCRIPT], env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("count", [1, 4, 8, 64])
def test_names_and_addresses(count: int) -> None:
    groups = json.loads(run(str(count)).stdout)
    nodes = groups["compute"]["hosts"]
    assert nodes == [f"cn{i:02}" for i in range(1, count + 1)]
    variables = groups["_meta"]["hostvars"]
    assert list(variables) == ["head", *nodes]
    assert len({host["lab_address"] for host in variables.values()}) == count + 1


@pytest.mark.parametrize("count", ["0", "65", "-1", "four", "1.5"])
def test_absurd_counts(count: str) -> None:
    done = run(count)
    assert done.returncode != 0
    assert done.stderr == f"LAB_NODES={count}: expected a number from 1 to 64\n"


def test_the_second_lab_has_a_login_node_of_its_own_and_two_classes() -> None:
    script = SCRIPT.parents[1] / "lab-trixie/hosts.py"
    env = os.environ | {"LAB_NODES": "3"}
    done = subprocess.run([script], env=env, capture_output=True, text=True, check=True)
    groups = json.loads(done.stdout)
    assert groups["lab"]["hosts"][0] == "login1"
    assert groups["controller"]["hosts"] == ["admin1"]
    assert groups["cpu"]["hosts"] == ["cn01", "cn02", "cn03"]
    assert groups["fat"]["hosts"] == ["fat01", "fat02"]
    addresses = [host["lab_address"] for host in groups["_meta"]["hostvars"].values()]
    assert len(set(addresses)) == len(groups["lab"]["hosts"]) == 7


def test_the_lab_with_rdma_cannot_be_mixed_up_with_the_lab() -> None:
    script = SCRIPT.parents[1] / "rdma-lab/hosts.py"
    done = subprocess.run([script], capture_output=True, text=True, check=True)
    groups = json.loads(done.stdout)
    lab = json.loads(run("64").stdout)
    assert groups["compute"]["hosts"] == ["rn01", "rn02"]
    assert not {*groups["lab"]["hosts"]} & {*lab["lab"]["hosts"]}
    subnets = [
        {host["lab_address"].rpartition(".")[0] for host in hosts.values()}
        for hosts in (groups["_meta"]["hostvars"], lab["_meta"]["hostvars"])
    ]
    assert subnets == [{"10.98.0"}, {"10.99.0"}]


SCALE = SCRIPT.parents[1] / "scale-lab/hosts.py"


def scale(count: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"LAB_SCALE": count}
    return subprocess.run([SCALE], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("count", "carried", "leafs"),
    [
        (8, [8], ["n[0001-0008]"]),
        (64, [64], ["n[0001-0032]", "n[0033-0064]"]),
        (257, [256, 1], [f"n[{i:04}-{i + 31:04}]" for i in range(1, 257, 32)]),
        (1024, [256] * 4, [f"n[{i:04}-{i + 31:04}]" for i in range(1, 1025, 32)]),
    ],
)
def test_containers_of_the_scale_lab_carry_all_nodes(
    count: int, carried: list[int], leafs: list[str]
) -> None:
    groups = json.loads(scale(str(count)).stdout)
    hosts = groups["_meta"]["hostvars"]
    carriers = [hosts[name] for name in groups["compute"]["hosts"]]
    assert [len(host["slurm_nodes"]) for host in carriers] == carried
    names = [name for host in carriers for name in host["slurm_nodes"]]
    assert names == [f"n{i:04}" for i in range(1, count + 1)]
    facts = groups["all"]["vars"]
    assert facts["model_nodes"] == f"n[0001-{count:04}]"
    assert facts["lab_scale"] == count
    last = ["n[0257-0257]"] if count == 257 else []
    assert [*facts["model_leafs"].values()] == leafs + last
    assert all(host["slurm_address"] == host["lab_address"] for host in carriers)


@pytest.mark.parametrize("count", ["7", "5000", "x", "-64"])
def test_absurd_scales(count: str) -> None:
    done = scale(count)
    assert done.returncode != 0
    assert done.stderr == f"LAB_SCALE={count}: expected a number from 8 to 1024\n"


def test_a_running_scale_lab_says_how_many_nodes_it_has(tmp_path: Path) -> None:
    record = tmp_path / "lab.json"
    script = runpy.run_path(str(SCALE))
    script["scale"].__globals__["RUNNING"] = record
    for written, count in (({"nodes": {}, "scale": 64}, 64), ({"nodes": {}}, 256)):
        record.write_text(json.dumps(written))
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("LAB_SCALE", raising=False)
            assert script["scale"]() == count


def test_nodes_of_another_lab_are_not_counted(tmp_path: Path) -> None:
    record = tmp_path / "lab.json"
    script = runpy.run_path(str(SCRIPT))
    script["compute_nodes"].__globals__["RUNNING"] = record
    for names, count in ((["rhead", "rn01", "rn02"], 4), (["head", "cn01"], 1)):
        record.write_text(json.dumps({"nodes": dict.fromkeys(names, "")}))
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("LAB_NODES", raising=False)
            assert script["compute_nodes"]() == count
