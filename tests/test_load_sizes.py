"""Sizes of HPCC, NPB and LAMMPS by cores and memory of a class of nodes."""

import pytest

from seatrial.checks.hpcc_input import hpl_seconds, order_for_memory, order_for_time
from seatrial.checks.lammps_problems import ATOMS, MOST_ATOMS, PROBLEMS
from seatrial.checks.npb_sizes import (
    CLASSES,
    LONGEST_S,
    largest_class,
    npb_bytes,
    npb_seconds,
    ranks_of,
)
from seatrial.parsers.npb_problems import BENCHMARKS, problem_of

GIB = 1 << 30
MIB = 1 << 20
MACHINES = [
    (nodes, cores, gib * GIB)
    for nodes in (4, 64, 256, 1024)
    for cores, gib in ((2, 2), (128, 256), (192, 768))
]


@pytest.mark.parametrize(("nodes", "cores", "memory"), MACHINES)
def test_hpl_uses_half_of_the_memory(nodes: int, cores: int, memory: int) -> None:
    n = order_for_memory(0.5 * nodes * memory, 80)
    used = 8 * n**2 / (nodes * memory)
    assert 0.5 * (1 - 1 / 64) ** 2 * (1 - 1e-2) < used <= 0.5


@pytest.mark.parametrize(("nodes", "cores", "memory"), MACHINES)
def test_hpl_is_bounded_by_its_time(nodes: int, cores: int, memory: int) -> None:
    n = order_for_time(3600, nodes * cores, 80)
    assert 0.95 * 3600 < hpl_seconds(n, nodes * cores) <= 3600


def test_a_little_less_memory_has_the_same_matrix() -> None:
    orders = {order_for_memory(0.5 * 64 * (256 * GIB - x * MIB), 80) for x in range(99)}
    assert len(orders) <= 2


@pytest.mark.parametrize(
    ("benchmark", "one", "four"),
    [("FT", 450.8, 116.0), ("CG", 57.8, 19.2), ("MG", 437.4, 116.2)],
)
def test_memory_is_that_of_real_runs(benchmark: str, one: float, four: float) -> None:
    """MiB of a rank of class A on one and on four ranks, measured with NPB 3.4."""
    assert npb_bytes(benchmark, "A", 1) / MIB == pytest.approx(one, rel=0.05)
    assert npb_bytes(benchmark, "A", 4) / MIB == pytest.approx(four, rel=0.2)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_memory_grows_with_the_class_and_shrinks_with_ranks(benchmark: str) -> None:
    for ranks in (1, 64, 1024, 16384):
        classes = [size for size in reversed(CLASSES) if has(benchmark, size)]
        sizes = [npb_bytes(benchmark, size, ranks) for size in classes]
        assert sizes == sorted(sizes)
    if benchmark != "EP":
        assert npb_bytes(benchmark, "E", 64) > npb_bytes(benchmark, "E", 256)


def has(benchmark: str, size: str) -> bool:
    try:
        return bool(problem_of(benchmark, size))
    except ValueError:
        return False


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize(("nodes", "cores", "memory"), MACHINES)
def test_npb_is_the_largest_that_fits(
    benchmark: str, nodes: int, cores: int, memory: int
) -> None:
    size = largest_class(benchmark, 0.5 * memory, [nodes], cores)
    assert size is not None
    for each in CLASSES[: CLASSES.index(size) + 1]:
        spread = (
            ranks_of(benchmark, each, nodes, cores) if has(benchmark, each) else None
        )
        if spread:
            ranks = spread[0] * spread[1]
            used = spread[1] * npb_bytes(benchmark, each, ranks)
            seconds = npb_seconds(benchmark, each, ranks)
            assert (used <= 0.5 * memory and seconds <= LONGEST_S) is (each == size)


def test_classes_of_a_small_and_a_large_machine() -> None:
    small = {b: largest_class(b, GIB, [4], 2) for b in BENCHMARKS}
    large = {b: largest_class(b, 128 * GIB, [1024], 128) for b in BENCHMARKS}
    assert "".join(map(str, small.values())) == "BCDBCCCB"
    assert "".join(map(str, large.values())) == "FEFFEFFF"  # IS has no F


def test_a_run_on_fewer_nodes_must_fit_too() -> None:
    assert largest_class("FT", 128 * GIB, [64], 128) == "F"
    assert largest_class("FT", 128 * GIB, [64, 1], 128) == "D"


def test_no_class_fits() -> None:
    assert largest_class("MG", 1e3, [4], 2) is None


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(("nodes", "cores", "memory"), MACHINES)
def test_atoms_stay_within_the_memory(
    problem: str, nodes: int, cores: int, memory: int
) -> None:
    """They use a quarter of the machine or more, or all numbers of atoms."""
    room, ranks = 0.5 * nodes * memory, nodes * cores
    copies = PROBLEMS[problem].copies_in(room, ranks)
    used = copies * PROBLEMS[problem].mib * MIB
    assert used <= room
    assert used > 0.4 * room or 2 * copies * ATOMS > MOST_ATOMS
    assert copies * ATOMS <= MOST_ATOMS


@pytest.mark.parametrize(("nodes", "cores", "memory"), MACHINES)
def test_loads_of_a_campaign_take_minutes(nodes: int, cores: int, memory: int) -> None:
    """LAMMPS at most 20 minutes; NPB is held by its class."""
    ranks = nodes * cores
    for problem in PROBLEMS.values():
        copies = problem.copies_in(0.5 * nodes * memory, ranks)
        assert 1 < problem.typical_s(copies, ranks) < 1200


def test_no_room_for_a_copy() -> None:
    assert PROBLEMS["rhodo"].copies_in(8 * (100 << 20), 8) == 0
