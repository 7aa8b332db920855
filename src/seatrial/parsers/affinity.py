"""Output of our own `affinity --json`: where ranks and threads may run, and do.

A row of the run, then the rows of each rank: one of the node, from the first rank of
each node, and one of each thread.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from seatrial.parsers.errors import ParseError
from seatrial.parsers.rows import Decoder, decode_object


@dataclass(frozen=True)
class AffinityRun:
    """A run; `ready_s` is the time of day when all ranks were past MPI_Init."""

    type: Literal["run"]
    program: Literal["affinity"]
    version: str
    commit: str
    mpi: str
    np: int
    nodes: int
    time_ms: int
    ready_s: float


@dataclass(frozen=True)
class NodeMap:
    """A node: lists of CPUs of its cores, sockets and NUMA nodes, and its adapters."""

    type: Literal["node"]
    node: str
    cores: str
    sockets: str
    numa: str
    hcas: str

    def verify(self) -> None:
        """Raise ValueError unless cores, sockets and NUMA nodes are lists of CPUs."""
        for text in (self.cores, self.sockets, self.numa):
            groups(text)

    @cached_property
    def core_of(self) -> dict[int, int]:
        """Return the first CPU of the core of each CPU; without cores, itself."""
        return {cpu: min(core) for core in groups(self.cores) for cpu in core}


@dataclass(frozen=True)
class ThreadRow:
    """A thread of a rank; lists of CPUs that rank and thread may use, and saw."""

    type: Literal["thread"]
    node: str
    rank: int
    thread: int
    process: str
    allowed: str
    seen: str
    moves: int
    numa: str
    hcas: str | None

    def verify(self) -> None:
        """Raise ValueError unless the lists are lists of CPUs, and none is empty."""
        for name in ("process", "allowed", "seen"):
            if not cpus(getattr(self, name)):
                raise ValueError(f"{name} is empty")


@dataclass(frozen=True)
class Affinity:
    """A whole run: its nodes by name, and its threads, by rank."""

    run: AffinityRun
    nodes: dict[str, NodeMap]
    threads: tuple[ThreadRow, ...]


_RUN, _NODE, _THREAD = Decoder(AffinityRun), Decoder(NodeMap), Decoder(ThreadRow)


def cpus(text: str) -> frozenset[int]:
    """Convert a list of the kernel, `0-3,8`; ValueError if it is something else."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        low, dash, high = part.partition("-")
        high = high if dash else low
        if not (low.isdecimal() and high.isdecimal()):
            raise ValueError(f"{text!r} is no list of CPUs")
        numbers.update(range(int(low), int(high) + 1))
    return frozenset(numbers)


def groups(text: str) -> list[frozenset[int]]:
    """Convert lists that are divided by blanks."""
    return [cpus(part) for part in text.split()]


def parse_ready(text: str, ranks: int) -> AffinityRun:
    """Read `affinity --ready --json` of some ranks; ParseError if it is not that."""
    output = _parse(text)
    if output.run.np != ranks or output.threads:
        threads = len(output.threads)
        reason = f"{output.run.np} ranks and {threads} threads, expected {ranks} and 0"
        raise ParseError(0, reason)
    return output.run


def parse_affinity(text: str) -> Affinity:
    """Read a whole run.

    Raises ParseError if a row is missing, damaged or out of order: of each node its
    map, of each rank its threads from 0.
    """
    output = _parse(text)
    ranks = {row.rank for row in output.threads}
    if ranks != {*range(output.run.np)}:
        raise ParseError(0, f"{len(ranks)} ranks, expected {output.run.np}")
    nodes = {row.node for row in output.threads}
    if nodes != output.nodes.keys() or len(nodes) != output.run.nodes:
        found = f"{len(nodes)} nodes with {len(output.nodes)} maps"
        raise ParseError(0, f"{found}, expected {output.run.nodes}")
    return output


def _parse(text: str) -> Affinity:
    run: AffinityRun | None = None
    nodes: dict[str, NodeMap] = {}
    threads: list[ThreadRow] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("{"):
            continue
        values = decode_object(number, line)
        kind = values.get("type")
        if (kind == "run") == (run is not None):
            raise ParseError(number, f"type {kind!r}, expected one run, and it first")
        if kind == "run":
            run = _RUN(number, values)
        elif kind == "node":
            row = _NODE(number, values)
            if row.node in nodes:
                raise ParseError(number, f"a second map of {row.node}")
            nodes[row.node] = row
        else:
            threads.append(_THREAD(number, values))
            _verify_order(number, threads)
    if run is None:
        raise ParseError(0, "no output of affinity")
    return Affinity(run, nodes, tuple(threads))


def _verify_order(line: int, threads: list[ThreadRow]) -> None:
    """Raise ParseError unless the last thread follows the one before."""
    row = threads[-1]
    last = threads[-2] if len(threads) > 1 else None
    nexts = [(0, 0)] if last is None else [(last.rank, last.thread + 1)]
    nexts += [] if last is None else [(last.rank + 1, 0)]
    if (row.rank, row.thread) not in nexts:
        rank, thread = nexts[0]
        raise ParseError(
            line,
            f"rank {row.rank} thread {row.thread}, expected rank {rank} thread {thread}"
            + (f" or rank {nexts[1][0]} thread 0" if len(nexts) > 1 else ""),
        )
