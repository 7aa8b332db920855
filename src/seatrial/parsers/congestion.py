"""Output of our own `congestion --json`."""

from dataclasses import dataclass
from typing import Literal

from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import Row, Setting, parse_rows, require, require_ratio

AGGRESSORS = ("mixed", "alltoall", "incast", "put", "get", "none")
"""Kinds of load; `mixed` is GPCNeT's: all four at once, each on its own nodes."""
VICTIMS = ("latency", "bw", "allreduce")


@dataclass(frozen=True)
class CongestionRow(Row):
    """One victim, isolated and congested; values are in `unit`, of all its ranks.

    `..._p99` is the value that 99 % of the samples are not worse than. An impact says
    how many times worse the congested value is. `aggressor_operations` are those of the
    aggressor with the fewest.
    """

    nodes: Setting[int]
    victim_nodes: Setting[int]
    aggressor_nodes: Setting[int]
    seed: Setting[int]
    aggressors: Setting[Literal["mixed", "alltoall", "incast", "put", "get", "none"]]
    rings: Setting[int]
    window: Setting[int]
    windows: Setting[int]
    aggressor_bytes: int
    victim: Literal["latency", "bw", "allreduce"]
    size_bytes: int
    unit: Literal["us", "MB/s"]
    isolated_mean: float
    isolated_p99: float
    isolated_n: int
    congested_mean: float
    congested_p99: float
    congested_n: int
    impact_mean: float
    impact_p99: float
    aggressor_operations: int
    aggressor_mb_per_s: float
    validation: Setting[Literal["pass", "off"]]

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(
            self.victim_nodes + self.aggressor_nodes == self.nodes,
            f"{self.nodes} nodes, but {self.victim_nodes} of victims and "
            f"{self.aggressor_nodes} of aggressors",
        )
        require(self.victim_nodes >= 2, "a ring takes two nodes")
        is_rate = self.victim == "bw"
        require(self.unit == ("MB/s" if is_rate else "us"), f"unit {self.unit}")
        for when in ("isolated", "congested"):
            n, most = getattr(self, f"{when}_n"), self._most_samples()
            require(0 < n <= most, f"{when}_n {n}, expected at most {most}")
            for statistic in ("mean", "p99"):
                name = f"{when}_{statistic}"
                require(getattr(self, name) > 0, f"{name} is not positive")
        for statistic in ("mean", "p99"):
            alone = getattr(self, f"isolated_{statistic}")
            loaded = getattr(self, f"congested_{statistic}")
            above, below = (alone, loaded) if is_rate else (loaded, alone)
            name = f"impact_{statistic}"
            require_ratio(name, getattr(self, name), above, below)
        works = self.aggressor_operations > 0
        require(
            works == (self.aggressors != "none"),
            f"{self.aggressor_operations} operations of aggressors {self.aggressors}",
        )

    def _most_samples(self) -> int:
        """Return the samples of all victims, if none was left out for time."""
        each = self.windows if self.victim == "bw" else self.iterations
        return self.victim_nodes * self.np // self.nodes * self.rings * each


def parse_congestion(text: str) -> list[CongestionRow]:
    """Read all rows of one run: the three victims beside each size of aggressors.

    Raises ParseError as `parse_rows`, and if a victim is missing.
    """
    rows = parse_rows(text, "congestion", CongestionRow)
    expected = [VICTIMS[i % len(VICTIMS)] for i in range(len(rows))]
    victims = [row.victim for row in rows]
    if victims != expected or len(rows) % len(VICTIMS):
        raise ParseError(0, f"victims {', '.join(victims)}, expected each in turn")
    return rows
