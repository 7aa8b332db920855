"""Output of our own `halo2d --json`."""

from dataclasses import dataclass

from seatrial.parsers.rows import Row, Setting, Times, parse_rows, require


@dataclass(frozen=True)
class HaloRow(Times, Row):
    """One size of a run of halo2d; times in us, of one exchange of all four edges.

    `time_median_us` and `time_min_us` are median and minimum over the repetitions,
    each the mean on the slowest rank. The other times are of the `n` single
    exchanges, each on its slowest rank. `size_bytes` is an edge, 8 B x `subdomain`.
    """

    protocol: Setting[str]
    px: Setting[int]
    py: Setting[int]
    repetitions: Setting[int]
    size_bytes: int
    subdomain: int
    time_median_us: float
    time_min_us: float

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        self.verify_times()
        is_grid = self.np >= 2 and self.px * self.py == self.np
        require(is_grid, "np is not px x py, or below 2")
        is_edge = self.size_bytes == 8 * self.subdomain
        require(is_edge, "size_bytes is not 8 x subdomain")
        most, times = self.iterations, self.repetitions
        require(
            self.n <= most * times and self.n % times == 0,
            f"{self.n} samples, expected at most {most} x {times}",
        )
        in_order = 0 < self.time_min_us <= self.time_median_us
        require(in_order, "time_min_us is not positive, or above time_median_us")


def parse_halo2d(text: str) -> list[HaloRow]:
    """Read all rows of one run, in the order of their sizes, as `parse_rows`."""
    return parse_rows(text, "halo2d", HaloRow, doubled="subdomain")
