"""Numbers of ranks on which the NAS Parallel Benchmarks run (NPB-MPI 3.3 and 3.4).

BT and SP take a square. CG, FT, IS and MG take a power of two, and so does LU of NPB
3.3; that of 3.4 takes other grids, too, which are left out so that versions compare.
EP takes any number. Limits of the classes: IS by MIN_PROCS, MAX_PROCS in IS/is.c; BT
and SP need 3 points per rank and direction (make_set.f), as LU does (subdomain.f).
"""

from math import isqrt

from seatrial.parsers.npb_problems import problem_of

_SQUARES = ("BT", "SP")
_POINTS = 3
_IS_LEAST = {"D": 4, "E": 64}
_IS_MOST = 1024
_IS_MOST_CLASS_S = 128


def runs_on(benchmark: str, problem_class: str, ranks: int) -> bool:
    """Return True if a benchmark of a class runs on this number of ranks.

    ValueError for a benchmark or class that NPB does not have.
    """
    problem = problem_of(benchmark, problem_class)
    if ranks < 1:
        return False
    if benchmark in _SQUARES:
        side = isqrt(ranks)
        return side**2 == ranks and problem.size[0] // side >= _POINTS
    if benchmark == "EP":
        return True
    if ranks & (ranks - 1):
        return False
    if benchmark == "IS":
        least = _IS_LEAST.get(problem_class, 1)
        most = _IS_MOST_CLASS_S if problem_class == "S" else _IS_MOST
        return least <= ranks <= most
    if benchmark == "LU":
        columns = 1 << ranks.bit_length() // 2
        return problem.size[0] // columns >= _POINTS
    return True


def rule_of(benchmark: str, problem_class: str) -> str:
    """Describe the numbers of ranks that a benchmark of a class runs on."""
    rules = {"EP": "any number", **dict.fromkeys(_SQUARES, "a square number")}
    return (
        f"{rules.get(benchmark, 'a power of two')} of ranks that "
        f"{benchmark} of class {problem_class} can run"
    )
