"""Output of the NAS Parallel Benchmarks, NPB-MPI 3.3 and 3.4, Fortran and C programs.

Rates are Mop/s = 10^6 operations per second (IS: keys, EP: random numbers), times s.
NPB prints the time with two decimals: judge the rate, which has more digits. The
version in the title lags behind (3.4.1 says 3.4), so `version` is that of the result.

With a file `timer.flag` in the working directory (3.4: or NPB_TIMER_FLAG=1) a program
prints its own timers after the result. All but IS sum up the time in communication as
`totcomm`; IS has `rcomm`. Waiting for a slower rank is part of it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from seatrial.parsers.errors import ParseError
from seatrial.parsers.npb_problems import Problem, problem_of
from seatrial.parsers.npb_timers import NpbTimer, read_timers
from seatrial.parsers.printed import Range, exactly, printed_fixed

_TITLE = "NAS Parallel Benchmarks"
_COMPLETED = " Benchmark Completed"
_END = "npb@nas.nasa.gov"
_TIMERS = "\n nprocs ="
_SINGLE_PRECISION = 8 * 2.0**-24
"""Relative error of the operations, which NPB 3.3 counts in single precision.

A formula rounds up to 8 times; the sum of all is below 3 for every class.
"""

_ACTIVE = ("Active processes", "Active procs", "Compiled procs")
_NAMES = {"Class", "Size", "Iterations", "Time in seconds", "Total processes", *_ACTIVE}
_NAMES |= {"Mop/s total", "Mop/s/process", "Operation type", "Verification"}
_NAMES |= {"Version", "Compile date"}
_NUMBER_ALONE = re.compile(r"\s*[0-9.]+\s*")
_DECIMAL = re.compile(r"[0-9]*\.[0-9]{2}")
_VERSION = re.compile(r"3\.[34](?:\.[0-9])?")
_TITLE_LINE = re.compile(rf" *{_TITLE} \S+ -- ([A-Z]{{2}}) Benchmark *")
_COMPLAINT = re.compile(
    r"^.{0,20}\berror\b(?! is).{0,120}(?:\n.{1,80}){0,3}", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True)
class NpbRun:
    """One verified run; `timers` is empty unless they were asked for."""

    benchmark: str
    problem_class: str
    processes: int
    size: tuple[int, ...]
    iterations: int
    time_s: float
    mops_total: float
    mops_per_process: float
    version: str
    timers: dict[str, NpbTimer] = field(default_factory=dict)

    @property
    def communication_share(self) -> float | None:
        """Share of the timers' own total, 0 to 1, both means over the ranks.

        None without timers, or if the total is 0.0000 s.
        """
        if not self.timers or not (total := self.timers["total"].mean_s):
            return None
        name = "rcomm" if self.benchmark == "IS" else "totcomm"
        return min(self.timers[name].mean_s / total, 1.0)


def parse_npb(
    text: str,
    benchmark: str,
    problem_class: str,
    processes: int,
    *,
    timers: bool = False,
) -> NpbRun:
    """Read the one result of `benchmark` (`CG`), `problem_class` (`C`), on `processes`.

    Raises ParseError unless it is there once, whole and verified, with the size and
    iterations of its class, all processes active, numbers that agree with each other,
    and timers exactly if they were asked for (they cost time). Raises ValueError for
    a benchmark or class that NPB does not have.
    """
    problem = problem_of(benchmark, problem_class)
    start = _only(text, _COMPLETED, f"result of {benchmark}")
    title = _only(text, _TITLE, "title of NPB")
    end = _only(text, _END, "end of NPB's result")
    number, line = _line_at(text, title)
    match = _TITLE_LINE.fullmatch(line)
    if match is None or match[1] != benchmark:
        raise ParseError(number, f"{line.strip()!r}, expected the title of {benchmark}")
    number, line = _line_at(text, start)
    if line.strip().rstrip(".") != f"{benchmark}{_COMPLETED}":
        raise ParseError(number, f"{line.strip()!r}, expected {benchmark}{_COMPLETED}")
    if not title < start < end:
        raise ParseError(number, "the parts of the output are out of order")
    first = text.index("\n", start) + 1
    fields = _Fields(number, iter(text[first:end].split("\n")))
    run = _read_result(fields, benchmark, problem_class, processes, problem)
    if not timers:
        if _TIMERS in text:
            number, _ = _line_at(text, text.index(_TIMERS) + 1)
            raise ParseError(number, "timers, which cost time, were not asked for")
        return run
    head = _only(text, _TIMERS, "table of timers") + 1
    number, _ = _line_at(text, head)
    lines = text[head:].split("\n")[:-1]
    sections = read_timers(lines, number, benchmark, processes)
    least, most, _ = sections["total"].ranges
    time = _rounded(run.time_s)
    if not (least.may_be_at_most(time) and time.may_be_at_most(most)):
        reason = f"total {most.middle:.4f} s, 'Time in seconds' {run.time_s}"
        raise ParseError(number + 1, reason)
    return replace(run, timers=sections)


@dataclass
class _Fields:
    """The lines `name = value` of a result, read one by one.

    Foreign lines are passed over: those that have no name of a result, and are no rest
    of a number.
    """

    number: int
    lines: Iterator[str]
    name: str = ""

    def read(self, *names: str) -> str:
        """Read the next line of a result, which must have one of these names."""
        for line in self.lines:
            self.number += 1
            name, _, value = line.partition("=")
            self.name = name.strip()
            if self.name in names and value.strip():
                return value.strip()
            if self.name in _NAMES or _NUMBER_ALONE.fullmatch(line):
                break
        else:
            self.number, line = self.number + 1, ""
        raise ParseError(self.number, f"{line.strip()!r}, expected '{names[0]} = ...'")

    def expect(self, expected: object, *names: str) -> None:
        """Read the next line, which must say what was asked for."""
        value = self.read(*names)
        if value != str(expected):
            reason = f"{self.name} is {value}, expected {expected}"
            raise ParseError(self.number, reason)

    def decimal(self, name: str) -> float:
        """Read the next line: a number with two decimals."""
        text = self.read(name)
        if not _DECIMAL.fullmatch(text):
            why = " (too large for its field)" if set(text) == {"*"} else ""
            reason = f"{name} is {text}{why}, expected a number like 0.01"
            raise ParseError(self.number, reason)
        return float(text)


def _read_result(
    fields: _Fields,
    benchmark: str,
    problem_class: str,
    processes: int,
    problem: Problem,
) -> NpbRun:
    fields.expect(problem_class, "Class")
    size = fields.read("Size")
    if [part.strip() for part in size.split("x")] != [*map(str, problem.size)]:
        expected = "x".join(map(str, problem.size))
        raise ParseError(fields.number, f"Size is {size}, expected {expected}")
    fields.expect(problem.iterations, "Iterations")
    time_s = fields.decimal("Time in seconds")
    fields.expect(processes, "Total processes")
    fields.expect(processes, *_ACTIVE)
    mops_total = fields.decimal("Mop/s total")
    _check_rate(fields.number, mops_total, time_s, problem)
    mops_per_process = fields.decimal("Mop/s/process")
    total = _rounded(mops_per_process) * exactly(processes)
    if not total.meets(_rounded(mops_total)):
        share = f"Mop/s/process is {mops_per_process} on {processes} processes"
        raise ParseError(fields.number, f"{share}, Mop/s total {mops_total}")
    fields.read("Operation type")
    fields.expect("SUCCESSFUL", "Verification")
    version = fields.read("Version")
    if not _VERSION.fullmatch(version):
        raise ParseError(fields.number, f"Version is {version}, expected 3.3 or 3.4")
    fields.read("Compile date")
    return NpbRun(
        benchmark=benchmark,
        problem_class=problem_class,
        processes=processes,
        size=problem.size,
        iterations=problem.iterations,
        time_s=time_s,
        mops_total=mops_total,
        mops_per_process=mops_per_process,
        version=version,
    )


def _rounded(value: float) -> Range:
    """Return the range of a number that NPB printed by F12.2."""
    return printed_fixed(value, 2)


def _check_rate(number: int, mops: float, time_s: float, problem: Problem) -> None:
    """Raise ParseError unless rate x time is the problem's number of operations."""
    if not mops:
        raise ParseError(number, "Mop/s total is 0.00, expected a positive rate")
    error = Range(1 - _SINGLE_PRECISION, 1 + _SINGLE_PRECISION)
    operations = exactly(problem.operations / 1e6) * error
    if not (_rounded(mops) * _rounded(time_s)).meets(operations):
        expected = f"{operations.middle / mops:.4g} s for this problem, not {time_s} s"
        raise ParseError(number, f"Mop/s total is {mops}, which takes {expected}")


def _only(text: str, wanted: str, name: str) -> int:
    """Find the only occurrence; ParseError with the program's complaint if none."""
    count = text.count(wanted)
    if count == 1:
        return text.index(wanted)
    if count:
        second = text.index(wanted, text.index(wanted) + 1)
        raise ParseError(_line_at(text, second)[0], f"a second {name}")
    lines = text.count("\n")
    if complaint := _COMPLAINT.search(text):
        number, _ = _line_at(text, complaint.start())
        raise ParseError(number, f"no {name}: {' '.join(complaint[0].split())!r}")
    raise ParseError(lines, f"no {name} in {lines} lines")


def _line_at(text: str, position: int) -> tuple[int, str]:
    """Return the line around a position, and its number."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    number = text.count("\n", 0, position) + 1
    return number, text[start : end if end >= 0 else len(text)]
