"""Classes of the NAS Parallel Benchmarks by memory and ranks (NPB-MPI 3.4).

NPB's documentation gives no memory by class: bytes are those of the arrays that its
sources allocate (`alloc_space` in XX/xx_data.f90, `alloc_key_buff` in IS/is.c), with
their borders.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from math import isqrt

from seatrial.checks.npb_ranks import most_ranks, runs_on
from seatrial.parsers.npb_problems import CG_NONZEROES, problem_of

CLASSES = "FEDCBAS"
"""Classes to choose from, the largest first: those that site.yml and Spack build."""
LONGEST_S = 600
"""A class is too large if a run takes longer at the typical rate."""
MOPS_OF_A_RANK = {
    **{"BT": 1000, "CG": 150, "EP": 30, "FT": 500, "IS": 20},
    **{"LU": 800, "MG": 500, "SP": 500},
}
"""Typical 10^6 operations per second of a rank while all cores of a node are busy.

A step from class to class is a factor of 16 or so: the order of magnitude is enough.
"""
_DOUBLE = 8
_INTEGER = 4


def npb_seconds(benchmark: str, problem_class: str, ranks: int) -> float:
    """Return the seconds of a run at the typical rate."""
    operations = problem_of(benchmark, problem_class).operations
    return operations / (1e6 * MOPS_OF_A_RANK[benchmark] * ranks)


def npb_bytes(benchmark: str, problem_class: str, ranks: int) -> float:
    """Return the bytes of the arrays of one rank."""
    n = problem_of(benchmark, problem_class).size[0]
    if benchmark in ("BT", "SP"):
        return _DOUBLE * _in_cells(benchmark, n, isqrt(ranks))
    if benchmark == "LU":
        return _DOUBLE * _in_columns(n, ranks)
    if benchmark == "MG":
        return _DOUBLE * _in_levels(n, ranks)
    if benchmark == "FT":  # three complex arrays, one of doubles
        x, y, z = problem_of(benchmark, problem_class).size
        return 7 * _DOUBLE * x * y * z / ranks
    if benchmark == "CG":
        return _in_rows(n, problem_class, ranks)
    if benchmark == "IS":
        most = ((256, 1.5), (512, 2.5), (1024, 4))
        factor = next((factor for limit, factor in most if ranks < limit), 6.5)
        return 3 * _INTEGER * factor * n / ranks
    return 1 << 20  # EP


def _in_cells(benchmark: str, n: int, cells: int) -> float:
    """BT, SP: `cells` cubes for a rank, with borders of 0, 1 or 2 points."""
    side = n // cells + 1
    if benchmark == "BT":
        inner, one, both, buffers = 5, 30, 6, 60
    else:
        inner, one, both, buffers = 25, 0, 8, 120
    cube = (
        5 * (side + 4) ** 3
        + inner * side**3
        + one * (side + 1) ** 3
        + both * (side + 2) ** 3
    )
    return cells * cube + 2 * buffers * side**2 * (cells - 1)


def _in_columns(n: int, ranks: int) -> float:
    """LU: a column of points for a rank, four arrays of five numbers."""
    power = ranks.bit_length() - 1
    x, y = -(-n // (1 << (power + 1) // 2)), -(-n // (1 << power // 2))
    return n * (15 * (x + 4) * (y + 4) + 5 * (x + 2) * (y + 2) + 20 * y)


def _in_levels(n: int, ranks: int) -> float:
    """MG: two arrays of all grids, one of the finest."""
    power, log2_n = ranks.bit_length() - 1, n.bit_length() - 1
    sides = [2 + (1 << (log2_n - (power + i) // 3)) for i in range(3)]
    finest, face = sides[0] * sides[1] * sides[2], sides[0] ** 2
    return 2 * 8 / 7 * (finest + face) + finest + 8 * face


def _in_rows(n: int, problem_class: str, ranks: int) -> float:
    """CG: non-zeros of a rank, and for each rank indexes of all rows."""
    nonzero = CG_NONZEROES["SWABCDEF".index(problem_class)]
    power = ranks.bit_length() - 1
    columns, rows = 1 << (power + 1) // 2, 1 << power // 2
    filled = n * (nonzero + 1) ** 2 / ranks + n * (nonzero + 2 + ranks // 256) / columns
    return (
        (2 * _DOUBLE + 3 * _INTEGER) * filled
        + (_DOUBLE + 3 * _INTEGER) * n
        + 6 * _DOUBLE * n / rows
    )


def largest_class(
    benchmark: str, node_bytes: float, nodes: Sequence[int], ppn: int
) -> str | None:
    """Return the largest class that fits on each of these numbers of nodes.

    It fits if its arrays take at most `node_bytes` of a node, and its run at most
    LONGEST_S, with the most ranks that can run. Numbers of nodes that cannot run it
    are left out, but not the first. Return None if no class fits.
    """
    for problem_class in CLASSES:
        with suppress(ValueError):  # NPB has no such class of this benchmark
            spreads = [ranks_of(benchmark, problem_class, n, ppn) for n in nodes]
            if spreads[0] and all(
                _fits(benchmark, problem_class, spread, node_bytes)
                for spread in spreads
                if spread
            ):
                return problem_class
    return None


def ranks_of(
    benchmark: str, problem_class: str, nodes: int, ppn: int
) -> tuple[int, int] | None:
    """Return nodes and ranks per node of a run; None if it cannot run."""
    return most_ranks(nodes, ppn, partial(runs_on, benchmark, problem_class))


def _fits(
    benchmark: str, problem_class: str, spread: tuple[int, int], node_bytes: float
) -> bool:
    nodes, ppn = spread
    ranks = nodes * ppn
    return (
        ppn * npb_bytes(benchmark, problem_class, ranks) <= node_bytes
        and npb_seconds(benchmark, problem_class, ranks) <= LONGEST_S
    )
