"""Output of the OSU Micro-Benchmarks, 5.4 to 7.5.

Columns are read by their position, for header text cannot be relied on: a latency is
`Latency (us)` up to 7.2 and `Avg Latency(us)` later, osu_barrier 7.1 has no header at
all, and osu_mbw_mr 5.6 shows that of a latency first. The title is the same in all of
these versions, so it proves which program ran. MB/s is 10^6 B/s, and the latency of
osu_latency and osu_multi_lat is half the round trip (c/mpi/pt2pt). With -c there is a
barrier in every iteration: measure without, and validate in a second run.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import (
    DECIMALS,
    INTEGER,
    Sizes,
    is_in_order,
    is_same,
    last_line,
    read_positive,
    table_lines,
)

_LONGEST_US = 1e10
_MOST_MB_PER_S = 1e9
_MOST_MSG_PER_S = 1e12
_HALF_DIGIT = 0.005  # all numbers have two decimals


@dataclass(frozen=True)
class OsuRow:
    """One message size; None is what the benchmark does not print.

    `latency_us` of a collective is the mean over the ranks, `min_us` and `max_us` (-f)
    are of the fastest and of the slowest rank, each the mean of `iterations` calls.
    `percentiles` (-z) are of single iterations, in the order they were asked for, in us
    or for a bandwidth in MB/s. osu_barrier has no `size_bytes`.
    """

    size_bytes: int | None
    latency_us: float | None = None
    mb_per_s: float | None = None
    msg_per_s: float | None = None
    min_us: float | None = None
    max_us: float | None = None
    iterations: int | None = None
    percentiles: tuple[float, ...] = ()


class OsuColumns:
    """The columns of a table, in their order, and how a row of them is read."""

    def __init__(
        self, benchmark: str, full: bool, validated: bool, percentiles: Sequence[int]
    ) -> None:
        self.has_sizes = benchmark != "osu_barrier"
        self.is_rate = benchmark == "osu_mbw_mr"
        self.percentiles = tuple(percentiles)
        self._is_bandwidth = self.is_rate or benchmark.endswith("bw")
        self._full = full
        self._names = ["size", "MB/s" if self._is_bandwidth else "us"]
        self._names += ["messages/s"] if self.is_rate else []
        self._names += ["min", "max", "iterations"] if full else []
        self._names += ["validation"] if validated else []
        columns = [*self._names, *(f"P{percentile}" for percentile in percentiles)]
        self.text = ", ".join(columns[not self.has_sizes :])
        kinds = {"size": INTEGER, "iterations": INTEGER, "validation": "(Pass|Fail)"}
        if not self.has_sizes:
            kinds["size"] = "()"
        self._pattern = re.compile(" +".join(kinds.get(x, DECIMALS) for x in columns))
        self._most = _MOST_MB_PER_S if self._is_bandwidth else _LONGEST_US

    def fields(self, text: str, width: int | None) -> tuple[str, ...] | None:
        """Return the cells of a whole row, the first its size; None for other lines.

        Columns have a width, so a row that is not as long as their header has lost a
        digit.
        """
        match = self._pattern.fullmatch(text)
        has_width = width in (None, len(text))
        return match.groups() if match is not None and has_width else None

    def row(self, line: int, fields: tuple[str, ...]) -> OsuRow:
        """Convert the cells of a row. Raises ParseError on impossible numbers."""
        cells = dict(zip(self._names, fields, strict=False))
        mean = read_positive(self._names[1], line, fields[1], self._most)
        rate = least = greatest = iterations = None
        if self.is_rate:
            rate = self._rate(line, cells["messages/s"], cells["size"], mean)
        if self._full:
            least, greatest = float(cells["min"]), float(cells["max"])
            iterations = int(cells["iterations"])
            # The mean is a sum over the ranks in double precision, by their number. It
            # may miss a bound by the last bit, which printing makes one digit of both.
            in_order = is_in_order((least, mean, greatest), 2 * _HALF_DIGIT)
            if not (in_order and greatest < _LONGEST_US):
                times = f"min {least}, mean {mean} and max {greatest}"
                raise ParseError(line, f"{times} are out of order")
            if iterations < 1:
                raise ParseError(line, f"{iterations} iterations, expected at least 1")
        if cells.get("validation") == "Fail":
            raise ParseError(line, "contents failed validation")
        percentiles = tuple(map(float, fields[len(self._names) :]))
        by_rank = [
            v for _, v in sorted(zip(self.percentiles, percentiles, strict=True))
        ]
        if by_rank != sorted(percentiles) or not all(v < self._most for v in by_rank):
            reason = f"percentiles {percentiles} are out of order or absurd"
            raise ParseError(line, reason)
        return OsuRow(
            size_bytes=int(cells["size"]) if self.has_sizes else None,
            latency_us=None if self._is_bandwidth else mean,
            mb_per_s=mean if self._is_bandwidth else None,
            msg_per_s=rate,
            min_us=least,
            max_us=greatest,
            iterations=iterations,
            percentiles=percentiles,
        )

    def _rate(self, line: int, text: str, size: str, mb_per_s: float) -> float:
        """Return the message rate, which must be that of the bandwidth beside it.

        OSU computes it as 1e6 * bandwidth / size in double precision, and prints both
        with two decimals: in MB/s, half a digit of each.
        """
        rate = read_positive("messages/s", line, text, _MOST_MSG_PER_S)
        size_mb = int(size) / 1e6
        if not is_same(rate * size_mb, mb_per_s, _HALF_DIGIT * (1 + size_mb)):
            reason = f"{text} messages/s of {size} bytes are not {mb_per_s:.2f} MB/s"
            raise ParseError(line, reason)
        return rate


_EXCHANGE = "Personalized Exchange Latency Test"
_TITLES = {
    "osu_latency": "OSU MPI Latency Test",
    "osu_bw": "OSU MPI Bandwidth Test",
    "osu_bibw": "OSU MPI Bi-Directional Bandwidth Test",
    "osu_mbw_mr": "OSU MPI Multiple Bandwidth / Message Rate Test",
    "osu_multi_lat": "OSU MPI Multi Latency Test",
    "osu_allgather": "OSU MPI Allgather Latency Test",
    "osu_allgatherv": "OSU MPI Allgatherv Latency Test",
    "osu_allreduce": "OSU MPI Allreduce Latency Test",
    "osu_alltoall": f"OSU MPI All-to-All {_EXCHANGE}",
    "osu_alltoallv": f"OSU MPI All-to-Allv {_EXCHANGE}",
    "osu_barrier": "OSU MPI Barrier Latency Test",
    "osu_bcast": "OSU MPI Broadcast Latency Test",
    "osu_gather": "OSU MPI Gather Latency Test",
    "osu_gatherv": "OSU MPI Gatherv Latency Test",
    "osu_reduce": "OSU MPI Reduce Latency Test",
    "osu_reduce_scatter": "OSU MPI Reduce_scatter Latency Test",
    "osu_scatter": "OSU MPI Scatter Latency Test",
    "osu_scatterv": "OSU MPI Scatterv Latency Test",
    "osu_put_latency": "OSU MPI_Put Latency Test",
    "osu_get_latency": "OSU MPI_Get latency Test",
    "osu_put_bw": "OSU MPI_Put Bandwidth Test",
    "osu_get_bw": "OSU MPI_Get Bandwidth Test",
    "osu_put_bibw": "OSU MPI_Put Bi-directional Bandwidth Test",
}

_TITLE = re.compile(r"# (OSU .*?)(?: v[0-9]\S*)?")
_PAIRS = re.compile(r"# \[ pairs: ([0-9]+) \] \[ window size: ([0-9]+|varied) \]")
_COLUMNS = ("# Size", "# Avg")
_HEADERS = ("# OSU ", "# [ pairs", "# Datatype", *_COLUMNS)
_PERCENTILE = re.compile(r"\bP([0-9]{1,3}) Tail")


def parse_osu(
    text: str,
    benchmark: str,
    sizes: Sequence[int] = (),
    *,
    full: bool = False,
    validated: bool = False,
    percentiles: Sequence[int] = (),
    pairs: int | None = None,
    window: int | None = None,
) -> tuple[OsuRow, ...]:
    """Read the one table of `benchmark`; osu_barrier has one row and no `sizes`.

    The caller tells what was asked for: `full` (-f), `validated` (-c), `percentiles`
    (-z), and for osu_mbw_mr `pairs` and `window` (None: any one). Raises ParseError
    if the table is missing, is of another program or there is a second one (as with
    -T all), if its sizes are not exactly `sizes` in this order, if its columns are not
    those asked for, if contents failed validation, or if a row is cut off or has
    numbers that cannot be. ValueError if no such benchmark is known.
    """
    if benchmark not in _TITLES:
        known = ", ".join(_TITLES)
        raise ValueError(f"unknown benchmark {benchmark!r}, expected one of {known}")
    columns = OsuColumns(benchmark, full, validated, percentiles)
    if columns.has_sizes != bool(sizes):
        raise ValueError(f"{benchmark} with {len(sizes)} sizes")
    lines = text.split("\n")
    headers = _Headers(_TITLES[benchmark], columns, pairs, window)
    expected = Sizes(sizes or [0])  # a barrier is of 0 bytes
    rows: list[OsuRow] = []
    for number, line, is_row in table_lines(lines):
        if not is_row:
            headers.add(number, line, has_rows=bool(rows))
        elif headers.has_title:
            if (fields := columns.fields(line, headers.width)) is None:
                expected.pass_over(number, line, columns.text)
                continue
            if not rows:
                headers.verify(number)
            expected.expect(number, fields[0] or "0")
            rows.append(columns.row(number, fields))
    last = last_line(lines)
    if not headers.has_title:
        raise ParseError(last, f"no title of {benchmark}")
    expected.expect_end(last, benchmark)
    return tuple(rows)


class _Headers:
    """Parse the headers of OSU tables."""

    def __init__(
        self, title: str, columns: OsuColumns, pairs: int | None, window: int | None
    ) -> None:
        self.has_title = False
        self.width: int | None = None
        self._title = title
        self._columns = columns
        self._pairs = pairs
        self._window = window
        self._has_pairs = False
        self._has_datatype = False
        self._percentiles: tuple[int, ...] = ()

    def add(self, number: int, line: str, has_rows: bool) -> None:
        """Read a line that begins with #; ParseError if it is not as expected."""
        if not line.startswith(_HEADERS):
            return
        is_datatype = line.startswith("# Datatype")
        if has_rows or (is_datatype and self._has_datatype):
            raise ParseError(number, f"a second table: {line!r}")
        if match := _TITLE.fullmatch(line):
            self._add_title(number, match[1])
        elif match := _PAIRS.fullmatch(line):
            self._add_pairs(number, match[1], match[2])
        elif is_datatype:
            self._has_datatype = True
        elif line.startswith(_COLUMNS):
            self.width = len(line)
            self._percentiles = tuple(map(int, _PERCENTILE.findall(line)))

    def _add_title(self, number: int, title: str) -> None:
        if title != self._title:
            raise ParseError(number, f"output of {title!r}, expected {self._title!r}")
        # osu_mbw_mr says it twice from 6.0 to 7.2
        if self.has_title and (self._has_pairs or not self._columns.is_rate):
            raise ParseError(number, f"a second table: {title!r}")
        self.has_title = True

    def _add_pairs(self, number: int, pairs: str, window: str) -> None:
        if self._has_pairs or not self._columns.is_rate:
            raise ParseError(number, "pairs and window size of a second table")
        if window == "varied":
            raise ParseError(number, "a table for many window sizes, expected one size")
        for name, actual, expected in (
            ("pairs", pairs, self._pairs),
            ("window size", window, self._window),
        ):
            if expected is not None and actual != str(expected):
                raise ParseError(number, f"{name}: {actual}, expected {expected}")
        self._has_pairs = True

    def verify(self, number: int) -> None:
        """Raise ParseError if rows with these columns cannot stand below."""
        if self._columns.is_rate and not self._has_pairs:
            raise ParseError(number, "no line of pairs and window size above the rows")
        if self._percentiles != (expected := self._columns.percentiles):
            reason = f"percentiles {self._percentiles}, expected {expected}"
            raise ParseError(number, reason)
