"""The input file of HPCG, hpcg.dat, and sizes by memory."""

OFFICIAL_S = 1800
"""Seconds of the timed part that an official result takes at least."""
OFFICIAL_SHARE = 0.25
"""Share of the nodes' memory that the data of an official result fill at least."""
BYTES_OF_A_POINT = 730
"""HPCG 3.1 with its reference data: 714 by its own count, and buffers of MPI."""
COUNTED_BYTES = 714
"""Bytes of a point that HPCG itself counts at least."""
GFLOPS_OF_A_CORE = 0.35
"""Typical rate of a core while all cores of a node are busy: memory limits it."""
_OPERATIONS_OF_A_POINT = 374
"""In an iteration, by the count of ReportResults.cpp, without borders."""
_ITERATIONS_OF_A_SET = 50
_SETS_BESIDES = 4
"""Set-up, tests, the reference set and the one that finds out the time of a set."""
_STEP, _LEAST = 8, 16
_TEXT = """\
HPCG benchmark input file
Seatrial
{x} {y} {z}
{seconds}
"""

Points = tuple[int, int, int]


def hpcg_input(points: Points, seconds: int) -> str:
    """Write hpcg.dat: points of each rank, and the seconds of the timed part."""
    x, y, z = points
    return _TEXT.format(x=x, y=y, z=z, seconds=seconds)


def points_within(rank_bytes: float) -> Points:
    """Return the largest nearly cubic grid of a rank within some bytes.

    Its sides are multiples of 8, as HPCG's four levels need, and differ by at most 8.
    Raises ValueError if not even 16 x 16 x 16 points fit.
    """
    room = rank_bytes / BYTES_OF_A_POINT
    if room < _LEAST**3:
        raise ValueError(f"{rank_bytes:.0f} bytes of a rank do not hold 16^3 points")
    side = _LEAST
    while (side + _STEP) ** 3 <= room:
        side += _STEP
    wide = side + _STEP
    grids = ((wide, wide, side), (wide, side, side), (side, side, side))
    return next(grid for grid in grids if grid[0] * grid[1] * grid[2] <= room)


def hpcg_seconds(points: Points, seconds: int) -> float:
    """Return the seconds of a whole run at the typical rate of a core."""
    operations = _OPERATIONS_OF_A_POINT * points[0] * points[1] * points[2]
    set_s = _ITERATIONS_OF_A_SET * operations / (1e9 * GFLOPS_OF_A_CORE)
    return seconds + _SETS_BESIDES * set_s
