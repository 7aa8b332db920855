"""Tables of perftest: `ib_write_bw`, `ib_send_lat`, `ib_read_lat`, `ib_atomic_bw`, ...

Units and what the numbers mean: see `perftest_rows`. Only what one side printed is
taken: server and client in one file are refused, as their rows mix. Both exit status
count, and the server of `-a` prints the last size only: parse the client's output.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from seatrial.parsers.errors import ParseError
from seatrial.parsers.perftest_rows import (
    HALF_DIGIT,
    MOST_US,
    BandwidthRow,
    LatencyRow,
    bandwidth_row,
    latency_row,
)
from seatrial.parsers.printed import Sizes, is_foreign, is_same, read_positive

ALL_SIZES = tuple(1 << k for k in range(1, 24))
"""The sizes of `-a`: 2 B to 8 MiB. There is no row of 1 B."""

_UNITS = {"MB/sec": "MiB/s", "MiB/sec": "MiB/s", "Gb/sec": "Gbit/s"}
_TITLE = re.compile(
    r"^[ \t]*((?:Send|RDMA_Write|RDMA_Read|Atomic).{1,80}) Test[ \t\r]*$", re.MULTILINE
)
_HEADER = "#bytes"
_COLUMN = re.compile(
    r"(#(?:bytes|sl|iterations)\b|BW (?:peak|average|Port[12])|MsgRate(?: Port[12])?"
    r"|t_(?:min|max|typical|avg|stdev)\b|99(?:\.9)?%(?=%? percentile)"
    r"|CPU_Util|tps average)"
    r"(?:%? percentile)?(?:\[([^\]]*)\])?"
)
_ROW_OR_RULE = re.compile(r"^[ \t]*(?:(-{87}).*|([0-9].*))\n", re.MULTILINE)
"""A line that begins with a number, or the rule of 87 dashes that ends the table.

