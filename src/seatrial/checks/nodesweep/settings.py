"""Programs of a sweep over single nodes, and their time limits."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import seatrial
from seatrial.checks.hpcc_input import order_for_memory
from seatrial.checks.nodesweep.place import Place


@dataclass(frozen=True)
class Settings:
    """Programs to run, and their time limits in seconds: the options of the sweep.

    `n` 0: the matrix of HPL fills `memory_percent` of a node's memory. `memlat` is its
    command line, empty with the reason in `no_memlat`; likewise `fixedwork`.
    """

    hpcc: Sequence[str]
    n: int
    memory_percent: float
    block: int
    memlat: Sequence[str]
    no_memlat: str
    memlat_sizes: tuple[int, int]
    fixedwork: Sequence[str]
    no_fixedwork: str
    fixedwork_ms: int
    quiet: float
    start_limit: float
    memlat_limit: float
    hpcc_limit: float

    def matrix_order(self, place: Place, ranks: int) -> int:
        """Choose the order of HPL's matrix; ValueError if the node has no room."""
        memory_bytes = place.memory_bytes * self.memory_percent / 100
        share = ranks / place.ranks
        n = self.n or order_for_memory(memory_bytes * share, self.block)
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
            "no_memlat": None if self.memlat else self.no_memlat,
            "memlat_min_bytes": self.memlat_sizes[0],
            "memlat_max_bytes": self.memlat_sizes[1],
            "no_fixedwork": None if self.fixedwork else self.no_fixedwork,
            "fixedwork_ms": self.fixedwork_ms,
            "start_time": time.time(),
        }
