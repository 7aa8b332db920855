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

from seatrial.parsers.errors import ParseError
from seatrial.parsers.osu_rows import OsuColumns, OsuRow
from seatrial.parsers.tables import Sizes, last_line, table_lines

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
            fields = columns.fields(line, headers.width)
            if fields is None:
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
    """What stands above the rows."""

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
        """Take a line that begins with #; ParseError if it is not as expected."""
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
        for name, found, expected in (
            ("pairs", pairs, self._pairs),
            ("window size", window, self._window),
        ):
            if expected is not None and found != str(expected):
                raise ParseError(number, f"{name}: {found}, expected {expected}")
        self._has_pairs = True

    def verify(self, number: int) -> None:
        """Raise ParseError if rows with these columns cannot stand below."""
        if self._columns.is_rate and not self._has_pairs:
            raise ParseError(number, "no line of pairs and window size above the rows")
        if self._percentiles != self._columns.percentiles:
            raise ParseError(
                number,
                f"percentiles {self._percentiles}, "
                f"expected {self._columns.percentiles}",
            )
