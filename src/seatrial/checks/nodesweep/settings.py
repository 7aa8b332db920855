"""Programs of a sweep over single nodes, and their time limits."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import seatrial
from seatrial.checks.hpcc_input import order_for_memory
from seatrial.checks.nodesweep.place import Place

SHORTEST_MS = 2000
"""Least time of fixedwork: two of the longest periods of a CPU quota that Linux has."""


@dataclass(frozen=True)
class Settings:
    """Programs to run, and their time limits in seconds.

    `n` 0: the matrix of HPL fills `memory_percent` of a node's memory. `memlat` is its
    command line, empty with the reason in `no_memlat`; likewise `fixedwork`.
    """

    hpcc: Sequence[str]
    n: int
    memory_percent: float
    block: int
    memlat: Sequence[str]
    no_memlat: str | None
    memlat_sizes: tuple[int, int]
    fixedwork: Sequence[str]
    no_fixedwork: str | None
    fixedwork_ms: int
    quiet_s: float
    start_s: float
    memlat_s: float
    hpcc_s: float

    @property
    def fixedwork_s(self) -> float:
        """The limit of fixedwork: its start, and four times what it is to take."""
        return 60.0 + 4 * self.fixedwork_ms / 1e3

    def matrix_order(self, place: Place, ranks: int) -> int:
        """Choose the order of HPL's matrix; ValueError if the node has no room."""
        percent, share = self.memory_percent, ranks / place.ranks
        memory_bytes = place.memory_bytes * percent / 100 * share
        n = self.n or order_for_memory(memory_bytes, self.block)
        place.require_room(n)
        return n

    def row(self, nodes: int) -> dict[str, Any]:
        """Return the first row of the file."""
        return {
            "type": "run",
            "program": "nodesweep",
            "version": seatrial.__version__,
            "nodes": nodes,
            "n": self.n,
            "memory_percent": self.memory_percent,
            "block": self.block,
            "no_memlat": self.no_memlat,
            "memlat_min_bytes": self.memlat_sizes[0],
            "memlat_max_bytes": self.memlat_sizes[1],
            "no_fixedwork": self.no_fixedwork,
            "fixedwork_ms": self.fixedwork_ms,
            "start_time": time.time(),
        }
