"""Rows of the Intel MPI Benchmarks: which columns they have, and what cannot be."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.numbers import agree
from seatrial.parsers.tables import DECIMALS, INTEGER

_INTEGERS = {"#bytes", "#repetitions", "Msg/sec"}
_TIMES = ("t_min[usec]", "t_avg[usec]", "t_max[usec]")
_DROPPED = re.compile(r"\s*([0-9]+)\s+((?:time-out|out-of-mem|int-overflow)\b.*)")
_MESSAGES = {"PingPong": 1, "PingPing": 1, "Sendrecv": 2, "Exchange": 4}
"""Messages whose bytes IMB counts as one call's (IMB_parse_name_mpi1.c: scale_bw)."""

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
    """The columns that a header names."""

    def __init__(self, header: str) -> None:
        self._header = header
        self._names = header.split()
        kinds = [INTEGER if name in _INTEGERS else DECIMALS for name in self._names]
        self._pattern = re.compile(" +" + " +".join(kinds))

    def read(self, line: int, row: str) -> dict[str, str]:
        """Give the values of a row, as printed, by the names of their columns.

        Raises ParseError if there are not all of them, or not of their form.
        """
        match = self._pattern.fullmatch(row)
        # Columns have a width: what is shorter has lost a digit.
        if match is not None and len(row) == len(self._header):
            return dict(zip(self._names, match.groups(), strict=True))
        if dropped := _DROPPED.fullmatch(row):
            raise ParseError(line, f"IMB dropped {dropped[1]} bytes: {dropped[2]}")
        raise ParseError(
            line, f"{row.strip()!r} is no whole row of {' '.join(self._names)}"
        )


def row_of(line: int, values: Mapping[str, str], benchmark: str) -> ImbRow:
    """Make a row with a time and perhaps a bandwidth; ParseError if it cannot be."""
    size, repetitions = _size(line, values), _repetitions(line, values)
    least = greatest = None
    if "t[usec]" in values:
        time = slowest = _time(line, "t[usec]", values, allow_zero=not size)
    else:
        least, time, greatest = _times(line, values, allow_zero=not size)
        slowest = greatest
    bandwidth = None
    if "Mbytes/sec" in values:
        bandwidth = float(values["Mbytes/sec"])
        _verify_bandwidth(line, benchmark, size, slowest, bandwidth)
    return ImbRow(size, repetitions, time, bandwidth, least, greatest)


def rate_of(line: int, values: Mapping[str, str]) -> ImbRate:
    """Make a row of Uniband or Biband; ParseError if it cannot be."""
    if not {"Mbytes/sec", "Msg/sec"} <= values.keys():
        raise ParseError(line, f"no Msg/sec among the columns {' '.join(values)}")
    size, repetitions = _size(line, values), _repetitions(line, values)
    mb_per_s, msg_per_s = float(values["Mbytes/sec"]), float(values["Msg/sec"])
    if not (0 < msg_per_s < _MOST_MSG_PER_S and mb_per_s < _MOST_MB_PER_S):
        raise ParseError(line, f"{msg_per_s:.0f} messages/s, {mb_per_s:.2f} MB/s")
    rounding = _HALF_DIGIT + 0.5 * size / 1e6
    if not agree(msg_per_s * size / 1e6, mb_per_s, rounding):
        raise ParseError(
            line,
            f"{msg_per_s:.0f} messages/s of {size} bytes are not {mb_per_s:.2f} MB/s",
        )
    return ImbRate(size, repetitions, mb_per_s, msg_per_s)


def barrier_of(line: int, values: Mapping[str, str]) -> ImbBarrier:
    """Make the row of Barrier; ParseError if it cannot be."""
    least, time, greatest = _times(line, values, allow_zero=False)
    return ImbBarrier(_repetitions(line, values), time, least, greatest)


def _size(line: int, values: Mapping[str, str]) -> int:
    if "#bytes" not in values:
        raise ParseError(line, f"no #bytes among the columns {' '.join(values)}")
    return int(values["#bytes"])


def _repetitions(line: int, values: Mapping[str, str]) -> int:
    """Give the number of repetitions, once contents are known to be right."""
    if float(values.get("defects", "0")) > 0:
        raise ParseError(line, f"contents failed validation: {values['defects']}")
    repetitions = int(values["#repetitions"])
    if repetitions < 1:
        raise ParseError(line, f"{repetitions} repetitions, expected at least 1")
    return repetitions


def _time(line: int, name: str, values: Mapping[str, str], allow_zero: bool) -> float:
    if name not in values:
        raise ParseError(line, f"no time among the columns {' '.join(values)}")
    time = float(values[name])
    if not (0 <= time < _LONGEST_US and (time > 0 or allow_zero)):
        raise ParseError(
            line,
            f"{name} {time:.2f}, expected a positive time below {_LONGEST_US:g}",
        )
    return time


def _times(
    line: int, values: Mapping[str, str], allow_zero: bool
) -> tuple[float, float, float]:
    """Give t_min, t_avg and t_max; the fastest rank may show no time at all."""
    least, time, greatest = (
        _time(line, name, values, allow_zero or name == "t_min[usec]")
        for name in _TIMES
    )
    rounding = 2 * _HALF_DIGIT
    if not least - rounding <= time <= greatest + rounding:
        raise ParseError(
            line, f"t_min {least}, t_avg {time} and t_max {greatest} are out of order"
        )
    return least, time, greatest


def _verify_bandwidth(
    line: int, benchmark: str, size: int, time: float, bandwidth: float
) -> None:
    """Raise ParseError unless a bandwidth is that of the time beside it."""
    if not bandwidth < _MOST_MB_PER_S or (size == 0 and bandwidth > 0):
        raise ParseError(line, f"Mbytes/sec {bandwidth:.2f} of {size} bytes")
    if size == 0 or benchmark not in _MESSAGES:
        return
    size *= _MESSAGES[benchmark]
    least = size / (time + _HALF_DIGIT) - _HALF_DIGIT
    most = size / max(time - _HALF_DIGIT, 1e-9) + _HALF_DIGIT
    if not least * (1 - 1e-9) <= bandwidth <= most * (1 + 1e-9):
        raise ParseError(
            line,
            f"Mbytes/sec {bandwidth:.2f}, by the time it is {size / time:.2f}",
        )
