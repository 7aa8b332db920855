"""Thermodynamic output of LAMMPS, in the styles one, multi, custom and yaml.

Columns are found by the names above them: only `Step` must be among them. Foreign lines
between the rows (warnings, statistics of SHAKE) are skipped unless they may be a row or
the rest of one (`is_row`). The steps are known, so a row that a foreign line destroyed
is missing. A foreign line may also take the end of the line above it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import half_digit, read_count, read_number

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
"""Whether a line begins like a number, or like the rest of one; a date does not."""

_IN_TITLE = ("Step", "CPU")
_TITLE_WORDS = 9
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
        table = _multi(text[match.start() :], line + text.count("\n", 0, match.start()))
    elif match := _YAML.search(text):
        table = _yaml(text, match, line)
    else:
        table = _one(text, line, len(steps))
    if table.columns.count("Step") != 1:
        raise ParseError(line, "no thermodynamic output with Step above the loop time")
    rows = table.at_once(steps) or table.one_by_one(steps, line + text.count("\n"))
    return Thermo(table.columns, rows)


_Row = tuple[int, Sequence[str]]
"""The fields of a row, and where it is."""


@dataclass(frozen=True)
class _Table:
    """A table as text: by column where it is whole, and row by row."""

    columns: tuple[str, ...]
    fields: Sequence[Sequence[str]]
    rows: Iterator[_Row]

    def at_once(self, steps: Sequence[int]) -> tuple[tuple[float, ...], ...]:
        """Return all rows, or none if one of them is wrong.

        There may be a million of them, so this works on whole columns.
        """
        step = self.columns.index("Step")
        whole = self.fields and {*map(len, self.fields)} == {len(steps)}
        if not (whole and all(map(_are_plain, self.fields))):
            return ()
        try:
            if list(map(int, self.fields[step])) != list(steps):
                return ()
            values = [list(map(float, texts)) for texts in self.fields]
        except ValueError:
            return ()
        for column in values:
            extremes = (sum(column), min(column), max(column))
            if not all(-_ABSURD < value < _ABSURD for value in extremes):
                return ()
        if energies := self._energies():
            parts = zip(*(values[column] for column in energies), strict=True)
            for row, (potential, kinetic, total) in enumerate(parts):
                if potential + kinetic != total:
                    shown = [self.fields[column][row] for column in energies]
                    if not _add_up(potential, kinetic, total, shown):
                        return ()
        return tuple(zip(*values, strict=True))

    def one_by_one(
        self, steps: Sequence[int], last: int
    ) -> tuple[tuple[float, ...], ...]:
        """Yield the rows in the order of the steps; ParseError names a bad one."""
        step_column, energies = self.columns.index("Step"), self._energies()
        found: list[tuple[float, ...]] = []
        for line, fields in self.rows:
            values = tuple(
                read_number(name, line, field, -_ABSURD, _ABSURD)
                for name, field in zip(self.columns, fields, strict=True)
            )
            step = read_count("Step", line, fields[step_column])
            expected = (
                steps[len(found)] if len(found) < len(steps) else "no further row"
            )
            if step != expected:
                raise ParseError(line, f"row of step {step}, expected {expected}")
            if energies:
                potential, kinetic, total = (values[column] for column in energies)
                shown = [fields[column] for column in energies]
                if not _add_up(potential, kinetic, total, shown):
                    reason = f"TotEng {total}, expected PotEng {potential} + {kinetic}"
                    raise ParseError(line, reason)
            found.append(values)
        if len(found) < len(steps):
            missing = steps[len(found)]
            reason = f"{len(found)} of {len(steps)} rows, the next is step {missing}"
            raise ParseError(last, reason)
        return tuple(found)

    def _energies(self) -> tuple[int, ...]:
        """Return the columns of potential, kinetic and total energy, if all exist."""
        found = [self.columns.index(name) for name in _ENERGIES if name in self.columns]
        return tuple(found) if len(found) == len(_ENERGIES) else ()


def _add_up(
    potential: float, kinetic: float, total: float, shown: Sequence[str]
) -> bool:
    """Return True if a sum is that of its parts: all three were rounded to print them.

    LAMMPS adds them in double precision, 2^-53 of the sum, and so does this function.
    """
    rounding = sum(map(half_digit, shown))
    arithmetic = 4 * 2.0**-53 * max(abs(potential), abs(kinetic), abs(total))
    return abs(potential + kinetic - total) <= rounding + arithmetic


def _multi(text: str, line: int) -> _Table:
    """Parse the style multi; `text` begins with the line break before a title."""
    first = _MULTI.match(text)
    assert first is not None
    names = [name for name, _ in _MULTI_VALUE.findall(first[3])]
    columns = ("Step", "CPU", *(name for name in names if name not in _IN_TITLE))
    lines = text.split("\n")[1:-1]
    words = text.split() if all(map(_is_multi, lines)) else []
    width = _TITLE_WORDS + 3 * len(names)
    fields = [words[at::width] for at in range(width)]
    by_name = {"Step": fields[2], "CPU": fields[6]} if words else {}
    for at, name in enumerate(names):
        label, equals, values = fields[_TITLE_WORDS + 3 * at :][:3]
        if label.count(name) == equals.count("=") == len(values):
            by_name.setdefault(name, values)
    whole = len(words) % width == 0 and len(by_name) == len(columns)
    return _Table(
        columns,
        [by_name[name] for name in columns] if whole else [[] for _ in columns],
        _multi_rows(text, line, columns),
    )


def _multi_rows(text: str, line: int, columns: tuple[str, ...]) -> Iterator[_Row]:
    at, counted = line, 0
    for match in _MULTI.finditer(text):
        at += text.count("\n", counted, match.start() + 1)
        counted = match.start() + 1
        values = [("Step", match[1]), ("CPU", match[2])]
        lines = match[3].removesuffix("\n").split("\n")[1:]
        for number, below in enumerate(lines, start=at + 1):
            if not _is_multi(below):
                continue
            if not _MULTI_LINE.fullmatch(below):
                raise ParseError(number, f"{below.strip()!r}, expected NAME = VALUE")
            found = _MULTI_VALUE.findall(below)
            values += [pair for pair in found if pair[0] not in _IN_TITLE]
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
    width = len(columns)
    lines = (line for line in text[header.end() :].split("\n") if "- [" in line)
    words = " ".join(line.partition("[")[2] for line in lines).replace(",", " ").split()
    fields = [words[at :: width + 1] for at in range(width + 1)]
    whole = fields[-1].count("]") == len(words) / (width + 1)
    return _Table(
        columns,
        fields[:-1] if whole else [[] for _ in columns],
        _yaml_rows(text, header.end(), line, width),
    )


def _yaml_rows(text: str, start: int, line: int, width: int) -> Iterator[_Row]:
    at, counted = line, 0
    for match in _YAML_ROW.finditer(text, start):
        at += text.count("\n", counted, match.start() + 1)
        counted = match.start() + 1
        shown = match[1].rstrip()
        fields = [field.strip() for field in shown[1:-1].split(",")]
        if fields and not fields[-1]:
            fields.pop()
        if shown[:1] + shown[-1:] != "[]" or len(fields) != width:
            _refuse_row(at, shown, width)
        yield at, fields


def _one(text: str, line: int, count: int) -> _Table:
    """Parse the styles one and custom: a line of names, then lines of numbers."""
    columns, end = _find_header(text)
    if not columns:
        return _Table((), [], iter(()))
    start = line + text.count("\n", 0, end)
    width = len(columns)
    below = text[end:]
    has_others = below.count("\n") != count + 1
    words = [] if has_others else below.split()
    return _Table(
        columns,
        [words[at::width] for at in range(width)],
        _one_rows(text[end + 1 :], start + 1, width),
    )


def _find_header(text: str) -> tuple[tuple[str, ...], int]:
    """Find the first line of names, Step among them: the names, and where it ends."""
    at = text.find("Step")
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        names = text[text.rfind("\n", 0, at) + 1 : end].split()
        if "Step" in names and all(map(_NAME.fullmatch, names)):
            return tuple(names), end
        at = text.find("Step", end)
    return (), 0


def _one_rows(text: str, line: int, width: int) -> Iterator[_Row]:
    lines = text.removesuffix("\n").split("\n")
    _refuse_cut(line, lines, is_row)
    for number, below in enumerate(lines, start=line):
        if is_row(below):
            fields = below.split()
            if len(fields) != width:
                _refuse_row(number, below, width)
            yield number, fields


def _are_plain(texts: Iterable[str]) -> bool:
    """Accept plain decimal digits only (not 1_000)."""
    text = "".join(texts)
    return text.isascii() and "_" not in text


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


def _refuse_row(line: int, found: str, width: int) -> NoReturn:
    raise ParseError(line, f"{found.strip()!r}, expected a row of {width} numbers")
