"""Output of our own `bufreuse --json`."""

import math
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Literal

from seatrial.model.derived import buffer_reuse_ratio
from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import (
    PingPongRow,
    Setting,
    check_sizes,
    parse_rows,
    require,
    tolerance,
)

FULL_REUSE = 100


@dataclass(frozen=True)
class ReuseRow(PingPongRow):
    """A size and a share of re-use; times in us, half a round trip.

    `reuse_percent` of the messages use buffer 0, the others the next of `buffers`;
    `buffers_used` of them had a turn. `ratio` is p50_us over that of full re-use; None
    if that was not measured. Messages of up to `eager_limit_bytes` count as eager.
    Before, `swept_bytes` were written, to clear the caches.
    """

    buffers: Setting[int]
    eager_limit_bytes: Setting[int]
    swept_bytes: Setting[int]
    size_bytes: int
    protocol: Literal["eager", "rendezvous"]
    reuse_percent: int
    buffers_used: int
    ratio: float | None

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        super().verify()
        limit = self.eager_limit_bytes
        require(
            (self.protocol == "eager") == (self.size_bytes <= limit),
            f"protocol {self.protocol}, eager_limit_bytes {limit}",
        )
        require(
            1 <= self.buffers_used <= min(self.buffers, self.n),
            f"buffers_used {self.buffers_used} of {self.buffers} by {self.n} messages",
        )


def parse_bufreuse(text: str) -> list[ReuseRow]:
    """Read all rows of one run, by size and then by share of re-use, the largest first.

    Raises ParseError as `parse_rows`, and if ratios do not follow from the rows.
    """
    rows = parse_rows(text, "bufreuse", ReuseRow)
    sizes = [(size, list(of)) for size, of in groupby(rows, lambda row: row.size_bytes)]
    check_sizes([size for size, _ in sizes])
    shares = [row.reuse_percent for row in sizes[0][1]]
    if shares != sorted(set(shares), reverse=True) or shares[0] > FULL_REUSE:
        raise ParseError(0, f"shares of re-use {shares}, expected 100 and falling")
    for size, of_size in sizes:
        of_rows = [row.reuse_percent for row in of_size]
        if of_rows != shares:
            raise ParseError(0, f"size {size}: shares {of_rows}, expected {shares}")
        full = of_size[0].p50_us if FULL_REUSE in shares else None
        for row in of_size:
            expected = None if full is None else buffer_reuse_ratio(row.p50_us, full)
            if not _is_same_ratio(row.ratio, expected):
                reason = f"size {size}: ratio {row.ratio}, expected {expected}"
                raise ParseError(0, reason)
    return rows


def median_ratio(rows: list[ReuseRow], protocol: str) -> float:
    """Return the median ratio without re-use of a protocol's sizes, or ParseError."""
    ratios = [
        row.ratio
        for row in rows
        if (row.protocol, row.reuse_percent) == (protocol, 0) and row.ratio is not None
    ]
    if not ratios:
        raise ParseError(0, f"no ratio without re-use of a size that is {protocol}")
    return median(ratios)


def _is_same_ratio(ratio: float | None, expected: float | None) -> bool:
    if ratio is None or expected is None:
        return ratio is expected
    return math.isclose(ratio, expected, rel_tol=tolerance(3))
