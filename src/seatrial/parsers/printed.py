"""Numbers and rows as programs print them, and the rule for foreign lines.

Many programs print a number twice: a rate beside its time, or a summary below the
details. Where both prints differ by more than their rounding, one of them is damaged.

A job prints more than its program: a profile of the shell greets, Slurm's prologue and
epilogue report, libraries and kernels warn in the middle of a table. With such lines a
parser gives the same numbers as without them, or it refuses the output. It never gives
other numbers. This is the rule, from top to bottom:

1. The caller tells which rows there must be, each once and in order (`Sizes`). A row
   that a foreign line has destroyed is missing, so the output is refused.
2. A whole row has all its cells, in the decimals and the width that the program prints.
   If it is not the row that comes next, the output is refused: it is a repeated row, a
   row of another run, or a foreign line that looks like one.
3. Any other line that begins with a number may be a damaged row. It is passed over if
   two of its words or more are no numbers (a date, a host, a message) and its first
   word is not that of the row that comes next. Else the output is refused.
4. All other lines are passed over, blank ones too. Of those that begin with `#`, only
   titles and headers in the program's own words count.
5. Text behind the last newline is no whole line. If it may be a row or a header, the
   output is refused.

A printed number is right to half a unit of its last digit. `Range` adds, multiplies and
divides what follows from several prints, so that no check needs a tolerance of its own.

Rows of JSON follow the same rule with a brace in place of the number (`rows`), steps of
a job with their marks (`steps`).
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from seatrial.parsers.errors import ParseError

_COUNTS = re.compile(r"[ \t]*+(?:#|([-+]?(?:\.?[0-9]|(?:nan|inf)\b)))", re.IGNORECASE)

_CELL = re.compile(
    r"[-+]?(?:[0-9.]+(?:[eE][-+]?[0-9]+)?|nan|inf)|Pass|Fail", re.IGNORECASE
)
"""A word that a row can have, whole or damaged; OSU prints Pass and Fail."""

INTEGER = r"(0|[1-9][0-9]{0,17})"
DECIMALS = r"((?:0|[1-9][0-9]{0,17})\.[0-9]{2})"
"""A number with both of the two decimals that OSU and IMB print: one is cut off."""


def table_lines(
    lines: Sequence[str], first: int = 1
) -> Iterator[tuple[int, str, bool]]:
    """Yield number and text of lines that begin with `#` or a number.

    The third value is True for a number. `lines` are a text split at every newline,
    numbered from `first`. Raises ParseError if the text ends in the middle of a row or
    of a header.
    """
    last = first + len(lines) - 1
    counts = _COUNTS.match
    for number, line in enumerate(lines, start=first):
        if match := counts(line):
            is_row = match.lastindex == 1
            if number == last and not (is_row and is_foreign(line.split())):
                raise ParseError(number, f"cut off in {line.strip()!r}")
            yield number, line.rstrip(), is_row


def is_foreign(words: Sequence[str]) -> bool:
    """Return True if a line has two words or more that no cell of a row has."""
    is_cell = _CELL.fullmatch
    return sum(is_cell(word) is None for word in words) > 1


def last_line(lines: Sequence[str], first: int = 1) -> int:
    """Return the number of the last of `lines` that is not empty after a newline."""
    return first + len(lines) - 1 - ([*lines[-1:]] == [""])


class Sizes:
    """The message sizes that the rows of a table must have, in this order.

    `unit` is for messages; a size is the text of the first cell, or of several.
    """

    def __init__(self, sizes: Sequence[int | str], unit: str = "bytes") -> None:
        self._sizes = tuple(map(str, sizes))
        self._unit = unit
        self._count = 0

    def expect(self, line: int, size: str) -> None:
        """Raise ParseError unless `size` is the next one."""
        if size != self.next:
            expected = f"{self.next} {self._unit}" if self.next else "no further row"
            raise ParseError(line, f"row of {size} {self._unit}, expected {expected}")
        self._count += 1

    def pass_over(self, line: int, text: str, columns: str) -> None:
        """Raise ParseError if a line that begins with a number may be a damaged row.

        `text` is no whole row of `columns`; see rule 3 of this module.
        """
        words = text.split()
        if words[:1] == self.next.split()[:1] or not is_foreign(words):
            raise ParseError(line, f"{text.strip()!r} is no whole row of {columns}")

    @property
    def next(self) -> str:
        """The size of the row that comes next, '' behind the last."""
        return self._sizes[self._count] if self._count < len(self._sizes) else ""

    @property
    def progress(self) -> str:
        """The number of rows so far and of all, for messages."""
        return f"{self._count} of {len(self._sizes)} rows"

    def expect_end(self, line: int, table: str) -> None:
        """Raise ParseError unless every size was there."""
        if self.next:
            reason = f"{self.progress} of {table}, the next is {self.next} {self._unit}"
            raise ParseError(line, reason)


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COUNT = re.compile(r"[0-9]{1,18}")
OPERATION = 2.0**-53
"""The relative error of one operation in double precision."""


def read_number(name: str, line: int, text: str, least: float, below: float) -> float:
    """Read a decimal number; ParseError unless it is in [`least`, `below`)."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not least <= value < below:
        expected = f"expected a number of at least {least:g} and below {below:g}"
        raise ParseError(line, f"{name} is {text or 'missing'}, {expected}")
    return value


