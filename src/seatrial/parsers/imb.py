"""Output of the Intel MPI Benchmarks, IMB-MPI1 and IMB-RMA 2019 to 2021.

Columns are found by their names, as their number depends on the benchmark. One
`Mbytes/sec` is 10^6 B/s (src_c/IMB_output.c), and time is in us: half the round trip
for PingPong, the time of one call otherwise. Of three times `t_avg`, the mean over the
ranks, is taken: in a rooted collective the root may leave at once, so `t_min` says
nothing about the network. A bandwidth, though, is that of the slowest rank.

Uniband and Biband send windows of messages, whose number they do not print: 64 up to
2021.1 and 256 since then, unless -window_size is given.

With `-multi 0`, groups of ranks run a benchmark at the same time, and the three times
are of all ranks of all groups. With `-multi 1` each group has rows of its own, but
those of `-map` have wrong times: IMB_calculate_times takes the ranks in their order, as
if there were no -map. Repetitions are those of the first group: another one has fewer
if it is so slow that -time cuts them. One group is printed as if there was no -multi.

IMB-RMA prints the time of one call and of its share of MPI_Win_flush, which follows
every call (NON-AGGREGATE), or only the last one of all repetitions (AGGREGATE).

IMB ends with status 0 when it drops rows (-time, -mem), when it runs on fewer ranks
too (without -npmin), in groups (-multi) or in both modes (without -aggregate_mode), and
even when it does not know the benchmark and runs all others: what was not asked for is
refused.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from seatrial.parsers.errors import ParseError
from seatrial.parsers.imb_rows import ImbBarrier as ImbBarrier
from seatrial.parsers.imb_rows import ImbColumns
from seatrial.parsers.imb_rows import ImbRate as ImbRate
from seatrial.parsers.imb_rows import ImbRow as ImbRow
from seatrial.parsers.printed import Sizes, last_line, table_lines

_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(.*)")
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*([0-9]+)")
_GROUPS = re.compile(r"#\s*\(\s*([0-9]+ groups of [0-9]+ processes)\b.*")
_GROUP = re.compile(r"#\s*Group\s+([0-9]+):((?:\s+[0-9]+)+)")
_MODE = re.compile(r"#\s*MODE:\s*(.*)")
_COLUMNS = re.compile(r"\s*(?:#Group\s+)?(?:#bytes\s+)?#repetitions\s.*")
_GROUP_COLUMN = re.compile(r"^( *) Group( +#bytes )", re.MULTILINE)
"""Columns of -multi 1, the only ones that do not begin with #."""
_PAIR = re.compile(r"# pair (\S+) (\S+)")

T = TypeVar("T")
Make = Callable[[ImbColumns, int, Mapping[str, str]], T]
"""Converts a row from its columns, the number of its line, and its cells."""


@dataclass(frozen=True)
class _Table:
    """The one table that was asked for.

    `processes` are those of a group. `groups` are the ranks of all groups that run at
    the same time, in IMB's order; () for a run that has none. With `is_each` every
    group has its rows (-multi 1). `mode` is that of a one-sided benchmark, else ''.
    """

    benchmark: str
    processes: int
    groups: tuple[tuple[int, ...], ...] = ()
    mode: str = ""
    is_each: bool = False

    @property
    def title(self) -> str:
        """The benchmark as IMB calls it above its rows."""
        return f"Multi-{self.benchmark}" if self.is_multiple else self.benchmark

    @property
    def is_multiple(self) -> bool:
        """Return True if IMB lists its groups: if there are several."""
        return len(self.groups) > 1

    @property
    def together(self) -> str:
        """All groups, in IMB's words; '' if it does not list them."""
        if not self.is_multiple:
            return ""
        return f"{len(self.groups)} groups of {self.processes} processes"


