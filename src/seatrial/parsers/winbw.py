"""Output of our own `winbw --json`."""

from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.pairs_series import check_series
from seatrial.parsers.rows import Setting, Times, parse_rows, require
from seatrial.parsers.verbs_rows import ConnectedRow, require_rates

Policy = Literal["single", "striped", "bound"]


@dataclass(frozen=True)
class WinbwRow(Times, ConnectedRow):
    """One use of the ports, direction and message size.

    `rails` ports are there; `striped` sends a message above `threshold_bytes` in
    `pieces`, `bound` one direction or pair by each port. `mb_per_s` (10^6 B/s) is of
    all pairs and directions, within `interval_us`; times are of single windows.
    """

    device_2: Setting[str | None]
    peer_device_2: Setting[str | None]
    rails: Setting[int]
    threshold_bytes: Setting[int]
    window: Setting[int]
    policy: Policy
    direction: Literal["uni", "bi"]
    pairs: Setting[int]
    size_bytes: int
    pieces: int
    mb_per_s: float
    msg_per_s: float
    interval_us: float

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        self.verify_times()
        require(2 * self.pairs == self.np, f"{self.pairs} pairs of {self.np}")
        require(
            self.n % self.pairs == 0 and self.n <= self.iterations * self.pairs,
            f"{self.n} samples, expected at most {self.iterations} of each pair",
        )
        large = self.policy == "striped" and self.size_bytes > self.threshold_bytes
        require(
            self.pieces == (self.rails if large else 1),
            f"{self.pieces} pieces of {self.size_bytes} B, {self.policy}",
        )
        messages = self.window * self.n * (2 if self.direction == "bi" else 1)
        require_rates(
            self.mb_per_s, self.msg_per_s, messages, self.size_bytes, self.interval_us
        )


def parse_winbw(text: str) -> list[WinbwRow]:
    """Read all rows of one run of winbw: by use of the ports, direction, and size.

    Raises ParseError as `parse_rows`, and if sizes differ.
    """
    rows = parse_rows(text, "winbw", WinbwRow)
    check_series(
        [(f"{r.policy} {r.direction}", 1, r.size_bytes) for r in rows], doubled=False
    )
    return rows
