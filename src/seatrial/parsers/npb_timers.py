"""The timers that a NAS Parallel Benchmark prints after its result, if asked to.

The names are those of NPB 3.3 and 3.4; the sums over a rank are in s, four decimals.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError

TIMER_DIGIT_S = 0.0001

_HEAD = re.compile(r" nprocs = +([0-9]+) +minimum +maximum +average *")
_TIMER = re.compile(
    r" timer +([0-9]+) ?\( *([\w/]+) *\) ?: +"
    r"([0-9]*\.[0-9]{4}) +([0-9]*\.[0-9]{4}) +([0-9]*\.[0-9]{4}) *"
)
_SOLVER_TIMERS = (
    *("rhs", "xsolve", "ysolve", "zsolve", "bpack", "exch"),
    *("xcomm", "ycomm", "zcomm", "totcomp", "totcomm"),
)
_NAMES = {
    "BT": ("total", "i/o", *_SOLVER_TIMERS),
    "CG": ("total", "conjg", "rcomm", "ncomm", "totcomp", "totcomm"),
    "EP": ("total", "gpairs", "randn", "rcomm", "totcomp", "totcomm"),
    "FT": (
        *("total", "setup", "fft", "evolve", "checksum", "fftlow", "fftcopy"),
        *("transpose", "transpose1_loc", "transpose1_glo", "transpose1_fin"),
        *("transpose2_loc", "transpose2_glo", "transpose2_fin", "sync", "init"),
        *("totcomp", "totcomm"),
    ),
    "IS": ("total", "rcomp", "rcomm", "verify"),
    "LU": (
        *("total", "rhs", "blts", "buts", "jacld", "jacu", "exch"),
        *("lcomm", "ucomm", "rcomm", "totcomp", "totcomm"),
    ),
    "MG": (
        *("total", "init", "psinv", "resid", "rprj3", "interp", "norm2u3"),
        *("comm3", "rcomm", "totcomp", "totcomm"),
    ),
    "SP": ("total", *_SOLVER_TIMERS),
}
_PARTS = {"IS": ("rcomp", "rcomm")}
_TOGETHER = {  # printed all or not at all
    "FT": (
        ("transpose", "transpose1_loc", "transpose1_glo", "transpose1_fin"),
        ("transpose2_loc", "transpose2_glo", "transpose2_fin"),
        ("init",),
    ),
    "LU": (("jacld", "jacu"),),  # not by 3.4
}


@dataclass(frozen=True)
class NpbTimer:
    """One of a program's timers: its sum on a rank in s, over the ranks."""

    minimum_s: float
    maximum_s: float
    mean_s: float


def read_timers(
    lines: Sequence[str], first: int, benchmark: str, processes: int
) -> dict[str, NpbTimer]:
    """Read the table that begins with the first of these whole lines, number `first`.

    Raises ParseError unless it has every timer of the benchmark in NPB's order, with
    means between minima and maxima, and computation and communication make the total
    (of IS, whose programmer left gaps between the two: at most the total).
    """
    match = _HEAD.fullmatch(lines[0]) if lines else None
    if match is None or int(match[1]) != processes:
        found_head = lines[0].strip() if lines else ""
        raise ParseError(
            first, f"{found_head!r}, expected timers of {processes} processes"
        )
    groups = _TOGETHER.get(benchmark, ())
    optional = {name for group in groups for name in group}
    found: dict[str, NpbTimer] = {}
    for position, name in enumerate(_NAMES[benchmark], start=1):
        row = 1 + len(found)
        line = lines[row] if row < len(lines) else ""
        match = _TIMER.fullmatch(line)
        if match is None or (int(match[1]), match[2]) != (position, name):
            if name in optional:
                continue
            raise ParseError(first + row, f"{line.strip()!r}, expected timer {name}")
        timer = NpbTimer(*map(float, match.group(3, 4, 5)))
        if not _is_possible(timer, processes):
            raise ParseError(first + row, f"timer {name}: no ranks can have {timer}")
        found[name] = timer
    for group in groups:
        if 0 < len(found.keys() & group) < len(group):
            raise ParseError(first, f"some of the timers {', '.join(group)} are lost")
    compute, communicate = _PARTS.get(benchmark, ("totcomp", "totcomm"))
    parts_s = found[compute].mean_s + found[communicate].mean_s
    gap_s = found["total"].mean_s - parts_s
    if gap_s < -2 * TIMER_DIGIT_S or (benchmark != "IS" and gap_s > 2 * TIMER_DIGIT_S):
        raise ParseError(
            first + len(found),
            f"{compute} and {communicate} take {parts_s:.4f} s, "
            f"total {found['total'].mean_s} s",
        )
    return found


def _is_possible(timer: NpbTimer, processes: int) -> bool:
    """Say whether one rank can have the minimum, one the maximum, and all the mean."""
    least, most = timer.minimum_s, timer.maximum_s
    others = processes - 1
    slack_s = TIMER_DIGIT_S * processes
    from_below, from_above = most + others * least, least + others * most
    total = processes * timer.mean_s
    return least <= most and from_below - slack_s <= total <= from_above + slack_s
