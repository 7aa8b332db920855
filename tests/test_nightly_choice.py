"""Which nodes a night measures, and the part of a system that has only them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from fake_home import SETTINGS, fake_program, write

from seatrial.errors import SeatrialError
from seatrial.nightly.choice import choose, free_nodes
from seatrial.nightly.part import part_of
from seatrial.system.description import read_system

CPU = tuple(f"cn{number:02}" for number in range(1, 11))
GPU = ("gn01", "gn02", "gn03")
RESERVATION = (
    "ReservationName=night StartTime=2026-03-01T00:00:00 EndTime=2027-03-01T00:00:00 "
    "Nodes=cn01 Users=(null)"
)
CLASSES = {"cpu": CPU, "gpu": GPU}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that sets the script of sinfo; one reservation is there."""
    hosts = f'[ "$2" = hostnames ] && echo cn01 || echo "{RESERVATION}"'
    fake_program(tmp_path, "scontrol", hosts)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return lambda script: fake_program(tmp_path, "sinfo", script)


def chosen(
    free: Sequence[str],
    watched: Sequence[str] = (),
    unseen: dict[str, int] | None = None,
    every: int = 5,
    most: int = 100,
) -> dict[str, tuple[str, ...]]:
    of = choose(CLASSES, {*free}, watched, unseen or {}, every=every, most=most)
    return dict(of.nodes)


def test_watched_nodes_come_first_then_those_unseen_longest() -> None:
    unseen = dict.fromkeys(CPU, 1) | {"cn07": 9, "cn03": 4, "cn10": 2}
    assert chosen(CPU, ["cn05"], unseen)["cpu"] == ("cn05", "cn07", "cn03")


def test_a_node_that_was_never_measured_comes_before_all_seen_ones() -> None:
    unseen = dict.fromkeys(CPU[:-1], 9)
    assert chosen(CPU, (), unseen)["cpu"][0] == "cn10"


def test_every_node_comes_within_the_declared_nights() -> None:
    last = dict.fromkeys((*CPU, *GPU), -5)
    for night in range(5):
        for nodes in chosen(
            (*CPU, *GPU), (), {n: night - at for n, at in last.items()}
        ).values():
            last |= dict.fromkeys(nodes, night)
    assert min(last.values()) >= 0


def test_only_idle_nodes_are_chosen() -> None:
    free = ("cn02", "cn09", "gn01")
    choice = choose(CLASSES, {*free}, (), {}, every=1, most=100)
    assert choice.nodes == {"cpu": ("cn02", "cn09")}
    assert choice.left_out == {"gpu": "1 of 3 nodes are idle; not: gn[02-03]"}


def test_the_budget_is_shared_by_the_classes() -> None:
    choice = choose(CLASSES, {*CPU, *GPU}, (), {}, every=1, most=5)
    assert {name: len(nodes) for name, nodes in choice.nodes.items()} == {
        "cpu": 3,
        "gpu": 2,
    }
    assert (choice.needed, choice.over_budget) == (13, 8)


def test_a_budget_of_one_node_measures_nothing() -> None:
    choice = choose(CLASSES, {*CPU, *GPU}, (), {}, every=1, most=1)
    assert not choice.nodes
    assert "do not pay" in choice.left_out["cpu"]


@pytest.mark.parametrize(
    ("state", "free"),
    [
        ("idle", True),
        *((f"idle{suffix}", False) for suffix in "*~#!%$@^-+"),
        ("mixed", False),
        ("allocated", False),
        ("planned", False),
        ("reserved", False),
        ("maint", False),
        ("drained", False),
        ("completing", False),
        ("powered_down", False),
    ],
)
def test_only_exactly_idle_is_free(
    slurm: Callable[[str], None], state: str, free: bool
) -> None:
    slurm(f"echo 'cn01|{state}|none'; echo 'cn02|idle|none'")
    free_of = free_nodes({"cpu": (CPU, "")})
    assert free_of == {"cn02"} | ({"cn01"} if free else set())


def test_nodes_of_the_reservation_of_the_site(slurm: Callable[[str], None]) -> None:
    slurm("printf 'cn01|reserved|none\\ncn02|idle|none\\ncn03|reserved|none\\n'")
    classes = {"cpu": (("cn01", "cn02", "cn03"), "night")}
    assert free_nodes(classes) == {"cn01"}
    assert free_nodes({"cpu": (("cn01", "cn02"), "")}) == {"cn02"}
    with pytest.raises(SeatrialError, match="knows no reservation day"):
        free_nodes({"cpu": (CPU, "day")})


def test_silent_slurm_is_no_empty_machine(slurm: Callable[[str], None]) -> None:
    slurm("exit 1")
    with pytest.raises(SeatrialError, match="Slurm does not answer"):
        free_nodes({"cpu": (CPU, "")})


def test_a_part_has_only_the_chosen_nodes(tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "part"
    folder.mkdir()
    settings = json.loads(json.dumps(SETTINGS))
    (partition,) = settings["systems"][0]["partitions"]
    partition.update(
        scheduler="slurm", access=["--partition=batch", "--exclude=gn[01-02]"]
    )
    partition["extras"] = {"nodes": ["cn01", "cn02", "cn03", "cn04"]}
    other = {**partition, "name": "gpu", "extras": {"nodes": ["gn01"]}}
    settings["systems"][0]["partitions"].append(other)
    names = ["cn01", "cn02", "cn03", "cn04", "gn01"]
    described = {
        "system": "lab",
        "nodes": [{"name": name, "facts": {"leaf": "l1"}} for name in names],
        "software": {},
    }
    write(whole / "system.json", json.dumps(described))
    write(whole / "settings.yaml", json.dumps(settings))
    system = read_system(whole, "lab")
    part = part_of(system, {partition["name"]: ["cn03", "cn01"]}, ["--nice=9"], folder)
    assert [node.name for node in part.nodes] == ["cn01", "cn03"]
    assert part.nodes[0].facts == {"leaf": "l1"}
    (name,) = part.classes
    assert part.classes[name].nodes == ("cn03", "cn01")
    assert part.classes[name].access == (
        "--partition=batch",
        "--exclude=gn[01-02],cn[02,04]",
        "--nice=9",
    )
    assert part.name == system.name
    assert read_system(whole, "lab") == system
