"""Output of our own `logp --json`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from seatrial.model.derived import logp_gap, logp_latency
from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import (
    Row,
    Setting,
    Signed,
    check_sizes,
    parse_rows,
    require,
    tolerance,
)


@dataclass(frozen=True)
class LogpRow(Row):
    """The LogP parameters at one message size; times in us.

    `half` is half the interval of the mean with `confidence_percent`. `g` follows from
    round trips, `g_flood` from a flood of `g_flood_n` messages; its value changed by
    the part `g_flood_change` when it was doubled last (None: it never was). `precise`:
    the intervals of os, or and RTT are within `eps_percent` of their means. `l` is the
    latency of the network. `inserted` sizes are those where the values jump.
    """

    send: Setting[Literal["isend", "send"]]
    receive: Setting[Literal["recv", "irecv"]]
    least: Setting[int]
    eps_percent: Setting[int]
    confidence_percent: Setting[int]
    flood: Setting[int]
    inserts: Setting[int]
    delay_us: Setting[int]
    nodes: Setting[int]
    clock_us: Setting[float]
    l_us: Annotated[Signed, "setting"]
    size_bytes: int
    os_p50_us: float
    os_mean_us: float
    os_half_us: float
    os_n: int
    or_p50_us: float
    or_mean_us: float
    or_half_us: float
    or_n: int
    g_p50_us: Signed
    g_mean_us: Signed
    g_half_us: float
    g_n: int
    g_flood_us: float
    g_flood_change: Signed | None
    g_flood_n: int
    rtt_p50_us: float
    rtt_mean_us: float
    rtt_half_us: float
    rtt_n: int
    precise: Literal["yes", "no"]
    inserted: Literal["yes", "no"]
    validation: Setting[Literal["pass", "off"]]

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(self.np == 2, f"np is {self.np}, expected 2")
        require(self.nodes in (1, 2), f"{self.nodes} nodes for 2 processes")
        has_same_n = self.os_n == self.rtt_n == self.g_n
        require(has_same_n, "os, rtt and g differ in their samples")
        for n in (self.rtt_n, self.or_n):
            require(2 <= n <= self.iterations, f"{n} samples of 2 to {self.iterations}")
        n = self.g_flood_n
        is_flood = 1 <= n <= self.flood
        require(is_flood, f"a flood of {n} messages of at most {self.flood}")
        least_us = min(self.rtt_p50_us, self.rtt_mean_us, self.g_flood_us)
        require(least_us > 0, "rtt or g is not positive")
        # of each exchange (link.c), and so of the means over all
        most_us = self.rtt_mean_us + self.clock_us
        require(
            self.os_mean_us <= most_us * (1 + tolerance(3, 2 * self.rtt_n)),
            "os_mean_us is above rtt_mean_us",
        )
        require(
            self._may_be_precise(self.precise == "yes"),
            f"precise is {self.precise!r}, but the intervals say otherwise",
        )

    def _may_be_precise(self, precise: bool) -> bool:
        """Return True if the intervals can say so, within their rounding."""
        part = tolerance(2, 1) if precise else -tolerance(2, 1)
        return precise == all(
            half <= self.eps_percent / 100 * mean * (1 + part)
            for half, mean in (
                (self.os_half_us, self.os_mean_us),
                (self.or_half_us, self.or_mean_us),
                (self.rtt_half_us, self.rtt_mean_us),
            )
        )


def parse_logp(text: str) -> list[LogpRow]:
    """Read all rows of one run of logp: size 0, then all sizes in their order.

    Raises ParseError as `parse_rows`, and if g or L do not follow from the round trips.
    """
    rows = parse_rows(text, "logp", LogpRow)
    sizes = [row.size_bytes for row in rows]
    if sizes != sorted(set(sizes)) or sizes[0] != 0:
        raise ParseError(0, f"sizes {sizes}, expected 0 and then larger ones")
    check_sizes([row.size_bytes for row in rows[1:] if row.inserted == "no"])
    inserted = sum(row.inserted == "yes" for row in rows)
    if inserted > rows[0].inserts:
        raise ParseError(0, f"{inserted} inserted sizes, at most {rows[0].inserts}")
    _check_derived(rows)
    return rows


def _check_derived(rows: list[LogpRow]) -> None:
    empty = rows[0]
    rtt_us, gap_us = empty.rtt_p50_us, empty.g_flood_us
    l_us = logp_latency(rtt_us, gap_us)
    if not _is_near(empty.l_us, l_us, rtt_us / 2, gap_us):
        raise ParseError(0, "l_us is not RTT(0) / 2 - g(0)")
    for row in rows:
        for g, rtt, rtt_0 in (
            (row.g_p50_us, row.rtt_p50_us, empty.rtt_p50_us),
            (row.g_mean_us, row.rtt_mean_us, empty.rtt_mean_us),
        ):
            if not _is_near(g, logp_gap(rtt, rtt_0, gap_us), rtt, rtt_0, gap_us):
                reason = f"size {row.size_bytes}: g is not RTT(m) - RTT(0) + g(0)"
                raise ParseError(0, reason)


def _is_near(value: float, expected: float, *terms: float) -> bool:
    """Compare with a sum of printed terms, each of which was rounded."""
    slack = tolerance(1) * (abs(value) + sum(map(abs, terms)))
    return abs(value - expected) <= slack
