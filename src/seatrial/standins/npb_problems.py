"""The problems of the NAS Parallel Benchmarks, by NPB 3.4's sources.

Sizes and iterations are those of sys/setparams.c and IS/is.c, for the classes S, W, A,
B, C and D; operations are what each program divides by its time.
"""

import math

CLASSES = "SWABCD"
_GRIDS = {
    "BT": (12, 24, 64, 102, 162, 408),
    "LU": (12, 33, 64, 102, 162, 408),
    "MG": (32, 128, 256, 256, 512, 1024),
    "SP": (12, 36, 64, 102, 162, 408),
}
_FT = (
    (64, 64, 64),
    (128, 128, 32),
    (256, 256, 128),
    (512, 256, 256),
    (512, 512, 512),
    (2048, 1024, 1024),
)
_SINGLE = {
    "CG": (1400, 7000, 14000, 75000, 150000, 1500000),
    "EP": (1 << 25, 1 << 26, 1 << 29, 1 << 31, 1 << 33, 1 << 37),
    "IS": (1 << 16, 1 << 20, 1 << 23, 1 << 25, 1 << 27, 1 << 31),
}
_NONZEROES = (7, 8, 11, 13, 15, 21)
_ITERATIONS = {
    "BT": (60, 200, 200, 200, 200, 250),
    "CG": (15, 15, 15, 75, 75, 100),
    "EP": (0, 0, 0, 0, 0, 0),
    "FT": (6, 6, 6, 20, 20, 25),
    "IS": (10, 10, 10, 10, 10, 10),
    "LU": (50, 300, 250, 250, 250, 300),
    "MG": (4, 4, 4, 20, 20, 50),
    "SP": (100, 400, 400, 400, 400, 500),
}


def problem_of(name: str, of_class: str) -> tuple[str, int, float]:
    """Return size, as it is printed, iterations, and operations of a benchmark."""
    at = CLASSES.index(of_class)
    iterations = _ITERATIONS[name][at]
    if name in _SINGLE:
        n = _SINGLE[name][at]
        filled = _NONZEROES[at] * (_NONZEROES[at] + 1)
        work = {"EP": n, "IS": iterations * n}
        work["CG"] = 2 * iterations * n * (3 + filled + 25 * (5 + filled) + 3)
        return str(n), iterations, float(work[name])
    grid = _FT[at] if name == "FT" else (_GRIDS[name][at],) * 3
    size = "x".join(f"{points:>4}" for points in grid)
    points = float(math.prod(grid))
    return size, iterations, _of_grid(name, grid[0], points, iterations)


def _of_grid(name: str, n: int, points: float, iterations: int) -> float:
    if name == "BT":
        return iterations * (3478.8 * points - 17655.7 * n**2 + 28023.7 * n)
    if name == "FT":
        log = math.log(points)
        each = 5.23518 + 7.21113 * log
        return points * (14.8157 + 7.19641 * log + each * iterations)
    if name == "LU":
        sweep = 1984.77 * points - 10923.3 * n**2 + 27770.9 * n - 144010
        return iterations * sweep
    if name == "MG":
        return 58 * iterations * points
    return iterations * (881.174 * points - 4683.91 * n**2 + 11484.5 * n - 19272.4)
