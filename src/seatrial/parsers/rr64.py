"""Output of our own `rr64 --json`."""

from dataclasses import dataclass

from seatrial.parsers.rows import (
    Row,
    Setting,
    Times,
    check_sizes,
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
        for name, most in (
            ("n", self.iterations),
            ("one_n", self.iterations),
            ("bw_n", self.windows),
            ("bw_one_n", self.windows),
        ):
            n = getattr(self, name)
            require(0 < n <= most, f"{name} {n}, expected at most {most}")
        require(self.one_p50_us > 0, "one_p50_us is not positive")
        require_ratio("latency_ratio", self.latency_ratio, self.p50_us, self.one_p50_us)
        if self.size_bytes == 0:
            found = (self.bw_mb_per_s, self.bw_one_mb_per_s, self.bw_ratio)
            require(found == (0, 0, None), "empty messages with a bandwidth")
        else:
            require(self.bw_one_mb_per_s > 0, "bw_one_mb_per_s is not positive")
            require_ratio(
                "bw_ratio", self.bw_ratio, self.bw_mb_per_s, self.bw_one_mb_per_s
            )


def parse_rr64(text: str) -> list[RegionsRow]:
    """Read all rows of one run of rr64, in the order of their sizes.

    Raises ParseError on anything but one complete, valid run, as `parse_rows` does.
    """
    rows = parse_rows(text, "rr64", RegionsRow)
    check_sizes([row.size_bytes for row in rows])
    return rows
