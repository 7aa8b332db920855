"""Compare where ranks and threads ran with the binding that was asked for."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from seatrial.parsers.affinity import Affinity, NodeMap, ThreadRow, cpus, groups


@dataclass(frozen=True)
class Shape:
    """Ranks of each node, threads of each rank, and whether they were bound.

    A bound rank has as many cores as threads, and each thread a core of its own.
    """

    ranks: int
    threads: int
    is_bound: bool


@dataclass(frozen=True)
class Violation:
    """A thread that is not where it should be; `thread` None is the whole rank."""

    node: str
    rank: int
    thread: int | None
    expected: str
    seen: str

    def __str__(self) -> str:
        where = "" if self.thread is None else f" thread {self.thread}"
        at = f"{self.node}: rank {self.rank}{where}"
        return f"{at}: expected {self.expected}, seen {self.seen}"


@dataclass(frozen=True)
class _Rank:
    """The threads of a rank, and the CPUs and cores that it may use."""

    rows: tuple[ThreadRow, ...]
    node: NodeMap

    @property
    def process(self) -> str:
        return self.rows[0].process

    def cores(self, text: str) -> frozenset[int]:
        """Return the cores, by their first CPUs, of a list of CPUs."""
        return frozenset(self.node.core_of.get(cpu, cpu) for cpu in cpus(text))

    def fault(self, expected: str, row: ThreadRow | None, seen: str) -> Violation:
        """Return a violation of the rank, or of one of its threads."""
        thread = None if row is None else row.thread
        return Violation(self.node.node, self.rows[0].rank, thread, expected, seen)


def violations(output: Affinity, shape: Shape) -> list[Violation]:
    """Return all violations of a run, by node and rank.

    - Each node has the ranks, and each rank the threads, of the shape.
    - Each thread ran only on CPUs that it may use.

    If ranks are bound, also:

    - A rank may use whole cores, one for each of its threads, which no other has.
    - They are of one NUMA node if they fit, or else of one socket.
    - Each thread may use CPUs of one core, which no other thread has.
    """
    of_rank: dict[int, list[ThreadRow]] = defaultdict(list)
    for row in output.threads:
        of_rank[row.rank].append(row)
    of_node: dict[str, list[_Rank]] = {name: [] for name in output.nodes}
    for rows in of_rank.values():
        node = rows[0].node
        of_node[node].append(_Rank(tuple(rows), output.nodes[node]))
    return [fault for ranks in of_node.values() for fault in _of_node(ranks, shape)]


def _of_node(ranks: list[_Rank], shape: Shape) -> Iterator[Violation]:
    if len(ranks) != shape.ranks:
        for rank in ranks:
            yield rank.fault(f"{shape.ranks} ranks on the node", None, f"{len(ranks)}")
    owner: dict[int, _Rank] = {}
    for rank in ranks:
        yield from _of_threads(rank, shape)
        if not shape.is_bound:
            continue
        yield from _of_rank(rank, shape)
        shared = [core for core in sorted(rank.cores(rank.process)) if core in owner]
        if shared:
            other = owner[shared[0]].rows[0].rank
            expected = f"no core of rank {other} (it has that of CPU {shared[0]})"
            yield rank.fault(expected, None, f"CPUs {rank.process}")
        owner |= {core: rank for core in rank.cores(rank.process) if core not in owner}


def _of_threads(rank: _Rank, shape: Shape) -> Iterator[Violation]:
    if len(rank.rows) != shape.threads:
        yield rank.fault(f"{shape.threads} threads", None, f"{len(rank.rows)}")
    owner: dict[int, int] = {}
    for row in rank.rows:
        if not cpus(row.seen) <= cpus(row.allowed):
            yield rank.fault(f"CPUs {row.allowed}", row, f"CPUs {row.seen}")
        if not shape.is_bound:
            continue
        allowed = f"CPUs {row.allowed}"
        if not cpus(row.allowed) <= cpus(row.process):
            yield rank.fault(f"CPUs of its rank, {row.process}", row, allowed)
        cores = rank.cores(row.allowed)
        if len(cores) > 1:
            yield rank.fault(f"one core of CPUs {row.process}", row, allowed)
        elif (core := min(cores)) in owner:
            expected = f"no core of another thread (thread {owner[core]})"
            yield rank.fault(expected, row, allowed)
        else:
            owner[core] = row.thread


def _of_rank(rank: _Rank, shape: Shape) -> Iterator[Violation]:
    """Check number, completeness and domain of the cores of a rank."""
    process, cores = cpus(rank.process), rank.cores(rank.process)
    seen = f"CPUs {rank.process}"
    if len(cores) != shape.threads:
        word = "core" if shape.threads == 1 else "cores"
        yield rank.fault(f"{shape.threads} {word}", None, seen)
        return
    for name, text in (("NUMA node", rank.node.numa), ("socket", rank.node.sockets)):
        domains = groups(text)
        sizes = [len({rank.node.core_of.get(c, c) for c in d}) for d in domains]
        if sizes and shape.threads <= min(sizes):
            if not any(process <= domain for domain in domains):
                yield rank.fault(f"CPUs of one {name} of {text}", None, seen)
            return
