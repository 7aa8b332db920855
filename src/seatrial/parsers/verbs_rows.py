"""Fields that the rows of our own verbs programs share, and their arithmetic."""

import math
from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.rows import Row, Setting, require, tolerance, verify_statistics


@dataclass(frozen=True)
class OptionalTimes:
    """Statistics of `n` samples in us, None of no samples."""

    min_us: float | None
    p50_us: float | None
    p99_us: float | None
    max_us: float | None
    mean_us: float | None
    n: int
    validation: Setting[Literal["pass", "off"]]

    def verify_optional_times(self) -> None:
        """Raise ValueError if statistics are out of order, or there without samples."""
        times = (self.min_us, self.p50_us, self.p99_us, self.max_us, self.mean_us)
        missing = [value is None for value in times]
        require(all(missing) if self.n == 0 else not any(missing), "times of no sample")
        if self.n:
            verify_statistics(self, "us")


@dataclass(frozen=True)
class ConnectedRow(Row):
    """A row of two nodes: their adapters, and how these are connected (RC).

    `addressing` is `lid`, `rdma_cm`, or the kind of the GID with `gid_index`.
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


def require_rates(
    mb_per_s: float, msg_per_s: float, messages: int, size_bytes: int, us: float
) -> None:
    """Raise ValueError unless rates are those of messages within a time in us."""
    require(us > 0, "a time that is not positive")
    per_us = messages / us
    for name, value, expected in (
        ("msg_per_s", msg_per_s, per_us * 1e6),
        ("mb_per_s", mb_per_s, per_us * size_bytes),
    ):
        require(
            math.isclose(value, expected, rel_tol=tolerance(2)),
            f"{name} {value}, by its time it is {expected:.6g}",
        )
