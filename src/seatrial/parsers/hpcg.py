"""The file HPCG-Benchmark_*.txt of HPCG 3.1: lines `Section::Name=value`.

HPCG calls a result valid after any time, and writes a sentence if that was less than
the 1,800 s of an official result. It knows nothing of the memory of the nodes.
"""

from collections import defaultdict
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import (
    exactly,
    printed_short,
    read_count,
    read_positive,
)

_FIRST = "HPCG-Benchmark"
_SYMMETRY = "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon"
_PASSED = (
    "Spectral Convergence Tests::Result",
    f"{_SYMMETRY}::Result",
    "Iteration Count Information::Result",
    "Reproducibility Information::Result",
)
_RATING = "Final Summary::HPCG result is VALID with a GFLOP/s rating of"
_INVALID = "Final Summary::HPCG result is"
_RATE = "GFLOP/s Summary::Total with convergence overhead"
_RATE_OF_ALL = "GFLOP/s Summary::Total with convergence and optimization phase overhead"
_SECONDS = "Benchmark Time Summary::Total"
_OPERATIONS = "Floating Point Operations Summary::Total with convergence overhead"
_MEMORY = "Memory Use Information::Total memory used for data (Gbytes)"
_LOCAL = "Local Domain Dimensions"
_ABSURD_RATE = 1e9
_ABSURD = 1e24
"""Operations of a year at that rate, and more than any time and memory."""


@dataclass(frozen=True)
class HpcgRun:
    """A valid run of HPCG: rating, seconds of its timed part, memory of its data."""

    gflops: float
    seconds: float
    memory_bytes: float


def parse_hpcg(text: str, ranks: int, local: tuple[int, int, int]) -> HpcgRun:
    """Read the file of a run on some ranks, each with `local` nx, ny and nz points.

    Raises ParseError unless it is one whole file of that problem, all of HPCG's tests
    passed, it calls its result valid, and the numbers that it prints twice agree.
    """
    file = _File(text)
    file.expect("Machine Summary::Distributed Processes", ranks)
    for name, points in zip(("nx", "ny", "nz"), local, strict=True):
        file.expect(f"{_LOCAL}::{name}", points)
    points = local[0] * local[1] * local[2]
    file.expect("Linear System Information::Number of Equations", ranks * points)
    for name in _PASSED:
        line, shown = file.one(name)
        if shown != "PASSED":
            raise ParseError(line, f"{name} is {shown}, expected PASSED")
    if _INVALID in file.values:
        line, shown = file.one(_INVALID)
        raise ParseError(line, f"HPCG calls its result {shown}")
    seconds, rating = file.positive(_SECONDS), file.positive(_RATING, _ABSURD_RATE)
    _verify_rate(file, seconds)
    return HpcgRun(rating, seconds, 1e9 * file.positive(_MEMORY))


def _verify_rate(file: "_File", seconds: float) -> None:
    """Raise ParseError unless rating, rates, operations and time agree."""
    rating, rate = printed_short(file.positive(_RATING)), file.positive(_RATE)
    line = file.one(_RATING)[0]
    if not rating.meets(printed_short(file.positive(_RATE_OF_ALL))):
        raise ParseError(line, "the rating differs from the rate with all overheads")
    if not rating.may_be_at_most(printed_short(rate)):
        raise ParseError(line, "the rating is above the rate without overheads")
    operations = printed_short(file.positive(_OPERATIONS))
    by_time = operations / printed_short(seconds) / exactly(1e9)
    if not by_time.meets(printed_short(rate)):
        line = file.one(_SECONDS)[0]
        raise ParseError(
            line, f"{rate:g} Gflop/s in {seconds:g} s are not the operations"
        )


class _File:
    """Values by their full names, each with its line; a name may come repeatedly."""

    def __init__(self, text: str) -> None:
        lines = text.split("\n")
        firsts = [at for at, line in enumerate(lines, start=1) if line == _FIRST]
        if len(firsts) != 1:
            where = firsts[1] if firsts else 0
            raise ParseError(where, f"{len(firsts)} results of HPCG, expected one")
        self.values: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for number, line in enumerate(lines[:-1], start=1):
            name, equals, value = line.partition("=")
            if equals and number > firsts[0]:
                self.values[name].append((number, value.strip()))
        self._last = len(lines)

    def one(self, name: str) -> tuple[int, str]:
        """Return line and text of a value; ParseError unless it is there once."""
        values = self.values.get(name, [])
        if len(values) != 1:
            where = values[1][0] if values else self._last
            raise ParseError(where, f"{len(values)} lines {name!r}, expected one")
        return values[0]

    def expect(self, name: str, value: int) -> None:
        """Raise ParseError unless a value is this whole number."""
        line, shown = self.one(name)
        if read_count(name, line, shown) != value:
            raise ParseError(line, f"{name} is {shown}, expected {value}")

    def positive(self, name: str, below: float = _ABSURD) -> float:
        """Return a value that is above 0."""
        line, shown = self.one(name)
        return read_positive(name, line, shown, below)
