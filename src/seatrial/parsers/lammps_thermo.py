"""Thermodynamic output of LAMMPS, in the styles one, multi, custom and yaml.

Columns are found by the names above them: only `Step` must be among them. Foreign lines
between the rows (warnings, statistics of SHAKE) are skipped unless they may be a row or
the rest of one (`is_row`). The steps are known, so a row that a foreign line destroyed
is missing. A foreign line may also take the end of the line above it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import OPERATION, half_digit, read_count, read_number

_MULTI = re.compile(
    r"\n-+ +Step +(\S+) +-+ CPU = +(\S+) \(sec\) -+((?:\n(?!-+ +Step )[^\n]*)*)"
)
_MULTI_LINE = re.compile(r"(?:\S+ +=\s+\S+ *)+")
_MULTI_VALUE = re.compile(r"(\S+) +=\s+(\S+)")
_YAML = re.compile(r"\nkeywords: \[([^\]\n]*)\] *(?=\n)(?:\n(?!data:)[^\n]*)*\ndata:")
_YAML_ROW = re.compile(r"\n +- ([^\n]*)")
_NAME = re.compile(r"[A-Za-z][^\s=,:]*")
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"
is_row = re.compile(
    rf"\s*(?!{_DATE})(?:[+-]?(?:\.?[0-9]|(?:nan|inf)\b)|[eE][+-][0-9]{{2}})"
).match
"""Match lines that begin like a number, or like the rest of one, not like a date."""

_IN_TITLE = ("Step", "CPU")
_ENERGIES = ("PotEng", "KinEng", "TotEng")
_ABSURD = 1e30


@dataclass(frozen=True)
class Thermo:
    """Names of the columns and, for each step that was printed, their values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


def parse_thermo(text: str, line: int, steps: Sequence[int]) -> Thermo:
    """Read the table of one run in `text`, which begins on `line` of the output.

    Raises ParseError unless it has a whole row for exactly `steps`, in their order,
    of finite numbers, and unless the total energy is the sum of its parts where all
    three are printed.
    """
    if match := _MULTI.search(text):
        at = match.start()
        columns, rows = _multi(text[at:], line + text.count("\n", 0, at))
    elif match := _YAML.search(text):
        columns, rows = _yaml(text, match, line)
    else:
        columns, rows = _one(text, line)
    if columns.count("Step") != 1:
        raise ParseError(line, "no thermodynamic output with Step above the loop time")
    return Thermo(columns, _read(columns, rows, steps, line + text.count("\n")))


_Row = tuple[int, Sequence[str]]
"""The line of a row, and its fields."""

_Table = tuple[tuple[str, ...], Iterator[_Row]]
"""The names of the columns, and the rows below them."""


def _read(
    columns: tuple[str, ...], rows: Iterator[_Row], steps: Sequence[int], last: int
) -> tuple[tuple[float, ...], ...]:
    """Convert the rows, which must be those of the steps in their order."""
    at_step = columns.index("Step")
    energies = [columns.index(name) for name in _ENERGIES if name in columns]
    table: list[tuple[float, ...]] = []
    for line, fields in rows:
        values = tuple(
            read_number(name, line, field, -_ABSURD, _ABSURD)
            for name, field in zip(columns, fields, strict=True)
        )
        step = read_count("Step", line, fields[at_step])
        expected = steps[len(table)] if len(table) < len(steps) else "no further row"
        if step != expected:
            raise ParseError(line, f"row of step {step}, expected {expected}")
        if len(energies) == len(_ENERGIES):
            potential, kinetic, total = (values[column] for column in energies)
            rounding = sum(half_digit(fields[column]) for column in energies)
            # LAMMPS adds in double precision, and so does this function.
            arithmetic = 4 * OPERATION * max(map(abs, (potential, kinetic, total)))
            if abs(potential + kinetic - total) > rounding + arithmetic:
                reason = f"TotEng {total}, expected PotEng {potential} + {kinetic}"
                raise ParseError(line, reason)
        table.append(values)
    if len(table) < len(steps):
        missing = steps[len(table)]
        reason = f"{len(table)} of {len(steps)} rows, the next is step {missing}"
        raise ParseError(last, reason)
    return tuple(table)


