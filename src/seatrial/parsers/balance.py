"""Output of our own `balance --json`."""

from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.rows import Row, Setting, parse_rows, require, require_ratio


@dataclass(frozen=True)
class BalanceRow(Row):
    """One size of a run of balance; values are medians of `..._n` operations or more.

    `within` is the node `source`, `between` goes from there to `destination`. A
    ratio says by how much the node surpasses the network: latency between over
    within, bandwidth (10^6 B/s) within over between. `multi_bw` is of `pairs` pairs
    at once, the others are of one.
    """

    source: Setting[str]
    destination: Setting[str]
    window: Setting[int]
    windows: Setting[int]
    pairs: Setting[int]
    size_bytes: int
    latency_within_us: float
    latency_between_us: float
    latency_ratio: float
    latency_n: int
    bw_within_mb_per_s: float
    bw_between_mb_per_s: float
    bw_ratio: float
    bw_n: int
    bibw_within_mb_per_s: float
    bibw_between_mb_per_s: float
    bibw_ratio: float
    bibw_n: int
    multi_bw_within_mb_per_s: float
    multi_bw_between_mb_per_s: float
    multi_bw_ratio: float
    multi_bw_n: int
    validation: Setting[Literal["pass", "off"]]

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(self.source != self.destination, "one node is no network")
        require(1 <= 4 * self.pairs <= self.np, f"{self.pairs} pairs of {self.np}")
        latencies = self.latency_between_us, self.latency_within_us
        self._verify_ratio("latency", *latencies, self.iterations)
        for name, pairs in (("bw", 1), ("bibw", 1), ("multi_bw", self.pairs)):
            within = getattr(self, f"{name}_within_mb_per_s")
            between = getattr(self, f"{name}_between_mb_per_s")
            self._verify_ratio(name, within, between, pairs * self.windows)

    def _verify_ratio(self, name: str, above: float, below: float, most: int) -> None:
        n, ratio = getattr(self, f"{name}_n"), getattr(self, f"{name}_ratio")
        require(0 < n <= most, f"{name}_n {n}, expected at most {most}")
        if name != "latency" and self.size_bytes == 0:
            require(above == below == 0, f"{name} of empty messages")
            require(ratio > 0, f"{name}_ratio is not positive")
            return
        require(min(above, below) > 0, f"{name} is not positive")
        require_ratio(f"{name}_ratio", ratio, above, below)


def parse_balance(text: str) -> list[BalanceRow]:
    """Read all rows of one run, in the order of their sizes, as `parse_rows`."""
    return parse_rows(text, "balance", BalanceRow, doubled="size_bytes")
