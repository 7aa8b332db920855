"""Output of the Intel MPI Benchmarks, IMB-MPI1 and IMB-RMA 2019 to 2021.

Columns are found by their names, as their number depends on the benchmark. One
`Mbytes/sec` is 10^6 B/s (src_c/IMB_output.c), and time is in us: half the round trip
for PingPong, the time of one call otherwise. Of three times `t_avg`, the mean over the
ranks, is taken: in a rooted collective the root may leave at once, so `t_min` says
nothing about the network. A bandwidth, though, is that of the slowest rank.

Uniband and Biband send windows of messages, whose number they do not print: 64 up to
2021.1 and 256 since then, unless -window_size is given.

With `-multi 0`, groups of ranks run a benchmark at the same time, and the three times
are of all ranks of all groups. (With `-multi 1` each group has rows of its own, but
those of `-map` have wrong times: IMB_calculate_times takes the ranks in their order, as
if there were no -map.) One group is printed as if there was no -multi.

IMB-RMA prints the time of one call and of its share of MPI_Win_flush, which follows
every call (NON-AGGREGATE), or only the last one of all repetitions (AGGREGATE).

IMB ends with status 0 when it drops rows (-time, -mem), when it runs on fewer ranks
too (without -npmin), in groups (-multi) or in both modes (without -aggregate_mode), and
even when it does not know the benchmark and runs all others: what was not asked for is
refused.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from seatrial.parsers.errors import ParseError
from seatrial.parsers.imb_headers import ImbHeaders, ImbTable
from seatrial.parsers.imb_rows import ImbBarrier, ImbColumns, ImbRate, ImbRow
from seatrial.parsers.printed import Sizes, last_line, table_lines

__all__ = [
    "ImbBarrier",
    "ImbPair",
    "ImbRate",
    "ImbRow",
    "parse_imb",
    "parse_imb_barrier",
    "parse_imb_groups",
    "parse_imb_one_sided",
    "parse_imb_pairs",
    "parse_imb_rate",
]

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
    return _rows(text.split("\n"), 1, ImbTable(benchmark, processes), sizes)


def parse_imb_groups(
    text: str, benchmark: str, groups: Sequence[Sequence[int]], sizes: Sequence[int]
) -> tuple[ImbRow, ...]:
    """Read the one table of groups of ranks that ran at the same time (-multi 0).

    Times are over all ranks of all groups: the mean, the fastest and the slowest; the
    bandwidth is that of the slowest. Raises ParseError as `parse_imb`, and if the ranks
    of the groups, which IMB lists if there are several, are not exactly `groups`.
    """
    ranks = tuple(map(tuple, groups))
    table = ImbTable(benchmark, len(ranks[0]), groups=ranks)
    return _rows(text.split("\n"), 1, table, sizes)


def parse_imb_one_sided(
    text: str, benchmark: str, sizes: Sequence[int], *, aggregate: bool
) -> tuple[ImbRow, ...]:
    """Read the one table of Unidir_put or Unidir_get in one of the two modes.

    Raises ParseError as `parse_imb`, and if the table is of the other mode.
    """
    mode = "AGGREGATE" if aggregate else "NON-AGGREGATE"
    return _rows(text.split("\n"), 1, ImbTable(benchmark, 2, mode=mode), sizes)


def parse_imb_rate(
    text: str, benchmark: str, processes: int, sizes: Sequence[int]
) -> tuple[ImbRate, ...]:
    """Read the one table of Uniband or Biband; raises ParseError as `parse_imb`."""
    lines = text.split("\n")
    table = ImbTable(benchmark, processes)
    return tuple(_table(lines, 1, table, sizes, ImbColumns.rate))


def parse_imb_barrier(text: str, processes: int) -> ImbBarrier:
    """Read the one row of Barrier; raises ParseError as `parse_imb`."""
    lines = text.split("\n")
    table = ImbTable("Barrier", processes)
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
        rows = _rows(below, start + 2, ImbTable("PingPong", 2), sizes)
        found.append(ImbPair(match[1], match[2], rows))
    if len(found) < len(pairs):
        missing = " ".join(pairs[len(found)])
        raise ParseError(
            last_line(lines),
            f"{len(found)} of {len(pairs)} pairs, the next is {missing}",
        )
    return tuple(found)


def _rows(
    lines: Sequence[str], first: int, table: ImbTable, sizes: Sequence[int]
) -> tuple[ImbRow, ...]:
    def make(columns: ImbColumns, line: int, fields: Sequence[str]) -> ImbRow:
        return columns.row(line, fields, table.benchmark)

    return tuple(_table(lines, first, table, sizes, make))


def _table(
    lines: Sequence[str],
    first: int,
    table: ImbTable,
    sizes: Sequence[int],
    make: Make[T],
) -> list[T]:
    """Read the one table in `lines`, whose first has the number `first`."""
    headers = ImbHeaders(table)
    expected = Sizes(sizes)
    rows: list[T] = []
    for number, line, is_row in table_lines(lines, first):
        if not is_row:
            headers.add(number, line)
        elif (columns := headers.columns) is not None:
            fields = columns.fields(number, line)
            if fields is None:
                expected.pass_over(number, line, columns.text)
                continue
            expected.expect(number, columns.size_of(fields))
            rows.append(make(columns, number, fields))
    last = last_line(lines, first)
    expected.expect_end(last, table.title)
    headers.verify(last)
    return rows
