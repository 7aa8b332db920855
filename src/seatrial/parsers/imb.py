"""Output of the Intel MPI Benchmarks, IMB-MPI1 2019 to 2021.

Columns are found by their names, as their number depends on the benchmark. One
`Mbytes/sec` is 10^6 B/s (src_c/IMB_output.c), and time is in us: half the round trip
for PingPong, the time of one call otherwise. Of three times `t_avg`, the mean over the
ranks, is taken: in a rooted collective the root may leave at once, so `t_min` says
nothing about the network. A bandwidth, though, is that of the slowest rank.

Uniband and Biband send windows of messages, whose number they do not print: 64 up to
2021.1 and 256 since then, unless -window_size is given.

IMB ends with status 0 when it drops rows (-time, -mem), when it runs on fewer ranks
too (without -npmin) or in groups (-multi), and even when it does not know the benchmark
and runs all others: what was not asked for is refused.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from seatrial.parsers.errors import ParseError
from seatrial.parsers.imb_rows import ImbBarrier, ImbColumns, ImbRate, ImbRow
from seatrial.parsers.tables import Sizes, last_line, table_lines

__all__ = [
    "ImbBarrier",
    "ImbPair",
    "ImbRate",
    "ImbRow",
    "parse_imb",
    "parse_imb_barrier",
    "parse_imb_pairs",
    "parse_imb_rate",
]

_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(.*)")
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*([0-9]+)")
_GROUPS = re.compile(r"#\s*\(\s*([0-9]+ groups of [0-9]+ processes)\b.*")
_COLUMNS = re.compile(r"\s*(?:#bytes\s+)?#repetitions\s.*")
_PAIR = re.compile(r"# pair (\S+) (\S+)")

T = TypeVar("T")
Make = Callable[[ImbColumns, int, Sequence[str]], T]
"""Makes a row of its columns, the number of its line, and its fields."""


@dataclass(frozen=True)
class ImbPair:
    """The table of two ranks on two nodes."""

    source: str
    destination: str
    rows: tuple[ImbRow, ...]


def parse_imb(
    text: str, benchmark: str, processes: int, sizes: Sequence[int]
) -> tuple[ImbRow, ...]:
    """Read the one table of `benchmark` on `processes` ranks.

    Raises ParseError if the table is missing or there is another one, if its sizes
    are not exactly `sizes` in this order, if IMB dropped a row or one is cut off, or
    if its numbers cannot be (a time of 0 bytes may be zero).
    """
    return _rows(text.split("\n"), 1, benchmark, processes, sizes)


def parse_imb_rate(
    text: str, benchmark: str, processes: int, sizes: Sequence[int]
) -> tuple[ImbRate, ...]:
    """Read the one table of Uniband or Biband; raises ParseError as `parse_imb`."""
    lines = text.split("\n")
    return tuple(_table(lines, 1, benchmark, processes, sizes, ImbColumns.rate))


def parse_imb_barrier(text: str, processes: int) -> ImbBarrier:
    """Read the one row of Barrier; raises ParseError as `parse_imb`."""
    lines = text.split("\n")
    (row,) = _table(lines, 1, "Barrier", processes, [0], ImbColumns.barrier)
    return row


def parse_imb_pairs(
    text: str, pairs: Sequence[tuple[str, str]], sizes: Sequence[int]
) -> tuple[ImbPair, ...]:
    """Read one PingPong table per pair of nodes, each below `# pair SOURCE OTHER`.

    Raises ParseError as `parse_imb` does, and if the pairs are not exactly `pairs`
    in this order.
    """
    lines = text.split("\n")
    marks = [
        (i, match)
        for i, line in enumerate(lines)
        if line.startswith("# pair ") and (match := _PAIR.fullmatch(line.rstrip()))
    ]
    ends = [*(i for i, _ in marks[1:]), len(lines)]
    found: list[ImbPair] = []
    for (start, match), end in zip(marks, ends, strict=False):
        expected = pairs[len(found)] if len(found) < len(pairs) else None
        if (match[1], match[2]) != expected:
            raise ParseError(
                start + 1,
                f"pair {match[1]} {match[2]}, expected "
                + (" ".join(expected) if expected else "no further pair"),
            )
        below = lines[start + 1 : end] + [""] * (end < len(lines))
        rows = _rows(below, start + 2, "PingPong", 2, sizes)
        found.append(ImbPair(match[1], match[2], rows))
    if len(found) < len(pairs):
        missing = " ".join(pairs[len(found)])
        raise ParseError(
            last_line(lines),
            f"{len(found)} of {len(pairs)} pairs, the next is {missing}",
        )
    return tuple(found)


def _rows(
    lines: Sequence[str],
    first: int,
    benchmark: str,
    processes: int,
    sizes: Sequence[int],
) -> tuple[ImbRow, ...]:
    def make(columns: ImbColumns, line: int, fields: Sequence[str]) -> ImbRow:
        return columns.row(line, fields, benchmark)

    return tuple(_table(lines, first, benchmark, processes, sizes, make))


def _table(
    lines: Sequence[str],
    first: int,
    benchmark: str,
    processes: int,
    sizes: Sequence[int],
    make: Make[T],
) -> list[T]:
    """Read the one table in `lines`, whose first has the number `first`."""
    headers = _Headers(benchmark, processes)
    expected = Sizes(sizes)
    rows: list[T] = []
    for number, line, is_row in table_lines(lines, first):
        if not is_row:
            headers.add(number, line)
        elif (columns := headers.columns) is not None:
            fields = columns.read(number, line)
            expected.expect(number, columns.size_of(fields))
            rows.append(make(columns, number, fields))
    last = last_line(lines, first)
    expected.expect_end(last, benchmark)
    headers.verify(last)
    return rows


class _Headers:
    """What stands above the rows."""

    def __init__(self, benchmark: str, processes: int) -> None:
        self.columns: ImbColumns | None = None
        self._benchmark = benchmark
        self._processes = processes
        self._has_title = False
        self._has_processes = False

    def add(self, number: int, line: str) -> None:
        """Take a line that begins with #; ParseError if it is not as expected."""
        if match := _BENCHMARK.fullmatch(line):
            self._add_title(number, match[1])
        elif match := _PROCESSES.fullmatch(line):
            if match[1] != str(self._processes):
                raise ParseError(
                    number, f"{match[1]} processes, expected {self._processes}"
                )
            self._has_processes = True
        elif match := _GROUPS.fullmatch(line):
            raise ParseError(number, f"{match[1]} at the same time, expected one group")
        elif _COLUMNS.fullmatch(line):
            if self.columns is not None:
                raise ParseError(number, "columns of a second table")
            self.columns = ImbColumns(line)

    def _add_title(self, number: int, title: str) -> None:
        if self._has_title:
            raise ParseError(
                number, f"a second table, {title}, after that of {self._benchmark}"
            )
        if title != self._benchmark:
            raise ParseError(number, f"table of {title}, expected {self._benchmark}")
        self._has_title = True

    def verify(self, last: int) -> None:
        """Raise ParseError if the table says not which one it is."""
        if not self._has_title:
            raise ParseError(last, f"no title of {self._benchmark} above its rows")
        if not self._has_processes:
            raise ParseError(last, f"no number of processes of {self._benchmark}")
