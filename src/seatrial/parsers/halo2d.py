"""Output of our own `halo2d --json`."""

from dataclasses import dataclass

from seatrial.parsers.rows import Row, Setting, Times, check_sizes, parse_rows, require


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
        grid = self.np >= 2 and self.px * self.py == self.np
        require(grid, "np is not px x py, or below 2")
        require(
            self.size_bytes == 8 * self.subdomain, "size_bytes is not 8 x subdomain"
        )
        most = self.iterations * self.repetitions
        require(
            self.n <= most and self.n % self.repetitions == 0,
            f"{self.n} samples, expected at most {self.iterations} x "
            f"{self.repetitions}",
        )
        require(
            0 < self.time_min_us <= self.time_median_us,
            "time_min_us is not positive, or above time_median_us",
        )


def parse_halo2d(text: str) -> list[HaloRow]:
    """Read all rows of one run of halo2d, in the order of their sizes.

    Raises ParseError on anything but one complete, valid run, as `parse_rows` does.
    """
    rows = parse_rows(text, "halo2d", HaloRow)
    check_sizes([row.subdomain for row in rows])
    return rows
