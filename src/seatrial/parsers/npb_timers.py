"""The timers that a NAS Parallel Benchmark prints after its result, if asked to.

The names are those of NPB 3.3 and 3.4; the sums over a rank are in s, four decimals.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import Range, exactly, printed_fixed

_HEAD = re.compile(r" nprocs = +([0-9]+) +minimum +maximum +average *")
_TIMER = re.compile(
    r" timer +([0-9]+) ?\( *([\w/]+) *\) ?: +"
    r"(-?[0-9]*\.[0-9]{4}) +(-?[0-9]*\.[0-9]{4}) +(-?[0-9]*\.[0-9]{4}) *"
)
_OF_TIMER = re.compile(r"^ *timer +[0-9]|(?<![0-9.])[0-9]*\.[0-9]{4}(?![0-9])")
"""A row, or a piece of one that a foreign line has broken."""

_SOLVER_TIMERS = "rhs xsolve ysolve zsolve bpack exch xcomm ycomm zcomm totcomp totcomm"
_NAMES = {
    "BT": "total i/o " + _SOLVER_TIMERS,
    "CG": "total conjg rcomm ncomm totcomp totcomm",
    "EP": "total gpairs randn rcomm totcomp totcomm",
    "FT": "total setup fft evolve checksum fftlow fftcopy transpose transpose1_loc "
    "transpose1_glo transpose1_fin transpose2_loc transpose2_glo transpose2_fin "
    "sync init totcomp totcomm",
    "IS": "total rcomp rcomm verify",
    "LU": "total rhs blts buts jacld jacu exch lcomm ucomm rcomm totcomp totcomm",
    "MG": "total init psinv resid rprj3 interp norm2u3 comm3 rcomm totcomp totcomm",
    "SP": "total " + _SOLVER_TIMERS,
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

    @property
    def ranges(self) -> tuple[Range, Range, Range]:
        """The ranges of minimum, maximum and mean, all printed by F10.4."""
        values = (self.minimum_s, self.maximum_s, self.mean_s)
        least, most, mean = (printed_fixed(value, 4) for value in values)
        return least, most, mean


def read_timers(
    lines: Sequence[str], first: int, benchmark: str, processes: int
) -> dict[str, NpbTimer]:
    """Read the table that begins with the first of these whole lines, number `first`.

    Foreign lines between the rows are passed over. Raises ParseError unless it has
    every timer of the benchmark in NPB's order, with means between minima and maxima,
    and computation and communication make the total (IS has gaps between the
    two: at most the total).
    """
    head = lines[0] if lines else ""
    match = _HEAD.fullmatch(head)
    if match is None or int(match[1]) != processes:
        reason = f"{head.strip()!r}, expected timers of {processes} processes"
        raise ParseError(first, reason)
    groups = _TOGETHER.get(benchmark, ())
    optional = {name for group in groups for name in group}
    timers: dict[str, NpbTimer] = {}
    numbered = enumerate(lines[1:], start=first + 1)
    rows = ((number, line) for number, line in numbered if _OF_TIMER.search(line))
    number, line = next(rows, (first + 1, ""))
    for position, name in enumerate(_NAMES[benchmark].split(), start=1):
        match = _TIMER.fullmatch(line)
        if match is None or (int(match[1]), match[2]) != (position, name):
            if name in optional:
                continue
            raise ParseError(number, f"{line.strip()!r}, expected timer {name}")
        timer = NpbTimer(*map(float, match.group(3, 4, 5)))
        if not _is_possible(timer, processes):
            raise ParseError(number, f"timer {name}: no ranks can have {timer}")
        timers[name] = timer
        number, line = next(rows, (number + 1, ""))
    for group in groups:
        if 0 < len(timers.keys() & group) < len(group):
            raise ParseError(first, f"some of the timers {', '.join(group)} are lost")
    _verify_parts(timers, number - 1, benchmark)
    return timers


def _verify_parts(timers: dict[str, NpbTimer], line: int, benchmark: str) -> None:
    """Raise ParseError unless computation and communication make the total."""
    compute, communicate = _PARTS.get(benchmark, ("totcomp", "totcomm"))
    *_, total = timers["total"].ranges
    parts = timers[compute].ranges[2] + timers[communicate].ranges[2]
    has_gaps = benchmark == "IS"
    if not (parts.may_be_at_most(total) if has_gaps else parts.meets(total)):
        sum_of_parts = f"{compute} and {communicate} take {parts.middle:.4f} s"
        raise ParseError(line, f"{sum_of_parts}, total {timers['total'].mean_s} s")


def _is_possible(timer: NpbTimer, processes: int) -> bool:
    """Return True if one rank can have the minimum, one the maximum, all the mean.

    NPB computes some timers as differences of others, so that rounding can make them
    -0.0000.
    """
    least, most, mean = timer.ranges
    total, others = mean * exactly(processes), exactly(processes - 1)
    return (
        timer.minimum_s <= timer.maximum_s
        and exactly(0).may_be_at_most(least)
        and (most + others * least).may_be_at_most(total)
        and total.may_be_at_most(least + others * most)
    )
