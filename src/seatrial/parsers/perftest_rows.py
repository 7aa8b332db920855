"""One row of perftest, as its table and its JSON have it, proved to be possible.

Bandwidth is MB/s of 10^6 B/s here, unlike perftest's output: its `MB/sec` and, since
March 2024, `MiB/sec` are both 2^20 B/s, `Gb/sec` (`--report_gbits`) is 10^9 bit/s
(perftest_parameters.c: `format_factor`). Message rate and size give the same number
once more, so a wrong unit or a damaged digit does not get through. Of a bidirectional
test (`-b`), both are the sum of the two directions.

Latency is us. READ and ATOMIC print the whole round trip, all others half of it
(`rtt_factor`): `round_trip` says which, and nothing is halved here. perftest leaves
the two largest samples out of mean and median, and its `t_max` is the second largest.
Its `t_stdev` is wrong below 1 us (deviations are cut to whole numbers), so it is not
read: take the samples of `-U`. With `-C` the same columns, still headed `[usec]`, hold
CPU cycles: never give it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.model.units import to_mb_per_s
from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import (
    half_digit,
    is_at_most,
    is_in_order,
    is_same,
    read_count,
    read_number,
    read_positive,
)

MOST_US = 1e9
HALF_DIGIT = 0.005  # all times have two decimals
_TIME = re.compile(r"(?:0|[1-9][0-9]*)\.[0-9]{2}")
_PEAK = re.compile(r"inf|(?:0|[1-9][0-9]*)\.(?:[0-9]{2}|[0-9]{6})")
_BANDWIDTH = re.compile(r"(?:0|[1-9][0-9]*)\.(?:[0-9]{2}|[0-9]{6})")
_RATE = re.compile(r"(?:0|[1-9][0-9]*)\.[0-9]{6}")
_MOST_BANDWIDTH = 1e9  # in any unit
_MOST_MPPS = 1e6
_LEAST_CLOCK_HZ = 1e6  # of perftest's clock, get_cycles(): that of RISC-V, at least


@dataclass(frozen=True)
class BandwidthRow:
    """One size of a `_bw` program.

    `iterations` are those of all queue pairs. The rate is None where an old version
    has no column, or below 0.5 messages/s. perftest's peak is not taken over: it is
    0.00 with `-D`, `-N` or many iterations, and nothing confirms it.
    """

    size_bytes: int
    iterations: int
    bandwidth_mb_per_s: float
    message_rate_per_s: float | None


@dataclass(frozen=True)
class LatencyRow:
    """One size of a `_lat` program; `typical_us` is the median.

    Mean and percentiles are None before July 2016. `round_trip`: of the whole round
    trip (READ, ATOMIC), not half of it.
    """

    size_bytes: int
    iterations: int
    min_us: float
    max_us: float
    typical_us: float
    mean_us: float | None
    p99_us: float | None
    p99_9_us: float | None
    round_trip: bool


def bandwidth_row(
    line: int, values: Mapping[str, str], unit: str, iterations: int | None
) -> BandwidthRow:
    """Convert the columns to a row, in `unit`; ParseError if it cannot be true.

    `iterations` is what was asked for, None if nothing was (`-D`).
    """
    size, count = _size_and_iterations(line, values, iterations)
    shown = _printed("BW average", line, values, _BANDWIDTH)
    average = read_positive("BW average", line, shown, _MOST_BANDWIDTH)
    _verify_peak(line, _printed("BW peak", line, values, _PEAK), shown)
    mb_per_s = to_mb_per_s(average, unit)
    rate = None
    if "MsgRate" in values:
        shown_rate = _printed("MsgRate", line, values, _RATE)
        rate = read_number("MsgRate", line, shown_rate, 0.0, _MOST_MPPS)
        # perftest takes both from one time in double precision (print_report_bw), so
        # they differ by half a digit of each.
        rounding = to_mb_per_s(half_digit(shown), unit) + half_digit(shown_rate) * size
        if not is_same(mb_per_s, rate * size, rounding):
            by_rate = f"{rate} million messages of {size} bytes per second are"
            reason = f"{average} {unit} are {mb_per_s:.2f} MB/s, but {by_rate}"
            raise ParseError(line, f"{reason} {rate * size:.2f} MB/s")
    return BandwidthRow(size, count, mb_per_s, rate * 1e6 if rate else None)


def _verify_peak(line: int, shown: str, average: str) -> None:
    """Raise ParseError unless a peak can be that of the average beside it.

    Not measured, it is 0.00; `inf` where a message takes less than a cycle of a slow
    clock. Else it is never below the average: all messages count as one candidate, and
    their time per message is cut to whole cycles. But the clock rate is cut to whole Hz
    first (print_report_bw), which takes a part of 1 / rate off, and both are rounded.
    """
    if shown == "inf":
        return
    peak = read_number("BW peak", line, shown, 0.0, _MOST_BANDWIDTH)
    if half_digit(shown) != half_digit(average):
        raise ParseError(line, f"{shown} and {average} have other decimals")
    least = float(average) * (1 - 1 / _LEAST_CLOCK_HZ)
    if peak > 0 and not is_at_most(least, peak, 2 * half_digit(shown)):
        raise ParseError(line, f"BW peak {shown} is below BW average {average}")


def latency_row(
    line: int, values: Mapping[str, str], test: str, iterations: int | None
) -> LatencyRow:
    """Convert the columns to a row; ParseError if it cannot be true."""
    size, count = _size_and_iterations(line, values, iterations)
    times = {
        name: read_positive(name, line, _printed(name, line, values, _TIME), MOST_US)
        for name in ("t_min", "t_typical", "99%", "99.9%", "t_max", "t_avg")
        if name in values
    }
    mean = times.pop("t_avg", None)
    # Samples in their order stay in it when they are printed. The mean is a sum in
    # double precision: it may miss a bound by the last bit, which printing makes one
    # digit of both.
    limits = (times["t_min"], mean or times["t_min"], times["t_max"])
    is_sorted = [*times.values()] == sorted(times.values())
    if not (is_sorted and is_in_order(limits, 2 * HALF_DIGIT)):
        raise ParseError(line, f"times are out of order: {times}, t_avg {mean}")
    return LatencyRow(
        size_bytes=size,
        iterations=count,
        min_us=times["t_min"],
        max_us=times["t_max"],
        typical_us=times["t_typical"],
        mean_us=mean,
        p99_us=times.get("99%"),
        p99_9_us=times.get("99.9%"),
        round_trip=test.startswith(("RDMA_Read", "Atomic")),
    )


def _size_and_iterations(
    line: int, values: Mapping[str, str], expected: int | None
) -> tuple[int, int]:
    size = read_count("#bytes", line, values["#bytes"])
    count = read_count("#iterations", line, values["#iterations"])
    if not size:
        raise ParseError(line, "a message of 0 bytes")
    if count != (expected or count) or not count:
        reason = f"{count} iterations, expected {expected or 'at least 1'}"
        raise ParseError(line, reason)
    return size, count


def _printed(
    name: str, line: int, values: Mapping[str, str], pattern: re.Pattern[str]
) -> str:
    """Return a value; ParseError unless it has the decimals that perftest prints."""
    text = values[name]
    if not pattern.fullmatch(text):
        raise ParseError(line, f"{name} is {text}, expected a number like 1.25")
    return text