def _multi(text: str, line: int) -> _Table:
    """Parse the style multi; `text` begins with the line break before a title."""
    first = _MULTI.match(text)
    assert first is not None
    names = (name for name, _ in _MULTI_VALUE.findall(first[3]))
    columns = (*_IN_TITLE, *(name for name in names if name not in _IN_TITLE))
    return columns, _multi_rows(text, line, columns)


def _located(
    pattern: re.Pattern[str], text: str, start: int, line: int
) -> Iterator[tuple[int, re.Match[str]]]:
    """Find all matches, which begin with a line break, with the lines below it."""
    counted = 0
    for match in pattern.finditer(text, start):
        line += text.count("\n", counted, match.start() + 1)
        counted = match.start() + 1
        yield line, match


def _multi_rows(text: str, line: int, columns: tuple[str, ...]) -> Iterator[_Row]:
    for at, match in _located(_MULTI, text, 0, line):
        values = [("Step", match[1]), ("CPU", match[2])]
        lines = match[3].removesuffix("\n").split("\n")[1:]
        for number, below in enumerate(lines, start=at + 1):
            if not _is_multi(below):
                continue
            if not _MULTI_LINE.fullmatch(below):
                raise ParseError(number, f"{below.strip()!r}, expected NAME = VALUE")
            matches = _MULTI_VALUE.findall(below)
            values += [pair for pair in matches if pair[0] not in _IN_TITLE]
        if tuple(name for name, _ in values) != columns:
            names = " ".join(name for name, _ in values)
            raise ParseError(at, f"values {names}, expected {' '.join(columns)}")
        if not _has_equal_decimals([shown for _, shown in values[2:]]):
            _refuse_cut(at + 1, lines, _is_multi)
        yield at, [shown for _, shown in values]


def _is_multi(line: str) -> bool:
    """Return True if a line may be one of a row in the style multi."""
    return " = " in line or is_row(line) is not None


def _has_equal_decimals(values: Sequence[str]) -> bool:
    """Return True if all values, at least two, have as many decimals: none is cut."""
    decimals = {len(value.partition(".")[2]) for value in values}
    return len(values) > 1 and len(decimals) == 1 and 0 not in decimals


def _yaml(text: str, header: re.Match[str], line: int) -> _Table:
    names = (name.strip(" '") for name in header[1].split(","))
    columns = tuple(name for name in names if name)
    return columns, _yaml_rows(text, header.end(), line, len(columns))


def _yaml_rows(text: str, start: int, line: int, width: int) -> Iterator[_Row]:
    for at, match in _located(_YAML_ROW, text, start, line):
        shown = match[1].rstrip()
        fields = [field.strip() for field in shown[1:-1].split(",")]
        if fields and not fields[-1]:
            fields.pop()
        if shown[:1] + shown[-1:] != "[]" or len(fields) != width:
            _refuse_row(at, shown, width)
        yield at, fields


def _one(text: str, line: int) -> _Table:
    """Parse the styles one and custom: a line of names, then lines of numbers."""
    at = text.find("Step")
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        names = text[text.rfind("\n", 0, at) + 1 : end].split()
        if "Step" in names and all(map(_NAME.fullmatch, names)):
            start = line + text.count("\n", 0, end) + 1
            return tuple(names), _one_rows(text[end + 1 :], start, len(names))
        at = text.find("Step", end)
    return (), iter(())


def _one_rows(text: str, line: int, width: int) -> Iterator[_Row]:
    lines = text.removesuffix("\n").split("\n")
    _refuse_cut(line, lines, is_row)
    for number, below in enumerate(lines, start=line):
        if is_row(below):
            fields = below.split()
            if len(fields) != width:
                _refuse_row(number, below, width)
            yield number, fields


def _refuse_cut(
    first: int, lines: Sequence[str], is_own: Callable[[str], object]
) -> None:
    """Raise ParseError for a line that a foreign line may have cut in its last value.

    `first` is the number of the first line. A blank after the last value shows that
    the value is whole.
    """
    for number, (line, below) in enumerate(pairwise(lines), start=first):
        if is_own(line) and not is_own(below) and not line.endswith(" "):
            reason = f"{line.strip()!r} may lack digits, which the next line took"
            raise ParseError(number, reason)


def _refuse_row(line: int, actual: str, width: int) -> NoReturn:
    raise ParseError(line, f"{actual.strip()!r}, expected a row of {width} numbers")
