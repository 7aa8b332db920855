"""Output of our own `mp_rdma_lat --json` and `mp_rdma_bw --json`."""

from dataclasses import dataclass
from typing import Literal, TypeVar

from seatrial.parsers.errors import ParseError
from seatrial.parsers.pairs_series import check_series
from seatrial.parsers.rows import Setting, parse_rows, require, tolerance
from seatrial.parsers.verbs_rows import ConnectedRow, OptionalTimes, require_rates


@dataclass(frozen=True)
class MpRdmaRow(OptionalTimes, ConnectedRow):
    """One operation, number of pairs and message size.

    Times in us are of the `n` operations that count, of all pairs. Of the `operations`
    of each pair those are `dropped` before which the ranks of the first node left their
    barrier more than `spread_limit_ns` apart. Each time contains a reading of the
    clock, which takes `clock_us`.
    """

    operation: Literal["write", "read"]
    pairs: int
    size_bytes: int
    clock_us: Setting[float]
    spread_limit_ns: Setting[int]
    spread_p50_ns: float
    spread_max_ns: float
    operations: int
    dropped: int

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(1 <= 2 * self.pairs <= self.np, f"{self.pairs} pairs of {self.np}")
        require(0 < self.operations <= self.iterations, "operations of no iteration")
        kept = self.operations - self.dropped
        require(kept >= 0, "more operations dropped than made")
        require(
            (self.n == 0) == (kept == 0) and self.n <= kept * self.pairs,
            f"{self.n} samples of {kept} operations of {self.pairs} pairs",
        )
        require(self.spread_p50_ns <= self.spread_max_ns, "spread is out of order")
        self.verify_optional_times()


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
    `most_mb_per_s` are of single pairs, `fairness` is Jain's index of them: 1 if all
    are alike, 1 / pairs if one has all.
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
        messages = self.pairs * self.window * self.operations
        require_rates(
            self.mb_per_s, self.msg_per_s, messages, self.size_bytes, self.interval_us
        )
        require(self.least_mb_per_s <= self.most_mb_per_s, "least is above most")
        slack = tolerance(1, 4 * self.pairs)
        require(
            (1 - slack) / self.pairs <= self.fairness <= 1 + slack,
            f"fairness {self.fairness} of {self.pairs} pairs",
        )


R = TypeVar("R", bound=MpRdmaRow)


def parse_mp_rdma_lat(text: str) -> list[MpRdmaLatency]:
    """Read all rows of one run of mp_rdma_lat; ParseError as `_parse`.

    Each row has samples; the reason says so if all of its operations were dropped.
    """
    rows = _parse(text, "mp_rdma_lat", MpRdmaLatency)
    for row in rows:
        if not row.n:
            raise ParseError(
                0,
                f"{row.operation} of {row.size_bytes} B, {row.pairs} pairs: all "
                f"{row.operations} operations were dropped, as the ranks of a node "
                f"left their barrier {row.spread_p50_ns:.0f} ns apart (median), more "
                f"than {row.spread_limit_ns} ns; give each a core of its own",
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
    check_series(
        [(row.operation, row.pairs, row.size_bytes) for row in rows], doubled=False
    )
    return rows
