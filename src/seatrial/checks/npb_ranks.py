"""Numbers of ranks on which the NAS Parallel Benchmarks run (NPB-MPI 3.3 and 3.4).

BT and SP need a square. CG, FT, IS and MG need a power of two, and so does LU of NPB
3.3; other grids of LU in 3.4 are excluded, for comparable versions. Limits of the
classes: IS by MIN_PROCS, MAX_PROCS in IS/is.c; BT and SP need 3 points per rank and
direction (make_set.f), as LU does (subdomain.f).
"""

from collections.abc import Callable
from math import isqrt

from seatrial.parsers.npb_problems import problem_of

_SQUARES = ("BT", "SP")
_POINTS = 3
_IS_LEAST = {"D": 4, "E": 64}
_IS_MOST = 1024
_IS_MOST_CLASS_S = 128


def runs_on(benchmark: str, problem_class: str, ranks: int) -> bool:
    """Return True if a benchmark of a class runs on this number of ranks.

    Raises ValueError if NPB lacks the benchmark or class.
    """
    problem = problem_of(benchmark, problem_class)
    if ranks < 1 or benchmark == "EP":
        return ranks > 0
    if benchmark in _SQUARES:
        side = isqrt(ranks)
        return side**2 == ranks and problem.size[0] // side >= _POINTS
    if ranks & (ranks - 1):
        return False
    if benchmark == "IS":
        least = _IS_LEAST.get(problem_class, 1)
        most = _IS_MOST_CLASS_S if problem_class == "S" else _IS_MOST
        return least <= ranks <= most
    columns = 1 << ranks.bit_length() // 2
    return benchmark != "LU" or problem.size[0] // columns >= _POINTS


def rule_of(benchmark: str, problem_class: str) -> str:
    """Describe the numbers of ranks that a benchmark of a class runs on."""
    rules = {"EP": "any number", **dict.fromkeys(_SQUARES, "a square number")}
    rule = rules.get(benchmark, "a power of two")
    return f"{rule} of ranks that {benchmark} of class {problem_class} can run"


def most_ranks(
    nodes: int, ppn: int, can_run: Callable[[int], bool]
) -> tuple[int, int] | None:
    """Return nodes and ranks per node, at most these, for the most ranks that can run.

    Of several solutions it is that with the most nodes; None without a solution.
    """
    best = (0, 0, 0)
    for count in range(nodes, 0, -1):
        for per_node in range(ppn, 0, -1):
            if count * per_node <= best[0]:
                break
            if can_run(count * per_node):
                best = (count * per_node, count, per_node)
                break
    return best[1:] if best[0] else None