Shorter rules are of others: Open MPI draws 74 dashes around its help.
"""
_HALF_SIXTH_DIGIT = 5e-6  # of %g
_SAMPLES = re.compile(r"^#, (\w+)\n((?:[0-9]+, .*\n)*)", re.MULTILINE)
_SAMPLE = re.compile(r"([0-9]+), ([0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?)\n")

R = TypeVar("R", BandwidthRow, LatencyRow)


def parse_perftest_bw(
    text: str, test: str, sizes: Sequence[int], iterations: int | None = None
) -> tuple[BandwidthRow, ...]:
    """Read the table of a `_bw` program; `test` is its title: `RDMA_Write BW`.

    Columns of `--report-per-port`, QoS and `--cpu_util` may be there and are not
    read. Raises ParseError unless there is one title, `test`, and one table with
    exactly `sizes` in this order, whole to its closing rule, each with `iterations`
    (None, for `-D`: any), finite positive numbers and one bandwidth in both columns.
    """
    _check_title(text, test)
    header, columns, units = _header(text)
    shown = {units.get("BW peak"), units.get("BW average")}
    unit = _UNITS.get(str(units.get("BW average")))
    if len(shown) != 1 or unit is None:
        reason = f"bandwidth in {units.get('BW average')}, expected {[*_UNITS]}"
        raise ParseError(header, reason)
    read = partial(bandwidth_row, unit=unit, iterations=iterations)
    return _rows(text, columns, sizes, read)


def parse_perftest_lat(
    text: str, test: str, sizes: Sequence[int], iterations: int | None = None
) -> tuple[LatencyRow, ...]:
    """Read the table of a `_lat` program; `test` is its title: `Send Latency`.

    Raises ParseError as `parse_perftest_bw` does, and if times are out of order. The
    table of `-D` has no median and is refused: give `-n`. With `-U` there is a second
    header: see `parse_perftest_samples`.
    """
    _check_title(text, test)
    header, columns, units = _header(text)
    for name in ("t_min", "t_typical", "t_max"):
        if units.get(name) != "usec":
            raise ParseError(header, f"no column {name}[usec] (-D in place of -n?)")
    added = {"t_avg", "99%", "99.9%"}
    if missing := added - units.keys() if added & units.keys() else set():
        raise ParseError(header, f"no column {', '.join(sorted(missing))}")
    read = partial(latency_row, test=test, iterations=iterations)
    return _rows(text, columns, sizes, read)


def parse_perftest_samples(text: str, test: str, iterations: int) -> tuple[float, ...]:
    """Read the samples in us that a `_lat` program with `-n iterations -U` prints.

    They are in the order of their measurement, one less than the iterations, and for
    READ and ATOMIC of the whole round trip. Raises ParseError unless there is exactly
    one list, numbered without gaps, finite, positive and in us (not cycles: `-C`).
    """
    _check_title(text, test)
    lists = list(_SAMPLES.finditer(text))
    if len(lists) != 1:
        where = _line_of(text, lists[1].start()) if lists else text.count("\n")
        raise ParseError(where, f"{len(lists)} lists of samples, expected one")
    (values,) = lists
    first = _line_of(text, values.start())
    if values[1] != "usec":
        raise ParseError(first, f"samples in {values[1]}, expected usec (-C?)")
    block = values[2]
    count = block.count("\n")
    pairs = _SAMPLE.findall(block)
    samples = tuple([float(value) for _, value in pairs])
    whole = [number for number, _ in pairs] == [str(n + 1) for n in range(count)]
    if not whole or not all(0 < sample < MOST_US for sample in samples):
        raise _wrong_sample(block, first)
    if count != iterations - 1 or not count:
        raise ParseError(first + count, f"{count} samples, expected {iterations - 1}")
    return samples


def parse_perftest_sampled(
    text: str, test: str, size: int, iterations: int
) -> tuple[float, ...]:
    """Read the samples of `-U` and the table of one row that follows them.

    Raises ParseError as `parse_perftest_samples` and `parse_perftest_lat` do, and if
    the least sample is not t_min of the row.
    """
    samples = parse_perftest_samples(text, test, iterations)
    # The header is there twice: before the samples, and before the row.
    table = text.replace(_HEADER, "#sizes", 1)
    (row,) = parse_perftest_lat(table, test, (size,), iterations)
    least = min(samples)
    if not is_same(row.min_us, least, HALF_DIGIT + least * _HALF_SIXTH_DIGIT):
        reason = f"t_min is {row.min_us} us, but the least sample {least} us"
        raise ParseError(_line_of(text, text.rindex(_HEADER)), reason)
    return samples


def _wrong_sample(block: str, first: int) -> ParseError:
    """Find the first line that makes a list of samples wrong."""
    position = 0
    for position, line in enumerate(block.splitlines(), start=1):
        number, _, value = line.partition(", ")
        if number != str(position):
            break
        try:
            read_positive("sample", first + position, value, MOST_US)
        except ParseError as error:
            return error
    return ParseError(first + position, f"{line!r}, expected sample {position}")


def _check_title(text: str, test: str) -> None:
    titles = list(_TITLE.finditer(text))
    if not titles:
        lines = text.count("\n")
        raise ParseError(lines, f"no title '{test} Test' in {lines} lines")
    if len(titles) > 1:
        line = _line_of(text, titles[1].start())
        raise ParseError(line, f"a second title, '{titles[1][1]} Test'")
    if (title := titles[0][1]) != test:
        line = _line_of(text, titles[0].start())
        raise ParseError(line, f"title of {title}, expected {test}")


def _header(text: str) -> tuple[int, list[str], dict[str, str]]:
    """Return the line of the header, its columns, and their units if any."""
    count = text.count(_HEADER)
    if count != 1:
        last = text.rfind(_HEADER)
        where = _line_of(text, last) if count else text.count("\n")
        raise ParseError(where, f"{count} tables, expected one")
    start = text.index(_HEADER)
    number = _line_of(text, start)
    line = text[start:].partition("\n")[0]
    if unknown := _COLUMN.sub("", line).strip():
        raise ParseError(number, f"unknown columns: {unknown!r}")
    titles = _COLUMN.findall(line)
    columns = [name for name, _ in titles]
    if len(set(columns)) < len(columns):
        raise ParseError(number, f"a column twice: {', '.join(columns)}")
    if [name for name in columns[:3] if name != "#sl"][:2] != [_HEADER, "#iterations"]:
        reason = f"columns {columns}, expected #bytes, #iterations, ..."
        raise ParseError(number, reason)
    return number, columns, dict(titles)


def _rows(
    text: str,
    columns: Sequence[str],
    sizes: Sequence[int],
    read: Callable[[int, Mapping[str, str]], R],
) -> tuple[R, ...]:
    """Read the rows below the header, by the rule for foreign lines of `printed`."""
    expected = Sizes(sizes)
    rows: list[R] = []
    position = text.index(_HEADER)
    number = _line_of(text, position)
    for match in _ROW_OR_RULE.finditer(text, position):
        number += text.count("\n", position, match.start())
        position = match.start()
        if match[1]:
            break
        fields = match[2].split()
        is_next = fields[0] == expected.next
        if len(fields) != len(columns) or (not is_next and is_foreign(fields)):
            expected.pass_over(number, match[2], ", ".join(columns))
            continue
        row = read(number, dict(zip(columns, fields, strict=True)))
        expected.expect(number, str(row.size_bytes))
        rows.append(row)
    else:
        left = f"{expected.progress} and no closing line"
        last = text.count("\n") + (not text.endswith("\n"))
        raise ParseError(last, f"the table is cut off: {left}")
    expected.expect_end(number, "the table")
    return tuple(rows)


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