def read_positive(name: str, line: int, text: str, below: float) -> float:
    """Read a decimal number; ParseError unless it is above 0 and below `below`."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 < value < below:
        expected = f"expected a positive number below {below:g}"
        raise ParseError(line, f"{name} is {text or 'missing'}, {expected}")
    return value


def read_count(name: str, line: int, text: str) -> int:
    """Read a whole number of at least 0; ParseError if it is none."""
    if not _COUNT.fullmatch(text):
        raise ParseError(line, f"{name} is {text or 'missing'}, expected a count")
    return int(text)


def half_digit(text: str) -> float:
    """Return half a unit of the last digit of a printed number: '1.25' -> 0.005."""
    if "e" in text or "E" in text:
        mantissa, _, exponent = text.lower().partition("e")
        return half_digit(mantissa) * 10.0 ** int(exponent)
    point = text.find(".")
    return 0.5 * 10.0 ** (point + 1 - len(text)) if point >= 0 else 0.5


def half_digit_of(value: float, digits: int) -> float:
    """Return half a unit of the last digit of a number that C printed with %.<digits>g.

    %g drops trailing zeros, so the text does not show how precise it is.
    """
    if value == 0:
        return 0.0
    return 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)


def is_same(one: float, other: float, rounding: float, *, operations: int = 16) -> bool:
    """Return True if two prints can be of one number.

    `rounding` is how far printing moved both, in all. `operations` in double precision
    lie behind them, in the program and here; each is exact to a part of 2^-53.
    """
    arithmetic = operations * OPERATION * max(abs(one), abs(other))
    return abs(one - other) <= rounding + arithmetic


def is_at_most(one: float, other: float, rounding: float) -> bool:
    """Return True if one number can be no more than another, as `is_same`."""
    return one <= other or is_same(one, other, rounding)


def is_in_order(numbers: Iterable[float], rounding: float) -> bool:
    """Return True if each number can be no more than the next, as `is_at_most`."""
    return all(is_at_most(one, other, rounding) for one, other in pairwise(numbers))


_MOST_OPERATIONS = 2**20
"""Operations behind a print; a mean over the ranks takes one for every rank."""


@dataclass(frozen=True, slots=True)
class Range:
    """All numbers from `low` to `high`, both included."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The number that was printed, where nothing was computed with it."""
        return (self.low + self.high) / 2

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Range") -> "Range":
        ends = [
            one * another
            for one in (self.low, self.high)
            for another in (other.low, other.high)
        ]
        return Range(min(ends), max(ends))

    def __truediv__(self, other: "Range") -> "Range":
        """Divide by a range of positive numbers."""
        return self * Range(1 / other.high, 1 / other.low)

    def meets(self, other: "Range") -> bool:
        """Return True if one number can be in both, but for the arithmetic."""
        return self.may_be_at_most(other) and other.may_be_at_most(self)

    def may_be_at_most(self, other: "Range") -> bool:
        """Return True if a number of this range can be at most one of the other."""
        slack = _MOST_OPERATIONS * OPERATION * max(abs(self.low), abs(other.high))
        return self.low <= other.high + slack


def exactly(value: float) -> Range:
    """Return the range of one number, which was not rounded."""
    return Range(value, value)


def printed(text: str) -> Range:
    """Return the range of a number printed by %f or %e, with all its digits."""
    value, half = float(text), half_digit(text)
    return Range(value - half, value + half)


def printed_fixed(value: float, decimals: int) -> Range:
    """Return the range of a number printed by %.<decimals>f, or Fortran's F."""
    half = 0.5 * 10.0**-decimals
    return Range(value - half, value + half)


def printed_short(value: float, digits: int = 6) -> Range:
    """Return the range of a number printed by %.<digits>g, without trailing zeros."""
    half = half_digit_of(value, digits)
    return Range(value - half, value + half)
