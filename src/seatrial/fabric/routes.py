"""Routes of a fabric: which links and switches the path between two hosts crosses.

A route is known from the forwarding tables of the switches, or planned: a shortest
path, whose next switch follows from the destination. With adaptive routing every
shortest path counts, each with its share.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from seatrial.errors import SeatrialError
from seatrial.fabric.records import Link

Numbers = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]

_FAR = 1 << 30
_MOST_HOPS = 64

Forwarding = Mapping[str, Mapping[str, str]]
"""By switch and destination host: the label of the port that leads there."""


@dataclass(frozen=True)
class Crossings:
    """The arcs of paths: path `path[i]` takes arc `arc[i]`, with the chance `share[i]`.

    Paths are numbered in the order of their pairs of hosts. An arc is a link in one
    direction: 2 k from the first end of link k to the second, 2 k + 1 back.
    """

    path: Numbers
    arc: Numbers
    share: Shares

    def kept(self, marks: Marks) -> "Crossings":
        """Return the marked ones."""
        return Crossings(self.path[marks], self.arc[marks], self.share[marks])


@dataclass(frozen=True)
class Graph:
    """The hosts, switches and links of one rail, numbered.

    `links` have both ends as numbers: hosts come before switches. `up_link` is the link
    of each host, `leaf` its switch.
    """

    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    links: tuple[Link, ...]
    ends: Numbers
    up_link: Numbers
    leaf: Numbers

    @classmethod
    def of(cls, hosts: Sequence[str], links: Sequence[Link]) -> "Graph":
        """Number the devices; SeatrialError if a host has no link, or several."""
        there = {*hosts}
        inner = {end.device for link in links for end in (link.a, link.b)} - there
        switches = tuple(sorted(inner))
        number = {name: i for i, name in enumerate((*hosts, *switches))}
        ends = np.array(
            [(number[link.a.device], number[link.b.device]) for link in links],
            dtype=np.int64,
        ).reshape(len(links), 2)
        up_link = np.full(len(hosts), -1)
        leaf = np.full(len(hosts), -1)
        for k, (a, b) in enumerate(ends.tolist()):
            for own, far in ((a, b), (b, a)):
                if own < len(hosts):
                    if up_link[own] >= 0 or far < len(hosts):
                        raise SeatrialError(
                            f"{hosts[own]}: expected one link to a switch on a rail"
                        )
                    up_link[own], leaf[own] = k, far - len(hosts)
        if (up_link < 0).any():
            lonely = hosts[int(np.argmin(up_link))]
            raise SeatrialError(f"{lonely}: no link to a switch")
        return cls(tuple(hosts), switches, tuple(links), ends, up_link, leaf)

    def arcs(self) -> list[list[tuple[int, int]]]:
        """Return for each switch its arcs to other switches, and where they lead."""
        count = len(self.hosts)
        leaving: list[list[tuple[int, int]]] = [[] for _ in self.switches]
        for k, (a, b) in enumerate(self.ends.tolist()):
            if a >= count and b >= count:
                leaving[a - count].append((2 * k, b - count))
                leaving[b - count].append((2 * k + 1, a - count))
        return leaving

    def first_arcs(self, hosts: Numbers) -> Numbers:
        """Return the arcs from hosts to their leafs."""
        links = self.up_link[hosts]
        return np.asarray(2 * links + (self.ends[links, 0] != hosts))

    def last_arcs(self, hosts: Numbers) -> Numbers:
        """Return the arcs from the leafs of hosts to them."""
        return self.first_arcs(hosts) ^ 1


@dataclass
class Routes:
    """The paths of a graph; `tables` has an arc for each switch and host, -1: none.

    `shortest` has for each switch and destination leaf the arcs of all shortest paths.
    `adaptive`: switches choose among them; then `tables` are not used.
    """

    graph: Graph
    tables: Numbers
    adaptive: bool = False
    shortest: Mapping[tuple[int, int], Sequence[tuple[int, int]]] = field(
        default_factory=dict
    )
    _spread: dict[tuple[int, int], tuple[Numbers, Shares]] = field(
        default_factory=dict, init=False
    )

    @classmethod
    def planned(cls, graph: Graph, *, adaptive: bool = False) -> "Routes":
        """Plan shortest paths: hosts of a leaf go over its ports in turn."""
        shortest = _shortest(graph)
        tables = np.full((len(graph.switches), len(graph.hosts)), -1)
        by_leaf: dict[int, list[int]] = defaultdict(list)
        for host, leaf in enumerate(graph.leaf.tolist()):
            by_leaf[leaf].append(host)
        for (switch, leaf), paths in shortest.items():
            for place, host in enumerate(by_leaf.get(leaf, ())):
                tables[switch, host] = paths[place % len(paths)][0]
        return cls(graph, tables, adaptive, shortest)

    @classmethod
    def forwarded(cls, graph: Graph, forwarding: Forwarding) -> "Routes":
        """Take the forwarding tables that were read from the switches."""
        count, host = len(graph.hosts), {n: i for i, n in enumerate(graph.hosts)}
        port: dict[tuple[str, str], int] = {}
        for k, link in enumerate(graph.links):
            port[link.a.device, link.a.port] = 2 * k
            port[link.b.device, link.b.port] = 2 * k + 1
        tables = np.full((len(graph.switches), count), -1)
        for number, name in enumerate(graph.switches):
            for destination, label in forwarding.get(name, {}).items():
                arc = port.get((name, label))
                if destination in host and arc is not None:
                    tables[number, host[destination]] = arc
        return cls(graph, tables)

    def crossings(self, sources: Numbers, destinations: Numbers) -> Crossings:
        """Return what the paths from sources to destinations (host numbers) cross.

        If the tables lack a step, a path has the arcs before it, and the last one.
        """
        paths = np.arange(sources.size)
        first = self.graph.first_arcs(sources)
        last = self.graph.last_arcs(destinations)
        parts = [(paths, arcs, np.ones(arcs.size)) for arcs in (first, last)]
        inner = self._spread_paths if self.adaptive else self._walked
        parts += inner(sources, destinations)
        path, arc, share = map(np.concatenate, zip(*parts, strict=True))
        return Crossings(path, arc, share)

    def _walked(
        self, sources: Numbers, destinations: Numbers
    ) -> list[tuple[Numbers, Numbers, Shares]]:
        graph, count = self.graph, len(self.graph.hosts)
        switch, paths = graph.leaf[sources].copy(), np.arange(sources.size)
        goal, parts = graph.leaf[destinations], []
        for _ in range(_MOST_HOPS):
            left = paths[switch[paths] != goal[paths]]
            arcs = self.tables[switch[left], destinations[left]]
            paths, arcs = left[arcs >= 0], arcs[arcs >= 0]
            if not paths.size:
                break
            parts.append((paths, arcs, np.ones(arcs.size)))
            switch[paths] = graph.ends[arcs // 2, 1 - arcs % 2] - count
            paths = paths[switch[paths] >= 0]
        return parts

    def _spread_paths(
        self, sources: Numbers, destinations: Numbers
    ) -> list[tuple[Numbers, Numbers, Shares]]:
        leaf, count = self.graph.leaf, len(self.graph.switches)
        key = leaf[sources] * count + leaf[destinations]
        kinds, kind = np.unique(key, return_inverse=True)
        spreads = [self._spread_of(*divmod(one, count)) for one in kinds.tolist()]
        sizes = np.array([arcs.size for arcs, _ in spreads])
        arcs, shares = map(np.concatenate, zip(*spreads, strict=True))
        # Path i takes the arcs from place start[i] of its kind on.
        size, start = sizes[kind], (np.cumsum(sizes) - sizes)[kind]
        place = np.arange(size.sum()) + np.repeat(
            start - (np.cumsum(size) - size), size
        )
        return [(np.repeat(np.arange(sources.size), size), arcs[place], shares[place])]

    def _spread_of(self, source: int, destination: int) -> tuple[Numbers, Shares]:
        """Return the arcs of all shortest paths between leafs, with their chances."""
        if (known := self._spread.get((source, destination))) is not None:
            return known
        chances: dict[int, float] = {}
        at = {source: 1.0}
        while at and set(at) != {destination}:
            following: dict[int, float] = defaultdict(float)
            for switch, chance in at.items():
                if switch == destination:
                    continue
                paths = self.shortest.get((switch, destination), ())
                for arc, far in paths:
                    chances[arc] = chances.get(arc, 0.0) + chance / len(paths)
                    following[far] += chance / len(paths)
            at = following
        answer = np.array([*chances], np.int64), np.array([*chances.values()])
        self._spread[source, destination] = answer
        return answer


def _shortest(graph: Graph) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return by switch and destination leaf the arcs that lead nearer to it."""
    leaving = graph.arcs()
    shortest: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for leaf in sorted({*graph.leaf.tolist()}):
        distance = [_FAR] * len(leaving)
        distance[leaf], level = 0, [leaf]
        while level:
            further = []
            for switch in level:
                for _, far in leaving[switch]:
                    if distance[far] == _FAR:
                        distance[far] = distance[switch] + 1
                        further.append(far)
            level = further
        for switch, arcs in enumerate(leaving):
            near = [one for one in arcs if distance[one[1]] == distance[switch] - 1]
            if near:
                shortest[switch, leaf] = near
    return shortest
