"""Output of our own `rr64 --json`."""

from dataclasses import dataclass

from seatrial.parsers.rows import (
    Row,
    Setting,
    Times,
    parse_rows,
    require,
    require_ratio,
)


@dataclass(frozen=True)
class RegionsRow(Times, Row):
    """One size of a run of rr64: messages from and into `regions` regions in turn.

    Times in us are of half round trips. Bandwidths (10^6 B/s) are of the median
    of `bw_n` windows. `one` is the same with one region; ratios are many
    regions over one.
    """

    nodes: Setting[int]
    regions: Setting[int]
    window: Setting[int]
    windows: Setting[int]
    size_bytes: int
    one_p50_us: float
    one_n: int
    latency_ratio: float
    bw_mb_per_s: float
    bw_one_mb_per_s: float
    bw_ratio: float | None
    bw_n: int
    bw_one_n: int

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        self.verify_times()
        require(self.np == 2 and self.nodes in (1, 2), "not two ranks")
        require(self.regions > 0, "no regions")
        for name in ("n", "one_n", "bw_n", "bw_one_n"):
            n = getattr(self, name)
            most = self.windows if name.startswith("bw") else self.iterations
            require(0 < n <= most, f"{name} {n}, expected at most {most}")
        require(self.one_p50_us > 0, "one_p50_us is not positive")
        require_ratio("latency_ratio", self.latency_ratio, self.p50_us, self.one_p50_us)
        if self.size_bytes == 0:
            bandwidths = (self.bw_mb_per_s, self.bw_one_mb_per_s, self.bw_ratio)
            require(bandwidths == (0, 0, None), "empty messages with a bandwidth")
        else:
            one = self.bw_one_mb_per_s
            require(one > 0, "bw_one_mb_per_s is not positive")
            require_ratio("bw_ratio", self.bw_ratio, self.bw_mb_per_s, one)


def parse_rr64(text: str) -> list[RegionsRow]:
    """Read all rows of one run, in the order of their sizes, as `parse_rows`."""
    return parse_rows(text, "rr64", RegionsRow, doubled="size_bytes")
