"""Columns and rows of the Intel MPI Benchmarks, and impossible numbers in them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import DECIMALS, INTEGER, is_in_order, is_same

_INTEGERS = {"#Group", "#bytes", "#repetitions", "Msg/sec"}
_TIMES = (("t_min[usec]", "t_avg[usec]", "t_max[usec]"), ("t[usec]",) * 3)
"""Least, mean and greatest time: where there is one time only, it is all of them."""

_KNOWN = ["#Group", "#bytes", "#repetitions", "t[usec]", *_TIMES[0]]
_KNOWN += ["Mbytes/sec", "Msg/sec", "defects"]

_DROPPED = re.compile(
    r"\s*(?:[0-9]+\s+)?([0-9]+)\s+((?:time-out|out-of-mem|int-overflow)\b.*)"
)
_MESSAGES = {
    **{"PingPong": 1, "PingPing": 1, "Sendrecv": 2, "Exchange": 4},
    **{"Unidir_put": 1, "Unidir_get": 1},
}
"""Messages whose bytes IMB counts as one call's (IMB_parse_name_*.c: scale_bw)."""

_LONGEST_US = 1e10
_MOST_MB_PER_S = 1e9
_MOST_MSG_PER_S = 1e12
_HALF_DIGIT = 0.005  # all but counts have two decimals


@dataclass(frozen=True)
class ImbRow:
    """One message size; None is what IMB does not print for the benchmark.

    `min_us` and `max_us` are of the fastest and of the slowest rank, each the mean of
    its repetitions.
    """

    size_bytes: int
    repetitions: int
    time_us: float
    bandwidth_mb_per_s: float | None
    min_us: float | None = None
    max_us: float | None = None


@dataclass(frozen=True)
class ImbRate:
    """One message size of Uniband or Biband, all pairs together."""

    size_bytes: int
    repetitions: int
    mb_per_s: float
    msg_per_s: float


@dataclass(frozen=True)
class ImbBarrier:
    """The one row of Barrier, with its times as in ImbRow."""

    repetitions: int
    time_us: float
    min_us: float
    max_us: float


