"""Output of our own `mp_rdma_lat --json` and `mp_rdma_bw --json`."""

import math
from dataclasses import dataclass
from typing import Literal, TypeVar

from seatrial.parsers.errors import ParseError
from seatrial.parsers.pairs_series import check_series
from seatrial.parsers.rows import (
    Row,
    Setting,
    parse_rows,
    require,
    tolerance,
    verify_statistics,
)


@dataclass(frozen=True)
class MpRdmaRow(Row):
    """One operation, number of pairs and message size.

    Times in us are of the `n` operations that count; None if there are none. Of the
    `operations` (of each pair) those are `dropped` before which the ranks of the first
    node left their barrier more than `spread_limit_ns` apart. Each time contains a
    reading of the clock, which takes `clock_us`.
    """

    source: Setting[str]
    destination: Setting[str]
    device: Setting[str]
    peer_device: Setting[str]
    addressing: Setting[str]
    gid_index: Setting[int | None]
    mtu_bytes: Setting[int]
    inline_bytes: Setting[int]
    doorbell: Setting[str]
    operation: Literal["write", "read"]
    pairs: int
    size_bytes: int
    clock_us: Setting[float]
    min_us: float | None
    p50_us: float | None
    p99_us: float | None
    max_us: float | None
    mean_us: float | None
    n: int
    spread_limit_ns: Setting[int]
    spread_p50_ns: float
    spread_max_ns: float
    operations: int
    dropped: int
    validation: Setting[Literal["pass", "off"]]

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(1 <= 2 * self.pairs <= self.np, f"{self.pairs} pairs of {self.np}")
        require(0 < self.operations <= self.iterations, "operations are not 1 to all")
        require(self.dropped <= self.operations, "more dropped than made")
        kept = self.operations - self.dropped
        require(self.n % max(kept, 1) == 0, f"{self.n} samples of {kept} operations")
        require((self.n == 0) == (kept == 0), f"{self.n} samples of {kept} operations")
        require(self.spread_p50_ns <= self.spread_max_ns, "spread is out of order")
        times = (self.min_us, self.p50_us, self.p99_us, self.max_us, self.mean_us)
        require((None in times) == (self.n == 0), "times without samples")
        if self.n:
            verify_statistics(self, "us")


@dataclass(frozen=True)
class MpRdmaLatency(MpRdmaRow):
    """Latency: of a write half the round trip, of a read until its completion.

    `slowest_us` is the mean of the slowest pair, over all operations.
    """

    slowest_us: float


@dataclass(frozen=True)
class MpRdmaBandwidth(MpRdmaRow):
    """Bandwidth of all pairs together, from the first begin to the last end.

    `mb_per_s` is in 10^6 B/s, of all windows of `window` messages within `interval_us`,
    dropped ones among them; times are of single windows. `least_mb_per_s` and
    `most_mb_per_s` are of single pairs, `fairness` is Jain's: 1 if all are alike, 1 /
    pairs if one has all.
    """

    window: Setting[int]
    mb_per_s: float
    msg_per_s: float
    interval_us: float
    least_mb_per_s: float
    most_mb_per_s: float
    fairness: float

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        super().verify()
        require(self.interval_us > 0, "interval_us is not positive")
        messages = self.pairs * self.window * self.operations
        per_us = messages / self.interval_us
        for name, value, expected in (
            ("msg_per_s", self.msg_per_s, per_us * 1e6),
            ("mb_per_s", self.mb_per_s, per_us * self.size_bytes),
        ):
            require(
                math.isclose(value, expected, rel_tol=tolerance(2)),
                f"{name} {value}, by the interval it is {expected:.6g}",
            )
        require(self.least_mb_per_s <= self.most_mb_per_s, "least is above most")
        least = (1 - tolerance(1, self.pairs)) / self.pairs
        most = 1 + tolerance(1, self.pairs)
        require(least <= self.fairness <= most, f"fairness {self.fairness}")


R = TypeVar("R", bound=MpRdmaRow)


def parse_mp_rdma_lat(text: str) -> list[MpRdmaLatency]:
    """Read all rows of one run of mp_rdma_lat; ParseError as `_parse`.

    Each row has samples: if all of its operations were dropped, the reason says so.
    """
    rows = _parse(text, "mp_rdma_lat", MpRdmaLatency)
    for row in rows:
        if not row.n:
            raise ParseError(
                0,
                f"{row.pairs} pairs, {row.operation} of {row.size_bytes} B: all "
                f"{row.operations} operations were dropped; the ranks of a node left "
                f"their barrier {row.spread_p50_ns:.0f} ns apart, more than "
                f"{row.spread_limit_ns} ns: give each a core of its own",
            )
    return rows


def parse_mp_rdma_bw(text: str) -> list[MpRdmaBandwidth]:
    """Read all rows of one run of mp_rdma_bw; ParseError as `_parse`."""
    return _parse(text, "mp_rdma_bw", MpRdmaBandwidth)


def _parse(text: str, program: str, row_type: type[R]) -> list[R]:
    """Read rows by operation, number of pairs, and size.

    Raises ParseError as `parse_rows`, and if numbers of pairs or sizes differ.
    """
    rows = parse_rows(text, program, row_type)
    check_series([(row.operation, row.pairs, row.size_bytes) for row in rows])
    return rows
