"""The comparison of places with the binding, on maps of nodes that tests make."""

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.checks.placed_threads import Shape, violations
from seatrial.parsers.affinity import parse_affinity, parse_ready
from seatrial.parsers.errors import ParseError

DATA = Path(__file__).parent / "data" / "affinity"
RUN = {
    "type": "run",
    "program": "affinity",
    "version": "0.1.0",
    "commit": "c",
    "mpi": "m",
    "time_ms": 200,
    "ready_s": 1795730897.2,
}
# Two sockets of two NUMA nodes, of two cores, of two hardware threads each: the
# second threads of cores 0 to 7 are CPUs 8 to 15.
CORES = " ".join(f"{core},{core + 8}" for core in range(8))
NUMA = "0-1,8-9 2-3,10-11 4-5,12-13 6-7,14-15"
SOCKETS = "0-3,8-11 4-7,12-15"


def node(name: str) -> dict[str, Any]:
    map_of = {"cores": CORES, "sockets": SOCKETS, "numa": NUMA}
    return {"type": "node", "node": name, **map_of, "hcas": "mlx5_0:0 mlx5_1:2"}


def core(number: int) -> str:
    return f"{number},{number + 8}"


def run_of(*ranks: list[dict[str, Any]], nodes: int = 1) -> str:
    """Return the output of ranks, spread evenly over nodes n1 and so on."""
    lines = [RUN | {"np": len(ranks), "nodes": nodes}]
    each = len(ranks) // nodes
    for rank, threads in enumerate(ranks):
        name = f"n{rank // each + 1}"
        lines += [node(name)] if rank % each == 0 else []
        lines += [
            {"type": "thread", "node": name, "rank": rank, "thread": thread, **row}
            for thread, row in enumerate(threads)
        ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def thread(process: str, allowed: str, seen: str = "") -> dict[str, Any]:
    seen = seen or allowed.split(",")[0].split("-")[0]
    where = {"process": process, "allowed": allowed, "seen": seen}
    return {**where, "moves": 0, "numa": "0", "hcas": None}


def rank_on(*cores: int) -> list[dict[str, Any]]:
    """Return a rank with a thread on each of some cores."""
    process = ",".join(core(number) for number in cores)
    return [thread(process, core(number)) for number in cores]


def found(text: str, ranks: int, threads: int, is_bound: bool = True) -> list[str]:
    shape = Shape(ranks, threads, is_bound)
    return [str(fault) for fault in violations(parse_affinity(text), shape)]


@pytest.mark.parametrize(
    ("ranks", "shape"),
    [
        ([rank_on(*range(8))], (1, 8)),
        ([rank_on(0, 1, 2, 3), rank_on(4, 5, 6, 7)], (2, 4)),
        ([rank_on(2 * i, 2 * i + 1) for i in range(4)], (4, 2)),
        ([rank_on(i) for i in range(8)], (8, 1)),
    ],
)
def test_ranks_in_place_have_no_fault(
    ranks: list[list[dict[str, Any]]], shape: tuple[int, int]
) -> None:
    assert found(run_of(*ranks), *shape) == []
    assert found(run_of(*ranks, *ranks, nodes=2), *shape) == []


@pytest.mark.parametrize(
    ("ranks", "shape", "fault"),
    [
        (
            [rank_on(0, 1), rank_on(1, 2)],
            (2, 2),
            (
                "n1: rank 1: expected no core of rank 0 (it has that of CPU 1), "
                "seen CPUs 1,9,2,10"
            ),
        ),
        (
            [[thread("0", "0")], [thread("8", "8")]],  # one core, two threads of it
            (2, 1),
            (
                "n1: rank 1: expected no core of rank 0 (it has that of CPU 0), "
                "seen CPUs 8"
            ),
        ),
        (
            [rank_on(1, 2)],
            (1, 2),
            f"n1: rank 0: expected CPUs of one NUMA node of {NUMA}, seen CPUs 1,9,2,10",
        ),
        (
            [rank_on(0, 1, 2, 4)],
            (1, 4),
            (
                f"n1: rank 0: expected CPUs of one socket of {SOCKETS}, seen CPUs "
                "0,8,1,9,2,10,4,12"
            ),
        ),
        (
            [[thread("0-1,8-9", "0-1,8-9", "0"), thread("0-1,8-9", core(1))]],
            (1, 2),
            "n1: rank 0 thread 0: expected one core of CPUs 0-1,8-9, seen CPUs 0-1,8-9",
        ),
        (
            [[thread("0-1,8-9", core(0)), thread("0-1,8-9", "8")]],
            (1, 2),
            (
                "n1: rank 0 thread 1: expected no core of another thread (thread 0), "
                "seen CPUs 8"
            ),
        ),
        (
            [[thread(core(0), core(0)), thread(core(0), core(1))]],
            (1, 2),
            "n1: rank 0 thread 1: expected CPUs of its rank, 0,8, seen CPUs 1,9",
        ),
        (
            [[thread(core(0), core(0), "0,3")]],
            (1, 1),
            "n1: rank 0 thread 0: expected CPUs 0,8, seen CPUs 0,3",
        ),
        (
            [[thread("0-15", core(0))]],
            (1, 1),
            "n1: rank 0: expected 1 core, seen CPUs 0-15",
        ),
        ([rank_on(0)], (2, 1), "n1: rank 0: expected 2 ranks on the node, seen 1"),
        ([rank_on(0)], (1, 2), "n1: rank 0: expected 2 threads, seen 1"),
    ],
)
def test_faults_name_node_rank_thread_and_cpus(
    ranks: list[list[dict[str, Any]]], shape: tuple[int, int], fault: str
) -> None:
    assert fault in found(run_of(*ranks), *shape)


def test_a_fault_of_one_node_is_not_that_of_another() -> None:
    sound, bad = [rank_on(0), rank_on(1)], [rank_on(0), rank_on(0)]
    faults = found(run_of(*sound, *bad, nodes=2), 2, 1)
    assert [fault.partition(":")[0] for fault in faults] == ["n2"]


def test_without_a_binding_only_presence_counts() -> None:
    everywhere = [thread("0-15", "0-15", "0,5")] * 2
    assert found(run_of(everywhere, everywhere), 2, 2, is_bound=False) == []
    assert found(run_of(everywhere), 2, 2, is_bound=False) == [
        "n1: rank 0: expected 2 ranks on the node, seen 1"
    ]


def test_real_outputs_are_read() -> None:
    bound = (DATA / "mpich-4.0.2-np1-threads2-bound.txt").read_text()
    free = (DATA / "openmpi-4.1.4-np2-threads1.txt").read_text()
    assert found(bound, 1, 2) == []
    assert "vm: rank 1: expected no core of rank 0" in "".join(found(free, 2, 1))
    assert found(free, 2, 1, is_bound=False) == []


GOOD = run_of(rank_on(0, 1), rank_on(2, 3))


@pytest.mark.parametrize(
    ("line", "new", "reason"),
    [
        (0, "", "expected one run, and it first"),
        (1, "", "1 nodes with 0 maps"),
        (2, "", "rank 0 thread 1, expected rank 0 thread 0"),
        (5, "", "2 ranks, expected"),
        (3, '{"type": "thread"', "not a JSON row"),
        (4, json.dumps(node("n1")), "a second map of n1"),
        (2, json.dumps(RUN | {"np": 2, "nodes": 1}), "expected one run"),
    ],
)
def test_damaged_outputs_are_refused(line: int, new: str, reason: str) -> None:
    lines = GOOD.splitlines()
    if line == 5:
        lines, reason = lines[:4], "1 ranks, expected 2"
    else:
        lines[line] = new
    with pytest.raises(ParseError) as refusal:
        parse_affinity("\n".join(lines) + "\n")
    assert reason in str(refusal.value)


@pytest.mark.parametrize("key", ["process", "allowed", "seen"])
@pytest.mark.parametrize("text", ["", "0-", "x", "1;2"])
def test_lists_of_cpus_are_verified(key: str, text: str) -> None:
    with pytest.raises(ParseError):
        parse_affinity(run_of([thread("0", "0") | {key: text}]))


def test_ready_has_no_threads() -> None:
    with pytest.raises(ParseError, match="2 ranks and 4 threads, expected 2 and 0"):
        parse_ready(GOOD, 2)
    assert parse_ready(GOOD.splitlines()[0], 2).ready_s == RUN["ready_s"]