class ImbColumns:
    """The columns that a header names, and what a row has in them."""

    def __init__(self, line: int, header: str) -> None:
        """Raise ParseError if a column is unknown or comes twice."""
        names = header.split()
        self.text = " ".join(names)
        if unknown := [name for name in names if name not in _KNOWN]:
            known = " ".join(_KNOWN)
            raise ParseError(line, f"unknown column {unknown[0]}, expected {known}")
        if len({*names}) < len(names):
            raise ParseError(line, f"a column twice: {self.text}")
        self._width = len(header)
        kinds = [INTEGER if name in _INTEGERS else DECIMALS for name in names]
        self._pattern = re.compile(" +" + " +".join(kinds))
        self._names = names
        self._times = [times for times in _TIMES if {*names} >= {*times}][-1:]

    def cells(self, line: int, row: str) -> dict[str, str] | None:
        """Return the cells of a whole row by column, None for other lines.

        Columns have a width: what is shorter has lost a digit. Raises ParseError if
        IMB says that it dropped a row.
        """
        match = self._pattern.fullmatch(row)
        if match is not None and len(row) == self._width:
            return dict(zip(self._names, match.groups(), strict=True))
        if dropped := _DROPPED.fullmatch(row):
            raise ParseError(line, f"IMB dropped {dropped[1]} bytes: {dropped[2]}")
        return None

    def row(self, line: int, cells: Mapping[str, str], benchmark: str) -> ImbRow:
        """Convert a row with a time, and a bandwidth if `benchmark` prints one."""
        size = int(self._cell(line, cells, "#bytes"))
        repetitions = _repetitions(line, cells)
        least, mean, greatest = self._three_times(line, cells, allow_zero=not size)
        bandwidth = None
        if "Mbytes/sec" in cells or benchmark in _MESSAGES:
            bandwidth = float(self._cell(line, cells, "Mbytes/sec"))
            _verify_bandwidth(line, benchmark, size, greatest, bandwidth)
        if "t[usec]" in cells:
            return ImbRow(size, repetitions, mean, bandwidth)
        return ImbRow(size, repetitions, mean, bandwidth, least, greatest)

    def rate(self, line: int, cells: Mapping[str, str]) -> ImbRate:
        """Convert a row of Uniband or Biband."""
        size = int(self._cell(line, cells, "#bytes"))
        mb_per_s = float(self._cell(line, cells, "Mbytes/sec"))
        msg_per_s = float(self._cell(line, cells, "Msg/sec"))
        if not (0 < msg_per_s < _MOST_MSG_PER_S and mb_per_s < _MOST_MB_PER_S):
            raise ParseError(line, f"{msg_per_s:.0f} messages/s, {mb_per_s:.2f} MB/s")
        # IMB takes the bandwidth from the rate in double precision. It prints one
        # with two decimals and the other as a whole number.
        rounding = _HALF_DIGIT + 0.5 * size / 1e6
        if not is_same(msg_per_s * size / 1e6, mb_per_s, rounding):
            rate = f"{msg_per_s:.0f} messages/s of {size} bytes"
            raise ParseError(line, f"{rate} are not {mb_per_s:.2f} MB/s")
        return ImbRate(size, _repetitions(line, cells), mb_per_s, msg_per_s)

    def barrier(self, line: int, cells: Mapping[str, str]) -> ImbBarrier:
        """Convert the row of Barrier."""
        least, mean, greatest = self._three_times(line, cells, allow_zero=False)
        return ImbBarrier(_repetitions(line, cells), mean, least, greatest)

    def _cell(self, line: int, cells: Mapping[str, str], name: str) -> str:
        if name not in cells:
            raise ParseError(line, f"no {name} among the columns {self.text}")
        return cells[name]

    def _three_times(
        self, line: int, cells: Mapping[str, str], allow_zero: bool
    ) -> tuple[float, float, float]:
        """Return least, mean and greatest time; the fastest rank may show none."""
        if not self._times:
            raise ParseError(line, f"no time among the columns {self.text}")
        least, mean, greatest = (float(cells[name]) for name in self._times[0])
        shown = f"times {least} to {greatest}, mean {mean}"
        if not greatest < _LONGEST_US or not (mean > 0 or allow_zero):
            expected = f"positive times below {_LONGEST_US:g}"
            raise ParseError(line, f"{shown}: expected {expected}")
        # The mean is a sum over the ranks in double precision, by their number. It
        # may miss a bound by the last bit, which printing makes one digit of both.
        if not is_in_order((least, mean, greatest), 2 * _HALF_DIGIT):
            raise ParseError(line, f"{shown}: out of order")
        return least, mean, greatest


def _repetitions(line: int, cells: Mapping[str, str]) -> int:
    """Return the number of repetitions, if contents were right."""
    if float(cells.get("defects", 0)) > 0:
        raise ParseError(line, f"contents failed validation: {cells['defects']}")
    repetitions = int(cells["#repetitions"])
    if repetitions < 1:
        raise ParseError(line, f"{repetitions} repetitions, expected at least 1")
    return repetitions


def _verify_bandwidth(
    line: int, benchmark: str, size: int, time: float, bandwidth: float
) -> None:
    """Raise ParseError unless a bandwidth is that of the time beside it.

    IMB divides the bytes by the time in double precision, then prints both with two
    decimals: the exact time is within half a digit of its print, so the bandwidth is
    between two quotients, and its own print half a digit further at most.
    """
    if not bandwidth < _MOST_MB_PER_S or (size == 0 and bandwidth > 0):
        raise ParseError(line, f"Mbytes/sec {bandwidth:.2f} of {size} bytes")
    if size == 0 or benchmark not in _MESSAGES:
        return
    size *= _MESSAGES[benchmark]
    least = size / (time + _HALF_DIGIT)
    most = size / (time - _HALF_DIGIT) if time > _HALF_DIGIT else _MOST_MB_PER_S
    if not is_in_order((least, bandwidth, most), _HALF_DIGIT):
        by_time = f"by the time it is {least:.2f} to {most:.2f}"
        raise ParseError(line, f"Mbytes/sec {bandwidth:.2f}, {by_time}")
