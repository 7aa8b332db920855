"""Rows of the Intel MPI Benchmarks: which columns they have, and what cannot be."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import DECIMALS, INTEGER, is_at_most, is_same

_INTEGERS = {"#bytes", "#repetitions", "Msg/sec"}
_TIMES = (("t_min[usec]", "t_avg[usec]", "t_max[usec]"), ("t[usec]",) * 3)
"""Least, mean and greatest time: where there is one time only, it is all of them."""

_KNOWN = (
    "#bytes",
    "#repetitions",
    "t[usec]",
    *_TIMES[0],
    "Mbytes/sec",
    "Msg/sec",
    "defects",
)

_DROPPED = re.compile(r"\s*([0-9]+)\s+((?:time-out|out-of-mem|int-overflow)\b.*)")
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
            raise ParseError(
                line,
                f"unknown column {unknown[0]}, expected some of {' '.join(_KNOWN)}",
            )
        if len({*names}) < len(names):
            raise ParseError(line, f"a column twice: {self.text}")
        self._width = len(header)
        kinds = [INTEGER if name in _INTEGERS else DECIMALS for name in names]
        self._pattern = re.compile(" +" + " +".join(kinds))
        at = {name: place for place, name in enumerate(names)}
        self._size = at.get("#bytes")
        self._repetitions = at["#repetitions"]
        self._defects = at.get("defects")
        self._bandwidth = at.get("Mbytes/sec")
        self._rate = at.get("Msg/sec")
        self._times: list[int] = []
        for times in _TIMES:
            if at.keys() >= {*times}:
                self._times = [at[name] for name in times]
        self._has_one_time = len({*self._times}) == 1

    def fields(self, line: int, row: str) -> tuple[str, ...] | None:
        """Return the cells of a whole row, None for other lines.

        Columns have a width: what is shorter has lost a digit. Raises ParseError if
        IMB says that it dropped a row.
        """
        match = self._pattern.fullmatch(row)
        if match is not None and len(row) == self._width:
            return match.groups()
        if dropped := _DROPPED.fullmatch(row):
            raise ParseError(line, f"IMB dropped {dropped[1]} bytes: {dropped[2]}")
        return None

    def size_of(self, fields: Sequence[str]) -> str:
        """Return the message size as printed; Barrier has no such column."""
        return "0" if self._size is None else fields[self._size]

    def row(self, line: int, fields: Sequence[str], benchmark: str) -> ImbRow:
        """Convert a row with a time, and a bandwidth if `benchmark` prints one."""
        size = int(fields[self._place(line, self._size, "#bytes")])
        repetitions = self._counted(line, fields)
        least, mean, greatest = self._three_times(line, fields, allow_zero=not size)
        bandwidth = None
        if self._bandwidth is not None or benchmark in _MESSAGES:
            place = self._place(line, self._bandwidth, "Mbytes/sec")
            bandwidth = float(fields[place])
            _verify_bandwidth(line, benchmark, size, greatest, bandwidth)
        if self._has_one_time:
            return ImbRow(size, repetitions, mean, bandwidth)
        return ImbRow(size, repetitions, mean, bandwidth, least, greatest)

    def rate(self, line: int, fields: Sequence[str]) -> ImbRate:
        """Convert a row of Uniband or Biband."""
        size = int(fields[self._place(line, self._size, "#bytes")])
        repetitions = self._counted(line, fields)
        mb_per_s = float(fields[self._place(line, self._bandwidth, "Mbytes/sec")])
        msg_per_s = float(fields[self._place(line, self._rate, "Msg/sec")])
        if not (0 < msg_per_s < _MOST_MSG_PER_S and mb_per_s < _MOST_MB_PER_S):
            raise ParseError(line, f"{msg_per_s:.0f} messages/s, {mb_per_s:.2f} MB/s")
        # IMB takes the bandwidth from the rate in double precision. It prints one
        # with two decimals and the other as a whole number.
        rounding = _HALF_DIGIT + 0.5 * size / 1e6
        if not is_same(msg_per_s * size / 1e6, mb_per_s, rounding):
            raise ParseError(
                line,
                f"{msg_per_s:.0f} messages/s of {size} bytes "
                f"are not {mb_per_s:.2f} MB/s",
            )
        return ImbRate(size, repetitions, mb_per_s, msg_per_s)

    def barrier(self, line: int, fields: Sequence[str]) -> ImbBarrier:
        """Convert the row of Barrier."""
        least, mean, greatest = self._three_times(line, fields, allow_zero=False)
        return ImbBarrier(self._counted(line, fields), mean, least, greatest)

    def _place(self, line: int, place: int | None, name: str) -> int:
        if place is None:
            raise ParseError(line, f"no {name} among the columns {self.text}")
        return place

    def _counted(self, line: int, fields: Sequence[str]) -> int:
        """Return the number of repetitions, if contents were right."""
        if self._defects is not None and float(fields[self._defects]) > 0:
            raise ParseError(
                line, f"contents failed validation: {fields[self._defects]}"
            )
        repetitions = int(fields[self._repetitions])
        if repetitions < 1:
            raise ParseError(line, f"{repetitions} repetitions, expected at least 1")
        return repetitions

    def _three_times(
        self, line: int, fields: Sequence[str], allow_zero: bool
    ) -> tuple[float, float, float]:
        """Return least, mean and greatest time; the fastest rank may show none."""
        if not self._times:
            raise ParseError(line, f"no time among the columns {self.text}")
        least, mean, greatest = (float(fields[place]) for place in self._times)
        if not greatest < _LONGEST_US or not (mean > 0 or allow_zero):
            raise ParseError(
                line,
                f"times {least} to {greatest}, mean {mean}: "
                f"expected positive times below {_LONGEST_US:g}",
            )
        # The mean is a sum over the ranks in double precision, by their number. It
        # may miss a bound by the last bit, which printing makes one digit of both.
        rounding = 2 * _HALF_DIGIT
        if not (
            is_at_most(least, mean, rounding) and is_at_most(mean, greatest, rounding)
        ):
            raise ParseError(
                line, f"times {least} to {greatest}, mean {mean}: out of order"
            )
        return least, mean, greatest


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
    if not (
        is_at_most(least, bandwidth, _HALF_DIGIT)
        and is_at_most(bandwidth, most, _HALF_DIGIT)
    ):
        raise ParseError(
            line,
            f"Mbytes/sec {bandwidth:.2f}, by the time it is {least:.2f} to {most:.2f}",
        )
