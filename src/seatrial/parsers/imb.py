"""Output of the Intel MPI Benchmarks: `IMB-MPI1 PingPong`, `Alltoall` and others.

Columns are found by their names, as their number depends on the benchmark. One
`Mbytes/sec` is 10^6 B/s (IMB 2021: IMB_output.c), and time is in us: half the round
trip for PingPong, the time of one call otherwise. Of three times `t_avg`, the mean
over the ranks, is taken: in a rooted collective the root may leave at once, so
`t_min` says nothing about the network.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError

_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(\S+)\s*")
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*(\d+)\s*")
_PAIR = re.compile(r"# pair (\S+) (\S+)")
_TIMES = ("t_avg[usec]", "t[usec]")
_SLOWEST_SHOWN_MB_PER_S = 0.01


@dataclass(frozen=True)
class ImbRow:
    """One message size; `bandwidth_mb_per_s` is None where IMB prints none."""

    size_bytes: int
    repetitions: int
    time_us: float
    bandwidth_mb_per_s: float | None


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
    are not exactly `sizes` in this order, or if a row is cut off or its numbers are
    not finite and positive (a time of 0 bytes may be zero).
    """
    return _parse(text.splitlines(keepends=True), 0, benchmark, processes, sizes)


def parse_imb_pairs(
    text: str, pairs: Sequence[tuple[str, str]], sizes: Sequence[int]
) -> tuple[ImbPair, ...]:
    """Read one PingPong table per pair of nodes, each below `# pair SOURCE OTHER`.

    Raises ParseError as `parse_imb` does, and if the pairs are not exactly `pairs`
    in this order.
    """
    lines = text.splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if _PAIR.fullmatch(line.rstrip())]
    found: list[ImbPair] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        match = _PAIR.fullmatch(lines[start].rstrip())
        assert match is not None
        expected = pairs[len(found)] if len(found) < len(pairs) else None
        if (match[1], match[2]) != expected:
            raise ParseError(
                start + 1,
                f"pair {match[1]} {match[2]}, expected "
                + (" ".join(expected) if expected else "no further pair"),
            )
        rows = _parse(lines[start + 1 : end], start + 1, "PingPong", 2, sizes)
        found.append(ImbPair(match[1], match[2], rows))
    if len(found) < len(pairs):
        missing = " ".join(pairs[len(found)])
        raise ParseError(
            len(lines), f"{len(found)} of {len(pairs)} pairs, the next is {missing}"
        )
    return tuple(found)


def _parse(
    lines: Sequence[str],
    offset: int,
    benchmark: str,
    processes: int,
    sizes: Sequence[int],
) -> tuple[ImbRow, ...]:
    """Read the table in `lines`, which begin after line `offset` of the output."""
    title = ""
    columns: list[str] = []
    rows: list[ImbRow] = []
    for number, line in enumerate(lines, start=offset + 1):
        if match := _BENCHMARK.fullmatch(line):
            if title:
                raise ParseError(number, f"a second table, after that of {title}")
            title = match[1]
            if title != benchmark:
                raise ParseError(number, f"table of {title}, expected {benchmark}")
        elif match := _PROCESSES.fullmatch(line):
            if int(match[1]) != processes:
                raise ParseError(number, f"{match[1]} processes, expected {processes}")
        elif line.split()[:2] == ["#bytes", "#repetitions"]:
            columns = line.split()
        elif columns and line.strip() and not line.startswith("#"):
            row = _row(line, number, columns)
            expected = sizes[len(rows)] if len(rows) < len(sizes) else None
            if row.size_bytes != expected:
                wanted = "no further row" if expected is None else f"{expected} bytes"
                raise ParseError(
                    number, f"row of {row.size_bytes} bytes, expected {wanted}"
                )
            rows.append(row)
    if len(rows) < len(sizes):
        raise ParseError(
            offset + len(lines),
            f"{len(rows)} of {len(sizes)} rows of {benchmark}, "
            f"the next is {sizes[len(rows)]} bytes",
        )
    if not title:
        raise ParseError(offset + len(lines), f"no title of {benchmark} above its rows")
    return tuple(rows)


def _row(line: str, number: int, columns: Sequence[str]) -> ImbRow:
    fields = line.split()
    if len(fields) != len(columns) or not line.endswith("\n"):
        raise ParseError(
            number, f"{line.strip()!r} is no whole row of {' '.join(columns)}"
        )
    values = dict(zip(columns, fields, strict=True))
    time_column = next((name for name in _TIMES if name in values), None)
    if time_column is None:
        raise ParseError(number, f"no time among the columns {' '.join(columns)}")
    try:
        size, repetitions = int(values["#bytes"]), int(values["#repetitions"])
        time_us = float(values[time_column])
        shown = values.get("Mbytes/sec")
        bandwidth = None if shown is None else float(shown)
    except ValueError as error:
        raise ParseError(number, f"{line.strip()!r}: {error}") from error
    if repetitions < 1:
        raise ParseError(number, f"{repetitions} repetitions, expected at least 1")
    if not math.isfinite(time_us) or time_us < 0 or (time_us == 0 and size > 0):
        raise ParseError(number, f"{time_column} {time_us}, expected a positive time")
    if bandwidth is not None:
        least = 0.0 if not size or size / time_us < _SLOWEST_SHOWN_MB_PER_S else 1e-9
        if not math.isfinite(bandwidth) or bandwidth < least:
            raise ParseError(
                number, f"Mbytes/sec {bandwidth}, expected a positive bandwidth"
            )
    return ImbRow(size, repetitions, time_us, bandwidth)
