"""What the parsers of printed tables share: which lines count, and whole rows.

A table of columns, with headers that begin with `#`, stands among lines of others: a
launcher's warnings, a job script's echo. Those are passed over; what begins with a
number is a row, and has to be a row that is expected.
"""

import re
from collections.abc import Iterator, Sequence

from seatrial.parsers.errors import ParseError

_COUNTS = re.compile(r"[ \t]*+(?:#|([-+]?(?:\.?[0-9]|(?:nan|inf)\b)))", re.IGNORECASE)

INTEGER = r"(0|[1-9][0-9]{0,17})"
DECIMALS = r"((?:0|[1-9][0-9]{0,17})\.[0-9]{2})"
"""A number with both of the two decimals that OSU and IMB print: one is cut off."""


def table_lines(
    lines: Sequence[str], first: int = 1
) -> Iterator[tuple[int, str, bool]]:
    """Give number and text of headers and rows of `lines`, and whether it is a row.

    `lines` are a text split at every newline, numbered from `first`: what follows the
    last newline is no whole line, so ParseError if it is a row or a header.
    """
    last = first + len(lines) - 1
    counts = _COUNTS.match
    for number, line in enumerate(lines, start=first):
        if match := counts(line):
            if number == last:
                raise ParseError(number, f"cut off in {line.strip()!r}")
            yield number, line.rstrip(), match.lastindex == 1


def last_line(lines: Sequence[str], first: int = 1) -> int:
    """Give the number of the last of `lines` that is not empty after a newline."""
    return first + len(lines) - 1 - ([*lines[-1:]] == [""])


class Sizes:
    """The message sizes that the rows of a table must have, in this order."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = tuple(map(str, sizes))
        self._found = 0

    def expect(self, line: int, size: str) -> None:
        """Raise ParseError unless `size` is the next one."""
        if self._found == len(self._sizes):
            raise ParseError(line, f"row of {size} bytes, expected no further row")
        expected = self._sizes[self._found]
        if size != expected:
            raise ParseError(line, f"row of {size} bytes, expected {expected} bytes")
        self._found += 1

    def expect_end(self, line: int, what: str) -> None:
        """Raise ParseError unless every size was there."""
        if self._found < len(self._sizes):
            raise ParseError(
                line,
                f"{self._found} of {len(self._sizes)} rows of {what}, "
                f"the next is {self._sizes[self._found]} bytes",
            )
