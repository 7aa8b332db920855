"""Pair numbers of a fabric with known faults: max-min fair shares over its links.

The model shares no code with `seatrial.fabric.locate` and its routes: it walks the
cables of a plan itself.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Literal

import numpy as np
import numpy.typing as npt

from seatrial.fabric.plan import Cable

Values = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

Fault = tuple[Literal["node", "cable", "switch"], str, float]
"""A bad part, its name or the number of its cable, and how much slower it is."""


class Wiring:
    """The cables of a plan, walked once: devices are numbered, hosts come first.

    A way is a cable with its direction: 2 n from the first end of cable n, 2 n + 1
    back. `first` is the way of a host to its leaf, `head` the device to which a way
    leads.
    """

    def __init__(self, cables: Sequence[Cable]) -> None:
        ports = defaultdict(list)
        for cable in cables:
            ports[cable.a.device].append(cable)
            ports[cable.b.device].append(cable)
        self.hosts = sorted(name for name, own in ports.items() if len(own) == 1)
        self.switches = [name for name, own in ports.items() if len(own) > 1]
        self.number = {name: i for i, name in enumerate(self.hosts + self.switches)}
        ends = [(self.number[c.a.device], self.number[c.b.device]) for c in cables]
        self.head: Integers = np.array(ends)[:, ::-1].reshape(-1)
        self._ways: list[list[int]] = [[] for _ in self.number]
        for number, (a, b) in enumerate(ends):
            self._ways[a].append(2 * number)
            self._ways[b].append(2 * number + 1)
        self.first: Integers = np.array(
            [self._ways[host][0] for host, _ in enumerate(self.hosts)]
        )
        self.leaf: Integers = self.head[self.first]
        self.nearer = {leaf: self._towards(leaf) for leaf in {*self.leaf.tolist()}}
        self.choices = {leaf: [*_alike(nearer)] for leaf, nearer in self.nearer.items()}
        self._paths: dict[tuple[int, int], list[list[int]]] = {}

    def _towards(self, leaf: int) -> dict[int, list[int]]:
        """Return for each switch the ways that lead nearer to a leaf."""
        far, queue = {leaf: 0}, deque([leaf])
        head = self.head.tolist()
        while queue:
            here = queue.popleft()
            for way in self._ways[here]:
                there = head[way]
                if there not in far and there >= len(self.hosts):
                    far[there] = far[here] + 1
                    queue.append(there)
        return {
            switch: [
                way for way in self._ways[switch] if far.get(head[way], steps) < steps
            ]
            for switch, steps in far.items()
            if steps
        }

    def paths(self, leaf: int, goal: int) -> list[list[int]]:
        """Return the cables of all shortest paths between two switches."""
        if leaf == goal:
            return [[]]
        if (known := self._paths.get((leaf, goal))) is None:
            known = [
                [way // 2, *rest]
                for way in self.nearer[goal][leaf]
                for rest in self.paths(int(self.head[way]), goal)
            ]
            self._paths[leaf, goal] = known
        return known

    @cached_property
    def spread(self) -> "Spread":
        """The shortest paths between all leafs."""
        return Spread(self)


class Spread:
    """The shortest paths between leafs, in tables of as many paths of a length.

    `tables` have cables: pairs of leafs x paths x hops. A pair of leafs, by their
    places in `leafs`, is in table `table[a, b]`, row `row[a, b]`.
    """

    def __init__(self, wiring: Wiring) -> None:
        leafs = sorted({*wiring.leaf.tolist()})
        self.place = np.full(len(wiring.number), -1)
        self.place[leafs] = np.arange(len(leafs))
        self.table = np.zeros((len(leafs), len(leafs)), dtype=np.int64)
        self.row = np.zeros_like(self.table)
        rows: dict[tuple[int, int], list[list[list[int]]]] = {}
        for a, leaf in enumerate(leafs):
            for b, goal in enumerate(leafs):
                paths = wiring.paths(leaf, goal)
                own = rows.setdefault((len(paths), len(paths[0])), [])
                self.table[a, b] = [*rows].index((len(paths), len(paths[0])))
                self.row[a, b] = len(own)
                own.append(paths)
        self.tables = [np.array(own, dtype=np.int64) for own in rows.values()]


def _alike(nearer: dict[int, list[int]]) -> Iterator[tuple[Integers, Integers]]:
    """Yield switches, one after the other, with the same number of ways, and these."""
    for _, group in groupby(nearer.items(), key=lambda item: len(item[1])):
        switches, ways = zip(*group, strict=True)
        yield np.array(switches), np.array(ways)


@lru_cache(maxsize=2)
def wiring(cables: tuple[Cable, ...]) -> Wiring:
    """Walk the cables of a plan; the last plans are kept."""
    return Wiring(cables)


@dataclass
class ModelFabric:
    """A fabric whose hosts have one port each.

    `scatter` is that of a number (lognormal). A host's port carries 1, as all others.
    """

    cables: Sequence[Cable]
    seed: int
    faults: Sequence[Fault] = ()
    scatter: float = 0.02

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._wiring = wiring(tuple(self.cables))
        self.hosts = self._wiring.hosts
        self.capacity = self._capacities()
        self._order = self._random.permutation(len(self.hosts)).tolist()
        self._table = self._tables()

    def _tables(self) -> Integers:
        """Draw the way of each device to each host.

        Few hosts of a switch's ports so far, else by chance: as OpenSM does.
        """
        own = self._wiring
        table = np.full((len(own.number), len(own.hosts)), -1)
        used = np.zeros(own.head.size, dtype=np.int64)
        for host in self._order:
            for switches, ways in own.choices[int(own.leaf[host])]:
                mixed = self._random.permuted(ways, axis=1)
                best = np.argmin(used[mixed], axis=1)
                taken = mixed[np.arange(best.size), best]
                used[taken] += 1
                table[switches, host] = taken
        return table

    def _capacities(self) -> Values:
        capacity = np.ones(len(self.cables))
        for kind, name, factor in self.faults:
            for number, cable in enumerate(self.cables):
                ends = {cable.a.device, cable.b.device}
                if (kind == "cable" and cable.cable == name) or (
                    kind != "cable" and name in ends
                ):
                    capacity[number] /= factor
        return capacity

    def entries(self) -> Iterator[tuple[str, str, int]]:
        """Yield all entries of the tables: switch, host, and the cable there."""
        own = self._wiring
        names = own.hosts + own.switches
        for host in self._order:
            switches = [*own.nearer[int(own.leaf[host])]]
            cables = (self._table[switches, host] // 2).tolist()
            for switch, cable in zip(switches, cables, strict=True):
                yield names[switch], own.hosts[host], cable

    def ways(self, switches: Sequence[str], hosts: Sequence[str]) -> Integers:
        """Return the way of each switch to each host; -1: the host is on its leaf."""
        number = self._wiring.number
        table = self._table[[number[name] for name in switches]]
        return table[:, [number[name] for name in hosts]]

    def other_way(self, switch: str, host: str) -> int:
        """Return any way of a switch that leads nearer to a host."""
        own = self._wiring
        leaf = int(own.leaf[own.number[host]])
        ways = own.nearer[leaf][own.number[switch]]
        return ways[int(self._random.integers(len(ways)))]

    def rates(
        self, flows: Sequence[tuple[str, str]], *, adaptive: bool = False
    ) -> Values:
        """Return the rates of flows at the same time, with scatter.

        They are max-min fair on fixed paths. `adaptive` spreads messages over all
        shortest paths and balances the load: a flow takes the mean time of them, and
        the slowest link of a path sets the time of its messages.
        """
        noise = np.exp(self.scatter * self._random.standard_normal(len(flows)))
        number = self._wiring.number
        ends = np.array([(number[a], number[b]) for a, b in flows]).reshape(-1, 2)
        if adaptive:
            return np.asarray(noise / self._mean_times(ends[:, 0], ends[:, 1]))
        flow, way = self._walked(ends[:, 0], ends[:, 1])
        left = np.repeat(self.capacity, 2)
        rate = np.zeros(len(flows))
        active = np.ones(len(flows), dtype=bool)
        while active.any():
            on = active[flow]
            count = np.bincount(way[on], minlength=left.size)
            with np.errstate(divide="ignore", invalid="ignore"):
                fair = np.where(count > 0, left / count, np.inf)
            least = fair.min()
            full = fair <= least * (1 + 1e-9)
            ended = np.zeros(len(flows), dtype=bool)
            ended[flow[on & full[way]]] = True
            rate[ended] = least
            left -= least * np.bincount(way[on & ended[flow]], minlength=left.size)
            active &= ~ended
        return np.asarray(rate * noise)

    def _walked(self, source: Integers, goal: Integers) -> tuple[Integers, Integers]:
        """Return flows and ways: each flow with each way that it takes."""
        own = self._wiring
        flow, way = np.arange(source.size), own.first[source]
        flows, ways = [flow], [way]
        while flow.size:
            here = own.head[way]
            at_leaf = here == own.leaf[goal[flow]]
            way = np.where(
                at_leaf, own.first[goal[flow]] ^ 1, self._table[here, goal[flow]]
            )
            flows.append(flow)
            ways.append(way)
            flow, way = flow[~at_leaf], way[~at_leaf]
        return np.concatenate(flows), np.concatenate(ways)

    @cached_property
    def _times(self) -> list[Values]:
        """The time of each shortest path between leafs, by its worst link."""
        time = 1 / self.capacity
        tables = self._wiring.spread.tables
        return [time[paths].max(axis=2, initial=0.0) for paths in tables]

    def _mean_times(self, source: Integers, goal: Integers) -> Values:
        """Return the mean time of a flow's messages over all shortest paths."""
        own, spread, time = self._wiring, self._wiring.spread, 1 / self.capacity
        ends = np.maximum(time[own.first[source] // 2], time[own.first[goal] // 2])
        leafs = spread.place[own.leaf[source]], spread.place[own.leaf[goal]]
        table, row = spread.table[leafs], spread.row[leafs]
        mean = np.empty(ends.size)
        for number, times in enumerate(self._times):
            flows = np.flatnonzero(table == number)
            slowest = np.maximum(times[row[flows]], ends[flows, None])
            mean[flows] = slowest.mean(axis=1)
        return mean

    def errors(self, usual: float = 0.3, bad: float = 30.0) -> Values:
        """Return symbol errors by cable; more of bad cables, and those of bad nodes."""
        mean = np.full(len(self.cables), usual)
        for kind, name, _ in self.faults:
            for number, cable in enumerate(self.cables):
                ends = {cable.a.device, cable.b.device}
                if (kind == "cable" and cable.cable == name) or (
                    kind == "node" and name in ends
                ):
                    mean[number] = bad
        return self._random.poisson(mean).astype(float)
