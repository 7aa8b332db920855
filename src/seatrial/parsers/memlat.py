"""Output of `memlat --json`: latency of loads from working sets of growing size."""

from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.rows import Row, Setting, parse_rows, require, verify_statistics


@dataclass(frozen=True)
class MemlatRow(Row):
    """One working set. Times are those of one load in ns, the means of `n` walks.

    `cache_bytes` is the largest cache of the CPU, `huge_bytes` how much of the
    working set was on huge pages.
    """

    host: Setting[str]
    stride: Setting[int]
    loads: Setting[int]
    cache_bytes: Setting[int]
    huge_pages: Setting[Literal["off", "transparent", "reserved"]]
    size_bytes: int
    huge_bytes: int
    cpu: int
    min_ns: float
    p50_ns: float
    p99_ns: float
    max_ns: float
    mean_ns: float
    n: int
    validation: Setting[Literal["pass", "off"]]

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        verify_statistics(self, "ns")
        require(self.min_ns > 0, "min_ns is not positive")
        require(self.p50_ns < 1e6, f"p50_ns is {self.p50_ns}: a load takes no ms")
        has_samples = 0 < self.n <= self.iterations
        require(has_samples, f"n {self.n}, expected at most {self.iterations}")
        require(self.stride > 0 and self.loads > 0, "no loads")
        require(self.size_bytes >= 2 * self.stride, "no room for two loads")
        require(self.huge_bytes <= self.size_bytes, "more huge pages than memory")


def parse_memlat(text: str) -> list[MemlatRow]:
    """Read all rows of one run, smallest working set first, as `parse_rows`."""
    return parse_rows(text, "memlat", MemlatRow, doubled="size_bytes")
