"""Rows of the OSU Micro-Benchmarks: which columns they have, and what cannot be."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.printed import is_at_most, is_same
from seatrial.parsers.tables import DECIMALS, INTEGER

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
        self._validated = validated
        columns = ["size"] if self.has_sizes else []
        columns.append("MB/s" if self._is_bandwidth else "us")
        columns += ["messages/s"] if self.is_rate else []
        columns += ["min", "max", "iterations"] if full else []
        columns += ["validation"] if validated else []
        columns += [f"P{percentile}" for percentile in percentiles]
        self.text = ", ".join(columns)
        kinds = {"size": INTEGER, "iterations": INTEGER, "validation": "(Pass|Fail)"}
        patterns = [kinds.get(name, DECIMALS) for name in columns]
        start = "" if self.has_sizes else "() +"
        self._pattern = re.compile(start + " +".join(patterns))
        self._most = _MOST_MB_PER_S if self._is_bandwidth else _LONGEST_US

    def fields(self, text: str, width: int | None) -> tuple[str, ...] | None:
        """Return the cells of a whole row, the first its size; None for other lines.

        Columns have a width, so a row that is not as long as their header has lost a
        digit.
        """
        match = self._pattern.fullmatch(text)
        if match is None or len(text) != (width or len(text)):
            return None
        return match.groups()

    def row(self, line: int, fields: tuple[str, ...]) -> OsuRow:
        """Make a row of its cells. Raises ParseError on numbers that cannot be."""
        size, first, *others = fields
        mean = float(first)
        if not 0 < mean < self._most:
            raise ParseError(
                line, f"{first}, expected a positive number below {self._most:g}"
            )
        if not others:
            size_bytes = int(size) if self.has_sizes else None
            if self._is_bandwidth:
                return OsuRow(size_bytes, None, mean)
            return OsuRow(size_bytes, mean)
        return self._longer_row(line, size, mean, others)

    def _longer_row(
        self, line: int, size: str, mean: float, fields: list[str]
    ) -> OsuRow:
        """Make a row with more numbers than its size and its mean."""
        fields.reverse()
        rate = self._rate(line, fields.pop(), size, mean) if self.is_rate else None
        least = greatest = iterations = None
        if self._full:
            least, greatest = float(fields.pop()), float(fields.pop())
            iterations = int(fields.pop())
            _verify_spread(line, least, mean, greatest, iterations)
        if self._validated and fields.pop() == "Fail":
            raise ParseError(line, "contents failed validation")
        percentiles = tuple(map(float, reversed(fields)))
        if percentiles:
            self._verify_percentiles(line, percentiles)
        return OsuRow(
            int(size) if self.has_sizes else None,
            None if self._is_bandwidth else mean,
            mean if self._is_bandwidth else None,
            rate,
            least,
            greatest,
            iterations,
            percentiles,
        )

    def _rate(self, line: int, text: str, size: str, mb_per_s: float) -> float:
        """Return the message rate, which must be that of the bandwidth beside it.

        OSU computes it as 1e6 * bandwidth / size in double precision, and prints both
        with two decimals: in MB/s, half a digit of each.
        """
        rate, size_mb = float(text), int(size) / 1e6
        if not (0 < rate < _MOST_MSG_PER_S):
            raise ParseError(
                line,
                f"{text} messages/s, expected a positive number "
                f"below {_MOST_MSG_PER_S:g}",
            )
        rounding = _HALF_DIGIT + _HALF_DIGIT * size_mb
        if not is_same(rate * size_mb, mb_per_s, rounding):
            raise ParseError(
                line, f"{text} messages/s of {size} bytes are not {mb_per_s:.2f} MB/s"
            )
        return rate

    def _verify_percentiles(self, line: int, values: tuple[float, ...]) -> None:
        by_rank = [v for _, v in sorted(zip(self.percentiles, values, strict=True))]
        if by_rank != sorted(values) or not by_rank[-1] < self._most:
            raise ParseError(line, f"percentiles {values} are out of order or absurd")


def _verify_spread(
    line: int, least: float, mean: float, greatest: float, iterations: int
) -> None:
    # The mean is a sum over the ranks in double precision, by their number. It may
    # miss a bound by the last bit, which printing makes one digit of both.
    rounding = 2 * _HALF_DIGIT
    in_order = is_at_most(least, mean, rounding) and is_at_most(
        mean, greatest, rounding
    )
    if not (in_order and greatest < _LONGEST_US):
        raise ParseError(
            line, f"min {least}, mean {mean} and max {greatest} are out of order"
        )
    if iterations < 1:
        raise ParseError(line, f"{iterations} iterations, expected at least 1")
