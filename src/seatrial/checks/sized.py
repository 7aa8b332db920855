# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Checks whose problem can take its size from cores and memory of the class."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import reframe as rfm
from reframe.core.builtins import run_after, variable
from reframe.core.exceptions import ReframeError

from seatrial.checks.base import cores_of

LARGEST_FRACTION = 0.8
_START_S = 300
_TIMES_TYPICAL = 4
"""Typical times are those of common processors: a slow one has a limit, too."""


@dataclass(frozen=True)
class Room:
    """Nodes and ranks per node of a case, and bytes of each node for its problem."""

    nodes: int
    ppn: int
    node_bytes: float

    @property
    def ranks(self) -> int:
        """Return the number of ranks."""
        return self.nodes * self.ppn


class SizedCheck(rfm.RegressionTestPlugin):
    """A check with a fixed size, or one by cores and memory of the class of nodes.

    The size is chosen once, before a recording of the case is looked for: it is one of
    the parameters of the case. Nodes that share one machine (a demonstration) keep the
    fixed size.
    """

    memory_fraction = variable(float, value=0.0)
    """Share of the nodes' memory for the problem, at most 0.8; 0: the fixed size."""

    @abstractmethod
    def fill(self, room: Room) -> float:
        """Choose the largest size that fits; return the typical seconds of the case."""

    @run_after("setup")
    def take_recording(self) -> None:
        """Choose the size, and a time limit with it, before the recording."""
        if self.current_partition.extras.get("demonstration"):
            self.memory_fraction = 0.0
        if self.memory_fraction:
            seconds = self.fill(self._room())
            self.time_limit = self.time_limit or time_limit_s(seconds)
        super().take_recording()

    def _room(self) -> Room:
        """Return the nodes, ranks and memory; ReframeError if memory is unknown."""
        if not 0 < self.memory_fraction <= LARGEST_FRACTION:
            raise ReframeError(
                f"memory_fraction is {self.memory_fraction}, expected a number of at "
                f"most {LARGEST_FRACTION}: MPI and the system need memory, too"
            )
        partition = self.current_partition
        mib = partition.extras.get("memory_mib")
        if not mib:
            raise ReframeError(
                f"partition {partition.fullname} names no memory_mib in its extras, "
                "the memory of a node: set a fixed size in place of memory_fraction"
            )
        delivered = len(partition.extras.get("nodes", []))
        usable = self.usable_nodes.get(partition.name, delivered)
        return Room(
            nodes=self.num_nodes or usable,
            ppn=self.ppn or cores_of(partition),
            node_bytes=self.memory_fraction * mib * (1 << 20),
        )


def time_limit_s(typical_s: float) -> float:
    """Return the limit of a case: a start, and four times its typical time."""
    return _START_S + _TIMES_TYPICAL * math.ceil(typical_s)


def check_matrix(n: int, block: int) -> None:
    """Raise ReframeError unless order and block of a matrix of HPL are positive."""
    if min(n, block) < 1:
        raise ReframeError(
            f"n is {n}, block is {block}: expected 1 or more. Set memory_fraction for "
            "an order by memory."
        )