class _Headers:
    """The headers of a table, which must prove that it is the one expected."""

    def __init__(self, table: _Table) -> None:
        self.columns: ImbColumns | None = None
        self._table = table
        self._has_title = False
        self._has_processes = False
        self._has_mode = not table.mode
        self._groups = 0

    def add(self, number: int, line: str) -> None:
        """Read a line that begins with #; ParseError if it is not as expected."""
        if match := _BENCHMARK.fullmatch(line):
            self._add_title(number, match[1])
        elif match := _PROCESSES.fullmatch(line):
            if self._table.is_multiple or match[1] != str(self._table.processes):
                wanted = self._table.together or f"{self._table.processes}"
                raise ParseError(number, f"{match[1]} processes, expected {wanted}")
            self._has_processes = True
        elif match := _GROUPS.fullmatch(line):
            if match[1] != self._table.together:
                wanted = self._table.together or "one group"
                reason = f"{match[1]} at the same time, expected {wanted}"
                raise ParseError(number, reason)
            self._has_processes = True
        elif match := _GROUP.fullmatch(line):
            self._add_group(number, match[1], match[2].split())
        elif match := _MODE.fullmatch(line):
            if match[1] != self._table.mode:
                wanted = self._table.mode or "none"
                raise ParseError(number, f"mode {match[1]}, expected {wanted}")
            self._has_mode = True
        elif _COLUMNS.fullmatch(line):
            if self.columns is not None:
                raise ParseError(number, "columns of a second table")
            self.columns = ImbColumns(number, line)

    def _add_title(self, number: int, title: str) -> None:
        if self._has_title:
            reason = f"a second table, {title}, after that of {self._table.title}"
            raise ParseError(number, reason)
        if title != self._table.title:
            raise ParseError(number, f"table of {title}, expected {self._table.title}")
        self._has_title = True

    def _add_group(self, number: int, which: str, ranks: list[str]) -> None:
        groups = self._table.groups if self._table.is_multiple else ()
        group_name = f"group {which} of the ranks {' '.join(ranks)}"
        if self._groups == len(groups):
            raise ParseError(number, f"{group_name}, expected no further group")
        wanted = [*map(str, groups[self._groups])]
        if (which, ranks) != (str(self._groups), wanted):
            reason = f"expected group {self._groups} of {' '.join(wanted)}"
            raise ParseError(number, f"{group_name}, {reason}")
        self._groups += 1

    def verify(self, last: int) -> None:
        """Raise ParseError if the table says not which one it is."""
        table = self._table
        if not self._has_title:
            raise ParseError(last, f"no title of {table.title} above its rows")
        if not self._has_processes:
            raise ParseError(last, f"no number of processes of {table.title}")
        if table.is_multiple and self._groups < len(table.groups):
            raise ParseError(last, f"{self._groups} of {table.together} have ranks")
        if not self._has_mode:
            raise ParseError(last, f"no mode of {table.title}, expected {table.mode}")


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
    return _rows(text.split("\n"), 1, _Table(benchmark, processes), sizes)


def parse_imb_groups(
    text: str, benchmark: str, groups: Sequence[Sequence[int]], sizes: Sequence[int]
) -> tuple[ImbRow, ...]:
    """Read the one table of groups of ranks that ran at the same time (-multi 0).

    Times are over all ranks of all groups: the mean, the fastest and the slowest; the
    bandwidth is that of the slowest. Raises ParseError as `parse_imb`, and if the ranks
    of the groups, which IMB lists if there are several, are not exactly `groups`.
    """
    ranks = tuple(map(tuple, groups))
    table = _Table(benchmark, len(ranks[0]), groups=ranks)
    return _rows(text.split("\n"), 1, table, sizes)


