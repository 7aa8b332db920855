"""One row of perftest, as its table and its JSON have it, proved to be possible.

Bandwidth is MB/s of 10^6 B/s here, whatever perftest prints: its `MB/sec` and, since
March 2024, `MiB/sec` are both 2^20 B/s, `Gb/sec` (`--report_gbits`) is 10^9 bit/s
(perftest_parameters.c: `format_factor`). Message rate and size give the same number
once more, so a wrong unit or a damaged digit does not get through. Of a bidirectional
test (`-b`), both are the sum of the two directions.

Latency is us. READ and ATOMIC print the whole round trip, all others half of it
(`rtt_factor`): `round_trip` says which, and nothing is halved here. perftest leaves
the two largest samples out, and its `t_max` is the third largest. Its `t_stdev` is
wrong below 1 us (deviations are cut to whole numbers), so it is not read: take the
samples of `-U`. With `-C` the same columns, still headed `[usec]`, hold CPU cycles:
never give it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.numbers import (
    agree,
    half_digit,
    read_count,
    read_number,
    read_positive,
)
from seatrial.units import to_mb_per_s

MOST_US = 1e9
_TIME = re.compile(r"(?:0|[1-9][0-9]*)\.[0-9]{2}")
_BANDWIDTH = re.compile(r"(?:0|[1-9][0-9]*)\.(?:[0-9]{2}|[0-9]{6})")
_RATE = re.compile(r"(?:0|[1-9][0-9]*)\.[0-9]{6}")
_MOST_BANDWIDTH = 1e9  # in any unit
_MOST_MPPS = 1e6
_LEAST_PEAK = 0.99  # of the average; both are of one run, but rounded on their ways


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
    """Make a row of what the columns say, in `unit`; ParseError if it cannot be true.

    `iterations` is what was asked for, None if nothing was (`-D`).
    """
    size, count = _size_and_iterations(line, values, iterations)
    shown = _printed("BW average", line, values, _BANDWIDTH)
    average = read_positive("BW average", line, shown, _MOST_BANDWIDTH)
    shown_peak = _printed("BW peak", line, values, _BANDWIDTH)
    peak = read_number("BW peak", line, shown_peak, 0.0, _MOST_BANDWIDTH)
    if half_digit(shown) != half_digit(shown_peak):
        raise ParseError(line, f"{shown_peak} and {shown} have other decimals")
    if 0 < peak < _LEAST_PEAK * average:
        raise ParseError(line, f"BW peak {peak} is below BW average {average}")
    mb_per_s = to_mb_per_s(average, unit)
    rate = None
    if "MsgRate" in values:
        shown_rate = _printed("MsgRate", line, values, _RATE)
        rate = read_number("MsgRate", line, shown_rate, 0.0, _MOST_MPPS)
        rounding = to_mb_per_s(half_digit(shown), unit) + half_digit(shown_rate) * size
        if not agree(mb_per_s, rate * size, rounding):
            raise ParseError(
                line,
                f"{average} {unit} are {mb_per_s:.2f} MB/s, but {rate} million "
                f"messages of {size} bytes per second are {rate * size:.2f} MB/s",
            )
    return BandwidthRow(
        size_bytes=size,
        iterations=count,
        bandwidth_mb_per_s=mb_per_s,
        message_rate_per_s=rate * 1e6 if rate else None,
    )


def latency_row(
    line: int, values: Mapping[str, str], test: str, iterations: int | None
) -> LatencyRow:
    """Make a row of what the columns say; ParseError if it cannot be true."""
    size, count = _size_and_iterations(line, values, iterations)
    times = {
        name: read_positive(name, line, _printed(name, line, values, _TIME), MOST_US)
        for name in ("t_min", "t_typical", "99%", "99.9%", "t_max", "t_avg")
        if name in values
    }
    mean = times.pop("t_avg", None)
    in_order = list(times.values())
    if in_order != sorted(in_order) or not in_order[0] <= (mean or in_order[0]):
        raise ParseError(line, f"times are out of order: {times}, t_avg {mean}")
    if mean is not None and mean > times["t_max"]:
        raise ParseError(line, f"t_avg {mean} is above t_max {times['t_max']}")
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
        raise ParseError(
            line, f"{count} iterations, expected {expected or 'at least 1'}"
        )
    return size, count


def _printed(
    name: str, line: int, values: Mapping[str, str], pattern: re.Pattern[str]
) -> str:
    """Get a value; ParseError unless it has the decimals that perftest prints."""
    text = values[name]
    if not pattern.fullmatch(text):
        raise ParseError(line, f"{name} is {text}, expected a number like 1.25")
    return text
