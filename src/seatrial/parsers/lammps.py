"""The standard output, or log, of LAMMPS: exactly one run, as in its benchmarks.

Written for the versions of 2019 to 2025, on which it is tested. LAMMPS shows how long
the run took four times (its loop time, steps per second, atom-steps per second, and
the parts of the breakdown): all of them must agree.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.lammps_breakdown import read_breakdown
from seatrial.parsers.lammps_thermo import Thermo, is_row, parse_thermo
from seatrial.parsers.printed import (
    exactly,
    printed,
    printed_short,
    read_count,
    read_number,
    read_positive,
)

_ABSURD = 1e30
_ABSURD_S = 1e9
_BANNER = re.compile(r"LAMMPS \((\d[^)\n]*)\)")
_ERROR = re.compile(r"[^\n]*(?<!PMIX )ERROR(?: on proc [0-9]+)?:[^\n]*")
_WARNING = re.compile(r"\nWARNING:? *([^\n]*)")
_LOOP = re.compile(
    r"Loop time of (\S+) on (\S+) procs for (\S+) steps with (\S+) atoms"
)
_PERFORMANCE = re.compile(r"Performance: ([^\s,]+ [^\s,]+(?:, [^\s,]+ [^\s,]+)*)")
_CPU_USE = re.compile(r"(\S+)% CPU use with (\S+) MPI tasks x (\S+) OpenMP threads")
_BUILDS = re.compile(r"Neighbor list builds = (\S+)")
_DANGEROUS = re.compile(r"Dangerous builds (?:= (\S+)|not checked)")
_WALL = re.compile(r"Total wall time: ([0-9]+):([0-9]{2}):([0-9]{2})")
_ATOM_STEPS = re.compile("([kMGTP]?)atom-step/s")
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BREAKDOWN = re.compile(r"MPI task timing breakdown:")


@dataclass(frozen=True)
class LammpsRun:
    """One `run` command; energies are in the input's unit.

    `cpu_use_percent` is of one thread, and below 90 when the cores are shared.
    `sections` are the mean times in s of the parts of the loop time.
    `dangerous_builds` is None where the input lets LAMMPS not look for them.
    """

    version: str
    processes: int
    steps: int
    loop_time_s: float
    wall_time_s: int
    cpu_use_percent: float
    thermo: Thermo
    sections: dict[str, float]
    neighbour_builds: int
    dangerous_builds: int | None
    warnings: tuple[str, ...]

    def by_step(self, column: str) -> dict[int, float]:
        """Return a column of the thermodynamic output; ParseError if it is missing."""
        if column not in self.thermo.columns:
            raise ParseError(0, f"no {column} among {' '.join(self.thermo.columns)}")
        step, at = (self.thermo.columns.index(name) for name in ("Step", column))
        return {int(row[step]): row[at] for row in self.thermo.rows}

    @property
    def comm_share(self) -> float:
        """Mean time of an MPI task in communication, as a part of the loop time.

        It is LAMMPS' section Comm: exchange of atoms with neighbours, with the time
        spent waiting for slower tasks. The FFTs of Kspace communicate too, and are
        not in it.
        """
        return self.sections["Comm"] / self.loop_time_s


def parse_lammps(
    text: str,
    processes: int,
    atoms: int,
    thermo_steps: Sequence[int],
    threads: int = 1,
) -> LammpsRun:
    """Read a run from step `thermo_steps[0]` to `thermo_steps[-1]`, which prints those.

    Raises ParseError on anything but one complete run of `processes` MPI tasks with
    `threads` OpenMP threads each and of `atoms`: an ERROR line, a second run or
    program, output that is cut off before the total wall time, rows that are missing
    or too many, numbers that are not finite, absurd, or contradict each other.
    """
    output = _Output(text)
    _, banner = output.one(_BANNER, "LAMMPS (")
    if "ERROR" in text and (error := _ERROR.search(output.text)):
        raise ParseError(output.line(error.start()), error[0].strip())
    steps = thermo_steps[-1] - thermo_steps[0]
    loop, loop_time_s = _loop(output, processes, threads, steps, atoms)
    cpu_use = _cpu_use(output, loop.end(), processes, threads)
    _verify_performance(output, loop_time_s, steps, atoms)
    number, builds = output.one(_BUILDS, "Neighbor list builds")
    neighbour_builds = read_count("neighbour list builds", number, builds[1])
    number, dangerous = output.one(_DANGEROUS, "Dangerous builds")
    dangerous_builds = (
        read_count("dangerous builds", number, dangerous[1]) if dangerous[1] else None
    )
    number, wall = output.one(_WALL, "Total wall time")
    output.refuse_numbers(builds.end(), dangerous.start())
    output.refuse_numbers(dangerous.end(), wall.start())
    wall_time_s = int(wall[1]) * 3600 + int(wall[2]) * 60 + int(wall[3])
    # LAMMPS cuts the total to whole seconds.
    if not printed_short(loop_time_s).may_be_at_most(exactly(wall_time_s + 1)):
        reason = f"{wall_time_s} s in all, but {loop_time_s} s for the run"
        raise ParseError(number, reason)
    number, title = output.one(_BREAKDOWN, "MPI task timing breakdown:")
    lines = output.text[title.end() :].split("\n")
    return LammpsRun(
        version=banner[1],
        processes=processes,
        steps=steps,
        loop_time_s=loop_time_s,
        wall_time_s=wall_time_s,
        cpu_use_percent=cpu_use,
        thermo=output.thermo(banner.end(), loop.start(), thermo_steps),
        sections=read_breakdown(lines, number, loop_time_s),
        neighbour_builds=neighbour_builds,
        dangerous_builds=dangerous_builds,
        warnings=tuple(map(str.strip, _WARNING.findall(output.text))),
    )


class _Output:
    """The text, with line breaks around every line."""

    def __init__(self, text: str) -> None:
        self.text = f"\n{text}\n"

    def line(self, at: int) -> int:
        """Return the line number of a position, counted from 1."""
        return self.text.count("\n", 0, at) or 1

    def one(self, pattern: re.Pattern[str], key: str) -> tuple[int, re.Match[str]]:
        """Find the only line with a key, which must match as a whole."""
        if (line := self.maybe(pattern, key)) is None:
            last = self.line(len(self.text.rstrip()))
            raise ParseError(last, f"no line {key!r}")
        return line

    def maybe(
        self, pattern: re.Pattern[str], key: str
    ) -> tuple[int, re.Match[str]] | None:
        """Find the only line with a key; None if there is none."""
        at = self.text.find(key)
        if at < 0:
            return None
        if (again := self.text.find(key, at + 1)) >= 0:
            raise ParseError(self.line(again), f"a second {key!r}, expected one run")
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        match = pattern.match(self.text, start)
        if match is None or self.text[match.end() : end].strip():
            shown = self.text[start:end].strip()
            raise ParseError(self.line(at), f"{shown!r} is no whole line {key!r}")
        return self.line(at), match

    def refuse_numbers(self, start: int, end: int) -> None:
        """Raise ParseError if a line between two places may be the rest of a number.

        A foreign line that begins with a number is refused here, too.
        """
        for line in self.text[start:end].split("\n")[1:]:
            if is_row(line):
                reason = f"{line.strip()!r}, expected no line that begins with a number"
                raise ParseError(self.line(start), reason)

    def thermo(self, start: int, end: int, steps: Sequence[int]) -> Thermo:
        """Read the rows of a run that is set up after `start` and over at `end`."""
        set_up = self.text.rfind("\nPer MPI rank memory allocation", start, end)
        start = max(start, set_up)
        return parse_thermo(self.text[start:end], self.line(start), steps)


def _loop(
    output: _Output, processes: int, threads: int, steps: int, atoms: int
) -> tuple[re.Match[str], float]:
    """Read the line of the loop time, in s; check tasks, steps and atoms in it."""
    number, loop = output.one(_LOOP, "Loop time of ")
    loop_time_s = read_positive("the loop time", number, loop[1], _ABSURD_S)
    for name, actual, expected in (
        ("steps", loop[3], steps),
        ("atoms", loop[4], atoms),
    ):
        if read_count(name, number, actual) != expected:
            raise ParseError(number, f"{actual} {name}, expected {expected}")
    tasks = read_count("procs", number, loop[2])
    if tasks not in (processes, processes * threads):
        raise ParseError(number, f"{tasks} procs, expected {processes} x {threads}")
    return loop, loop_time_s


def _cpu_use(output: _Output, start: int, processes: int, threads: int) -> float:
    """Read the line below the rates, which are below the loop time, up to `start`."""
    number, match = output.one(_CPU_USE, "% CPU use with ")
    output.refuse_numbers(start, match.start())
    expected = (str(processes), str(threads))
    if (match[2], match[3].replace("no", "1")) != expected:
        reason = f"{match[2]} MPI tasks x {match[3]} threads, expected {expected}"
        raise ParseError(number, reason)
    return read_number("CPU use", number, match[1], 0, 1e5)


def _verify_performance(
    output: _Output, loop_time_s: float, steps: int, atoms: int
) -> None:
    """Raise ParseError unless all rates follow from the loop time.

    LAMMPS prints none in some unit styles, atom-steps only since 2022: %.3f, and the
    loop time by %g.
    """
    if (line := output.maybe(_PERFORMANCE, "Performance: ")) is None:
        return
    number, match = line
    shown = {unit: value for value, unit in map(str.split, match[1].split(", "))}
    rate = exactly(steps) / printed_short(loop_time_s)
    by_loop = {"timesteps/s": rate}
    for unit in shown:
        if prefix := _ATOM_STEPS.fullmatch(unit):
            by_loop[unit] = rate * exactly(atoms / _PREFIXES[prefix[1]])
    for unit, expected in by_loop.items():
        read_number(unit, number, shown.get(unit, ""), 0, _ABSURD)
        if not printed(shown[unit]).meets(expected):
            by_time = f"by the loop time it is {expected.middle:.6g}"
            raise ParseError(number, f"{shown[unit]} {unit}, {by_time}")
