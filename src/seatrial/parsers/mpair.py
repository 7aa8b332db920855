"""Output of our own `mpair --json`."""

import math
from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.pairs_series import check_series
from seatrial.parsers.rows import (
    Row,
    Setting,
    Times,
    parse_rows,
    require,
    tolerance,
)

Mode = Literal["latency", "bw", "bibw", "rate"]


@dataclass(frozen=True)
class MpairRow(Times, Row):
    """One mode, number of pairs and message size of a run of mpair.

    Times in us are of the `n` single operations of all pairs: half round trips
    (`latency`), or whole windows of `window` messages (of each direction in `bibw`).
    As with OSU they contain a reading of the clock, which takes `clock_us`, once in
    each round trip or window.
    `mb_per_s` (10^6 B/s) and `msg_per_s` are of all pairs together; None in
    `latency`. `slowest_us` is the mean of the slowest pair, `start_spread_us` the time
    from the first to the last pair's start.
    """

    source: Setting[str]
    destination: Setting[str]
    window: Setting[int]
    windows: Setting[int]
    mode: Mode
    sync: Literal["start", "each"]
    pairs: int
    size_bytes: int
    clock_us: float
    mb_per_s: float | None
    msg_per_s: float | None
    slowest_us: float
    start_spread_us: float

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        self.verify_times()
        require(1 <= 2 * self.pairs <= self.np, f"{self.pairs} pairs of {self.np}")
        most = self.iterations if self.mode == "latency" else self.windows
        require(
            self.n % self.pairs == 0 and self.n <= most * self.pairs,
            f"{self.n} samples, expected at most {most} of each pair",
        )
        slack = tolerance(2, 2 * self.n) * self.max_us  # two means
        require(
            self.mean_us - slack <= self.slowest_us <= self.max_us + slack,
            "slowest_us is not between mean_us and max_us",
        )
        require(self.mode != "rate" or self.sync == "each", "a rate not in step")
        if self.mode == "latency":
            rates = (self.mb_per_s, self.msg_per_s)
            require(rates == (None, None), "a latency with a bandwidth")
            return
        messages = self.pairs * self.window * (2 if self.mode == "bibw" else 1)
        per_us = messages / self.mean_us
        for name, value, expected in (
            ("msg_per_s", self.msg_per_s, per_us * 1e6),
            ("mb_per_s", self.mb_per_s, per_us * self.size_bytes),
        ):
            require(
                value is not None
                and math.isclose(value, expected, rel_tol=tolerance(2)),
                f"{name} {value}, by the mean time it is {expected:.6g}",
            )


def parse_mpair(text: str) -> list[MpairRow]:
    """Read all rows of one run of mpair: by mode, number of pairs, and size.

    Raises ParseError as `parse_rows`, and if modes or numbers of pairs differ in sizes.
    """
    rows = parse_rows(text, "mpair", MpairRow)
    check_series([(row.mode, row.pairs, row.size_bytes) for row in rows])
    return rows
