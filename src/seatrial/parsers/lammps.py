"""The standard output (or log) of LAMMPS with `thermo_style multi`."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError

_STEP = re.compile(r"-+\s+Step\s+(\d+)\s+-+\s+CPU\s+=\s+\S+\s+\(sec\)\s+-+")
_ENERGY = re.compile(r"TotEng\s+=\s+(\S+)\s.*")
_LOOP = re.compile(
    r"Loop time of (\S+) on (\d+) procs for (\d+) steps with (\d+) atoms"
)
_BUILDS = re.compile(r"Neighbor list builds = (\S+)")
_DANGEROUS = re.compile(r"Dangerous builds = (\S+)")
_END = re.compile(r"Total wall time: \d+:\d\d:\d\d")


@dataclass(frozen=True)
class LammpsRun:
    """One `run` command: time in s, energies by step in the input's unit."""

    loop_time_s: float
    processes: int
    steps: int
    atoms: int
    total_energy: dict[int, float]
    neighbour_builds: int
    dangerous_builds: int


def parse_lammps(text: str) -> LammpsRun:
    """Read the one run of a LAMMPS output.

    Raises ParseError on an ERROR line, on output that is cut off before the total
    wall time, on a second run, and on numbers that are not finite (the loop time:
    not positive).
    """
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        if line.startswith("ERROR"):
            raise ParseError(number, line.strip())
    number, loop = _one(lines, _LOOP, "'Loop time of ...'")
    loop_time = _number(loop[1], number)
    if loop_time <= 0:
        raise ParseError(number, f"loop time {loop[1]}, expected a positive time")
    builds = _count(lines, _BUILDS, "'Neighbor list builds = ...'")
    dangerous = _count(lines, _DANGEROUS, "'Dangerous builds = ...'")
    _one(lines, _END, "'Total wall time: ...'")
    return LammpsRun(
        loop_time_s=loop_time,
        processes=int(loop[2]),
        steps=int(loop[3]),
        atoms=int(loop[4]),
        total_energy=_energies(lines),
        neighbour_builds=builds,
        dangerous_builds=dangerous,
    )


def _energies(lines: Sequence[str]) -> dict[int, float]:
    energies = {}
    for number, line in enumerate(lines, start=1):
        if step := _STEP.fullmatch(line.strip()):
            following = lines[number] if number < len(lines) else ""
            energy = _ENERGY.fullmatch(following)
            if energy is None:
                raise ParseError(
                    number + 1, f"{following.strip()!r}, expected 'TotEng = ...'"
                )
            energies[int(step[1])] = _number(energy[1], number + 1)
    return energies


def _one(
    lines: Sequence[str], pattern: re.Pattern[str], name: str
) -> tuple[int, re.Match[str]]:
    """Find the only line that matches, with its number."""
    found = [
        (number, match)
        for number, line in enumerate(lines, start=1)
        if (match := pattern.fullmatch(line.strip()))
    ]
    if len(found) != 1:
        where = found[1][0] if found else len(lines)
        raise ParseError(where, f"{len(found)} lines {name}, expected one")
    return found[0]


def _count(lines: Sequence[str], pattern: re.Pattern[str], name: str) -> int:
    number, match = _one(lines, pattern, name)
    if not match[1].isdecimal():
        raise ParseError(number, f"{match[0]!r}, expected a count")
    return int(match[1])


def _number(text: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParseError(line, f"{text!r}, expected a finite number")
    return value
