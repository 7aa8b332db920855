"""The fingerprint of a run: readable, the same for the same system, and compared."""

from typing import Any

import pytest

from seatrial.names import node_set
from seatrial.runs.fingerprint import differences, fingerprint

FACTS: dict[str, Any] = {
    "cpus": 128,
    "sockets": 2,
    "cores_per_socket": 64,
    "memory_mib": 515_500,
    "cpu_model": "AMD EPYC 7763",
    "os": "Rocky 9.4",
    "kernel": "5.14.0-427",
    "hcas": [
        {
            "name": f"mlx5_{number}",
            "firmware": "20.41.1000",
            "board": "MT_0000000223",
            "driver": "mlx5_core 24.10-1.1.4",
        }
        for number in range(2)
    ],
}
SOFTWARE = {
    "slurm": "23.11.4",
    "stacks": [
        {"name": "openmpi", "version": "5.0.5", "compiler": "gcc@13.2.0"},
        {"name": "intelmpi", "version": "2021.13"},
    ],
    "spack": {"environments": [{"name": "apps/openmpi", "sha256": "0123456789abcdef"}]},
}


def manifest(**nodes: dict[str, Any]) -> dict[str, Any]:
    listed = [{"name": name, "facts": facts} for name, facts in nodes.items()]
    return {"nodes": listed, "software": SOFTWARE}


def test_what_is_the_same_everywhere_is_said_once() -> None:
    found = fingerprint(manifest(cn01=FACTS, cn02=FACTS, cn03={}))
    assert found == {
        "cpu": "2 x AMD EPYC 7763 with 64 cores",
        "driver": "mlx5_core 24.10-1.1.4",
        "firmware": "mlx5_0 20.41.1000 MT_0000000223, mlx5_1 20.41.1000 MT_0000000223",
        "kernel": "5.14.0-427",
        "memory": "503 GiB",
        "mpi": "intelmpi 2021.13, openmpi 5.0.5 gcc@13.2.0",
        "nodes": "cn[01-03]",
        "os": "Rocky 9.4",
        "slurm": "23.11.4",
        "spack": "apps/openmpi 0123456789ab",
    }
    assert list(found) == sorted(found)


def test_nodes_that_differ_are_listed_by_value() -> None:
    newer = FACTS | {"kernel": "5.14.0-503"}
    nodes = dict.fromkeys(("cn01", "cn02", "cn04"), FACTS) | {"cn03": newer}
    found = fingerprint(manifest(**nodes))
    assert found["kernel"] == "5.14.0-427 (cn[01-02,04]); 5.14.0-503 (cn03)"
    assert found["os"] == "Rocky 9.4"


def test_hca_without_driver_and_firmware_is_only_named() -> None:
    soft = {"name": "rxe0", "firmware": "", "board": "", "driver": ""}
    found = fingerprint(manifest(cn01={"hcas": [soft, *FACTS["hcas"][:1]]}))
    assert found["driver"] == "mlx5_core 24.10-1.1.4"
    assert found["firmware"] == "rxe0, mlx5_0 20.41.1000 MT_0000000223"


def test_a_few_mib_make_no_other_memory() -> None:
    more = FACTS | {"memory_mib": 515_503}
    assert fingerprint(manifest(cn01=FACTS)) == fingerprint(manifest(cn01=more))


def test_what_nobody_told_is_left_out() -> None:
    assert fingerprint({"nodes": []}) == {}
    found = fingerprint({"nodes": [{"name": "a"}], "software": {"stacks": None}})
    assert found == {"nodes": "a"}


def test_differences_are_of_what_the_old_one_tells() -> None:
    old = {"kernel": "6.1.0-25", "nodes": "cn[01-04]", "firmware": "1"}
    new = {"kernel": "6.1.0-28", "nodes": "cn[01-04]", "os": "Debian 12"}
    assert differences(old, new) == [
        "kernel was 6.1.0-25, is 6.1.0-28",
        "firmware was 1, is not known",
    ]
    assert differences(old, old) == []


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("", ""),
        ("login", "login"),
        ("cn07", "cn07"),
        ("cn03 cn01 cn02 cn07 login", "cn[01-03,07],login"),
        ("cn8 cn9 cn10", "cn[8-10]"),
        ("cn08 cn09 cn10 cn100", "cn[08-10,100]"),
        ("cn098 cn099 cn100", "cn[098-100]"),
        ("cn1 cn01 cn2", "cn[01,1-2]"),
        ("a1-ib a2-ib", "a1-ib,a2-ib"),
        ("r1n1 r1n2 r2n1 r", "r,r1n[1-2],r2n1"),
    ],
)
def test_nodes_are_written_as_slurm_does(names: str, text: str) -> None:
    assert node_set(names.split()) == text
