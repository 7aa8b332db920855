"""The problems of the NAS Parallel Benchmarks, the same in NPB 3.3 and 3.4.

Sizes and iterations are those of NPB's `sys/setparams.c` and `IS/is.c`, the number of
operations that of the formula by which each program turns its time into Mop/s. So
size, time and rate in an output can be held against each other.
"""

from dataclasses import dataclass
from math import log, prod

BENCHMARKS = ("BT", "CG", "EP", "FT", "IS", "LU", "MG", "SP")

_CLASSES = "SWABCDEF"
_GRIDS = {
    "BT": (12, 24, 64, 102, 162, 408, 1020, 2560),
    "LU": (12, 33, 64, 102, 162, 408, 1020, 2560),
    "MG": (32, 128, 256, 256, 512, 1024, 2048, 4096),
    "SP": (12, 36, 64, 102, 162, 408, 1020, 2560),
}
_FT_GRIDS = (
    (64, 64, 64),
    (128, 128, 32),
    (256, 256, 128),
    (512, 256, 256),
    (512, 512, 512),
    (2048, 1024, 1024),
    (4096, 2048, 2048),
    (8192, 4096, 4096),
)
_CG_ROWS = (1400, 7000, 14000, 75000, 150000, 1500000, 9000000, 54000000)
CG_NONZEROES = (7, 8, 11, 13, 15, 21, 26, 31)
_EP_LOG2_NUMBERS = (25, 26, 29, 31, 33, 37, 41, 45)
_IS_LOG2_KEYS = (16, 20, 23, 25, 27, 31, 35)  # there is no class F
_ITERATIONS = {
    "BT": (60, 200, 200, 200, 200, 250, 250, 250),
    "CG": (15, 15, 15, 75, 75, 100, 100, 100),
    "EP": (0,) * 8,
    "FT": (6, 6, 6, 20, 20, 25, 25, 25),
    "IS": (10,) * 7,
    "LU": (50, 300, 250, 250, 250, 300, 300, 300),
    "MG": (4, 4, 4, 20, 20, 50, 50, 50),
    "SP": (100, 400, 400, 400, 400, 500, 500, 500),
}


@dataclass(frozen=True)
class Problem:
    """Grid points per dimension, or one number: rows (CG), numbers (EP), keys (IS).

    `operations` is what the program divides by its time: floating-point operations,
    random numbers (EP) or keys ranked (IS).
    """

    size: tuple[int, ...]
    iterations: int
    operations: float


def problem_of(benchmark: str, problem_class: str) -> Problem:
    """Return a problem, e.g. `CG`, `C`; ValueError if NPB has none of that name."""
    if benchmark not in BENCHMARKS:
        raise ValueError(f"benchmark {benchmark!r}, expected one of {BENCHMARKS}")
    classes = _CLASSES[: len(_ITERATIONS[benchmark])]
    if len(problem_class) != 1 or problem_class not in classes:
        wrong = f"class {problem_class!r} of {benchmark}"
        raise ValueError(f"{wrong}, expected one of {classes}")
    index = classes.index(problem_class)
    size = _size(benchmark, index)
    iterations = _ITERATIONS[benchmark][index]
    return Problem(size, iterations, _operations(benchmark, index, size, iterations))


def _size(benchmark: str, index: int) -> tuple[int, ...]:
    if benchmark == "CG":
        return (_CG_ROWS[index],)
    if benchmark == "EP":
        return (1 << _EP_LOG2_NUMBERS[index],)
    if benchmark == "IS":
        return (1 << _IS_LOG2_KEYS[index],)
    if benchmark == "FT":
        return _FT_GRIDS[index]
    return (_GRIDS[benchmark][index],) * 3


def _operations(
    benchmark: str, index: int, size: tuple[int, ...], iterations: int
) -> float:
    n, points = size[0], prod(size)
    if benchmark == "BT":
        return iterations * (3478.8 * points - 17655.7 * n**2 + 28023.7 * n)
    if benchmark == "CG":
        filled = CG_NONZEROES[index] * (CG_NONZEROES[index] + 1)
        return 2 * iterations * n * (3 + filled + 25 * (5 + filled) + 3)
    if benchmark == "EP":
        return n
    if benchmark == "FT":
        setup = 14.8157 + 7.19641 * log(points)
        return points * (setup + (5.23518 + 7.21113 * log(points)) * iterations)
    if benchmark == "IS":
        return iterations * n
    if benchmark == "LU":
        sweep = 1984.77 * points - 10923.3 * n**2 + 27770.9 * n - 144010
        return iterations * sweep
    if benchmark == "MG":
        return 58 * iterations * points
    return iterations * (881.174 * points - 4683.91 * n**2 + 11484.5 * n - 19272.4)
