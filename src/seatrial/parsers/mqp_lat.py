"""Output of our own `mqp_lat --json`."""

from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.pairs_series import check_series
from seatrial.parsers.rows import Setting, parse_rows, require
from seatrial.parsers.verbs_rows import ConnectedRow, OptionalTimes


@dataclass(frozen=True)
class MqpRow(OptionalTimes, ConnectedRow):
    """One mode, test, number of connections and message size.

    `latency`: times in us of half a round over all connections, divided by their
    number. `throughput`: `mb_per_s` (10^6 B/s) and `msg_per_s` of both ways together,
    with up to `depth` messages under way on each connection for `duration_ms`. Each
    round contains a reading of the clock, which takes `clock_us`.
    """

    depth: Setting[int]
    duration_ms: Setting[int]
    mode: Literal["send", "write"]
    test: Literal["latency", "throughput"]
    connections: int
    size_bytes: int
    clock_us: Setting[float]
    mb_per_s: float | None
    msg_per_s: float | None

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(self.np == 2, f"np is {self.np}, expected 2")
        require(self.n <= self.iterations, f"{self.n} samples of {self.iterations}")
        self.verify_optional_times()
        rates = (self.mb_per_s, self.msg_per_s)
        if self.test == "latency":
            require(self.n > 0 and rates == (None, None), "a latency with a bandwidth")
            return
        require(self.n == 0 and None not in rates, "a throughput with times")
        megabytes, messages = (rate or 0.0 for rate in rates)
        expected = messages * self.size_bytes / 1e6
        require(
            megabytes > 0 and abs(megabytes / expected - 1) < 1e-12,
            f"mb_per_s {megabytes}, by its messages it is {expected:.6g}",
        )


def parse_mqp_lat(text: str) -> list[MqpRow]:
    """Read all rows of one run of mqp_lat: by mode, test, connections, and size.

    Raises ParseError as `parse_rows`, and if numbers of connections or sizes differ.
    """
    rows = parse_rows(text, "mqp_lat", MqpRow)
    check_series(
        [(f"{r.mode} {r.test}", r.connections, r.size_bytes) for r in rows],
        doubled=False,
    )
    return rows