def parse_imb_each_group(
    text: str, benchmark: str, groups: Sequence[Sequence[int]], sizes: Sequence[int]
) -> tuple[tuple[ImbRow, ...], ...]:
    """Read the rows of every group of ranks that follow each other (-multi 1).

    Raises ParseError as `parse_imb_groups`; a single group runs without -multi.
    """
    ranks = tuple(map(tuple, groups))
    if len(ranks) == 1:
        return (parse_imb(text, benchmark, len(ranks[0]), sizes),)
    table = _Table(benchmark, len(ranks[0]), groups=ranks, is_each=True)
    lines = _GROUP_COLUMN.sub(r"\1#Group\2", text).split("\n")
    rows = _rows(lines, 1, table, sizes)
    return tuple(rows[group :: len(ranks)] for group in range(len(ranks)))


def parse_imb_one_sided(
    text: str, benchmark: str, sizes: Sequence[int], *, aggregate: bool
) -> tuple[ImbRow, ...]:
    """Read the one table of Unidir_put or Unidir_get in one of the two modes.

    Raises ParseError as `parse_imb`, and if the table is of the other mode.
    """
    mode = "AGGREGATE" if aggregate else "NON-AGGREGATE"
    return _rows(text.split("\n"), 1, _Table(benchmark, 2, mode=mode), sizes)


def parse_imb_rate(
    text: str, benchmark: str, processes: int, sizes: Sequence[int]
) -> tuple[ImbRate, ...]:
    """Read the one table of Uniband or Biband; raises ParseError as `parse_imb`."""
    lines = text.split("\n")
    table = _Table(benchmark, processes)
    return tuple(_table(lines, 1, table, sizes, ImbColumns.rate))


def parse_imb_barrier(text: str, processes: int) -> ImbBarrier:
    """Read the one row of Barrier; raises ParseError as `parse_imb`."""
    lines = text.split("\n")
    table = _Table("Barrier", processes)
    (row,) = _table(lines, 1, table, [0], ImbColumns.barrier)
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
    blocks: list[ImbPair] = []
    for (start, match), end in zip(marks, ends, strict=False):
        expected = pairs[len(blocks)] if len(blocks) < len(pairs) else ()
        if match.groups() != expected:
            reason = f"expected {' '.join(expected) or 'no further pair'}"
            raise ParseError(start + 1, f"pair {match[1]} {match[2]}, {reason}")
        below = lines[start + 1 : end] + [""] * (end < len(lines))
        rows = _rows(below, start + 2, _Table("PingPong", 2), sizes)
        blocks.append(ImbPair(match[1], match[2], rows))
    if len(blocks) < len(pairs):
        missing = " ".join(pairs[len(blocks)])
        reason = f"{len(blocks)} of {len(pairs)} pairs, the next is {missing}"
        raise ParseError(last_line(lines), reason)
    return tuple(blocks)


def _rows(
    lines: Sequence[str], first: int, table: _Table, sizes: Sequence[int]
) -> tuple[ImbRow, ...]:
    def make(columns: ImbColumns, line: int, cells: Mapping[str, str]) -> ImbRow:
        return columns.row(line, cells, table.benchmark)

    return tuple(_table(lines, first, table, sizes, make))


def _table(
    lines: Sequence[str], first: int, table: _Table, sizes: Sequence[int], make: Make[T]
) -> list[T]:
    """Read the one table in `lines`, which are numbered from `first`."""
    headers = _Headers(table)
    expected = Sizes(sizes)
    if table.is_each:
        count = len(table.groups)
        keys = [f"{group} {size}" for size in sizes for group in range(count)]
        expected = Sizes(keys, "bytes of a group")
    rows: list[T] = []
    for number, line, is_row in table_lines(lines, first):
        if not is_row:
            headers.add(number, line)
        elif (columns := headers.columns) is not None:
            if (cells := columns.cells(number, line)) is None:
                expected.pass_over(number, line, columns.text)
                continue
            key = [cells.get("#Group", ""), cells.get("#bytes", "0")]  # Barrier: 0
            expected.expect(number, " ".join(key).strip())
            rows.append(make(columns, number, cells))
    last = last_line(lines, first)
    expected.expect_end(last, table.title)
    headers.verify(last)
    return rows
