"""Cores of a node that Slurm has given to the job, for its ranks."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seatrial.errors import SeatrialError

MOST_OF_FREE = 0.9
"""The part of a node's free memory that HPL may take at most."""

_BIND = (
    'shift "${{OMPI_COMM_WORLD_LOCAL_RANK:-${{MPI_LOCALRANKID:-$SLURM_LOCALID}}}}"; '
    'exec taskset -c "$1" {program}'
)
"""mpirun's own rank within the node comes first: its daemons have one of Slurm's."""
_CPUS = re.compile(r"(\d+)(?:\(x(\d+)\))?")


@dataclass(frozen=True)
class Place:
    """A node that answers, with the CPUs to bind to: one for each core, by socket.

    `unbound` is the reason if ranks cannot be bound and sockets not be distinguished;
    then only `ranks` counts.
    """

    node: str
    sockets: tuple[tuple[int, ...], ...]
    ranks: int
    unbound: str | None
    cpus: int
    cache_bytes: int
    memory_bytes: int
    available_bytes: int
    start_time: float

    @property
    def cores(self) -> tuple[int, ...]:
        """Return the CPUs of all cores."""
        return tuple(cpu for cpus in self.sockets for cpu in cpus)

    @property
    def why_no_sockets(self) -> str | None:
        """Return the reason not to measure single sockets; None if there is none."""
        if self.unbound:
            return f"ranks cannot be bound: {self.unbound}"
        return "it has one socket" if len(self.sockets) == 1 else None

    def require_room(self, n: int) -> None:
        """Raise ValueError if a matrix of order n does not fit into free memory."""
        wanted, free = 8 * n**2, self.available_bytes
        if wanted > MOST_OF_FREE * free:
            raise ValueError(
                f"N = {n} takes {wanted / 2**30:.1f} GiB of memory, of "
                f"{self.memory_bytes / 2**30:.1f} GiB {free / 2**30:.1f} GiB are free"
            )

    def row(self) -> dict[str, Any]:
        """Return its row of the file."""
        row = {**asdict(self), "sockets": len(self.sockets), "cores": len(self.cores)}
        unbound = row.pop("unbound")
        return {"type": "node", **row, "is_bound": unbound is None}


def place_of(node: str, row: dict[str, Any], given: int) -> Place:
    """Build a place from a row of `sensors` and the CPUs that Slurm has given.

    Cores that the job may not use do not count. Raises KeyError, TypeError or
    ValueError if the row of `sensors` is damaged.
    """
    allowed = {*row["allowed"]}
    cores = sum(map(len, row["sockets"]))
    room = max(1, given // max(1, int(row["cpus"]) // cores))
    sockets = [[cpu for cpu in cpus if cpu in allowed] for cpus in row["sockets"]]
    ranks = sum(map(len, sockets))
    unbound = None
    if len(allowed) < given or ranks > room:
        unbound = f"Slurm gives {given} CPUs, the job may use {len(allowed)}"
        sockets, ranks = row["sockets"], min(room, cores)
    return Place(
        node=node,
        sockets=tuple(tuple(map(int, cpus)) for cpus in sockets if cpus),
        ranks=ranks,
        unbound=unbound,
        cpus=int(row["cpus"]),
        cache_bytes=int(row["cache_bytes"]),
        memory_bytes=int(row["memory_bytes"]),
        available_bytes=int(row["available_bytes"]),
        start_time=float(row["start_time"]),
    )


def bound(program: Sequence[str], cpus: Sequence[int]) -> tuple[str, ...]:
    """Return the command that starts rank i of a node on the i-th of these CPUs.

    Slurm's own binding is not used: it depends on the plugins of a site.
    """
    script = _BIND.format(program=shlex.join(program))
    return ("sh", "-c", script, "sh", *map(str, cpus))


def cpus_given(text: str, nodes: int) -> list[int]:
    """Convert SLURM_JOB_CPUS_PER_NODE, `72(x2),36`, to a number for each node.

    Raises SeatrialError if it is something else.
    """
    counts: list[int] = []
    for part in text.split(","):
        if match := _CPUS.fullmatch(part.strip()):
            counts += [int(match[1])] * int(match[2] or 1)
    if len(counts) != nodes:
        raise SeatrialError(
            f"SLURM_JOB_CPUS_PER_NODE is {text!r}, expected the CPUs of {nodes} nodes"
        )
    return counts
