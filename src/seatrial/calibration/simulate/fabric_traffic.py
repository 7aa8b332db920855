"""Pair numbers of a fabric with known faults: max-min fair shares over its links.

The model shares no code with `seatrial.fabric.locate` and its routes: it walks the
cables of a plan itself.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from seatrial.fabric.plan import Cable

Values = npt.NDArray[np.float64]

Fault = tuple[Literal["node", "cable", "switch"], str, float]
"""A bad part, its name or the number of its cable, and how much slower it is."""


@dataclass
class ModelFabric:
    """A fabric whose hosts have one port each.

    `adaptive`: messages are spread over all shortest paths, and a flow takes the mean
    time of them; else the path of a flow is fixed.
    `scatter` is that of a number (lognormal). A host's port carries 1, as all others.
    """

    cables: Sequence[Cable]
    seed: int
    faults: Sequence[Fault] = ()
    adaptive: bool = False
    scatter: float = 0.02
    _ports: dict[str, list[tuple[str, int]]] = field(init=False)
    _leaf: dict[str, tuple[str, int]] = field(init=False)
    _nearer: dict[str, dict[str, list[tuple[str, int]]]] = field(init=False)
    table: dict[tuple[str, str], tuple[str, int]] = field(init=False)
    _known: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        ports = defaultdict(list)
        for number, cable in enumerate(self.cables):
            ports[cable.a.device].append((cable.b.device, number))
            ports[cable.b.device].append((cable.a.device, number))
        self._ports = dict(ports)
        hosts = [name for name, own in ports.items() if len(own) == 1]
        self.hosts = sorted(hosts)
        self._leaf = {host: ports[host][0] for host in hosts}
        leafs = {leaf for leaf, _ in self._leaf.values()}
        self._nearer = {leaf: self._towards(leaf) for leaf in leafs}
        self.capacity = self._capacities()
        self.table = {}
        used: dict[tuple[str, int], int] = defaultdict(int)
        for host in self._random.permutation(self.hosts).tolist():
            for switch, paths in self._nearer[self._leaf[host][0]].items():
                # Few hosts of a switch's ports so far, else by chance: as OpenSM does.
                mixed = self._random.permutation(len(paths)).tolist()
                best = min(mixed, key=lambda i: used[switch, paths[i][1]])
                used[switch, paths[best][1]] += 1
                self.table[switch, host] = paths[best]

    def _towards(self, leaf: str) -> dict[str, list[tuple[str, int]]]:
        """Return for each switch the neighbours that are nearer to a leaf."""
        far, queue = {leaf: 0}, deque([leaf])
        while queue:
            here = queue.popleft()
            for there, _ in self._ports[here]:
                if there not in far and len(self._ports[there]) > 1:
                    far[there] = far[here] + 1
                    queue.append(there)
        return {
            switch: [one for one in self._ports[switch] if far.get(one[0], 1e9) < steps]
            for switch, steps in far.items()
            if steps
        }

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

    def path(self, source: str, destination: str) -> list[tuple[int, bool]]:
        """Return the cables from host to host, and if they are gone from a to b."""
        here, number = self._leaf[source]
        steps = [(number, source)]
        goal, last = self._leaf[destination]
        while here != goal:
            there, number = self.table[here, destination]
            steps.append((number, here))
            here = there
        steps.append((last, here))
        return [(n, self.cables[n].a.device == start) for n, start in steps]

    def other_path(self, switch: str, host: str) -> tuple[str, int]:
        """Return any neighbour of a switch that is nearer to a host."""
        paths = self._nearer[self._leaf[host][0]][switch]
        return paths[int(self._random.integers(len(paths)))]

    def rates(self, flows: Sequence[tuple[str, str]]) -> Values:
        """Return the rates of flows at the same time, with scatter.

        They are max-min fair on fixed paths. Adaptive routing balances the load: then
        the slowest link of a path sets the time of its messages.
        """
        noise = np.exp(self.scatter * self._random.standard_normal(len(flows)))
        if self.adaptive:
            times = np.array([self._mean_time(*flow) for flow in flows])
            return np.asarray(noise / times)
        paths = [self.path(*flow) for flow in flows]
        flow = np.repeat(np.arange(len(flows)), [len(path) for path in paths])
        arc = np.array([2 * n + there for path in paths for n, there in path])
        left = np.repeat(self.capacity, 2)
        rate = np.zeros(len(flows))
        active = np.ones(len(flows), dtype=bool)
        while active.any():
            on = active[flow]
            count = np.bincount(arc[on], minlength=left.size)
            with np.errstate(divide="ignore", invalid="ignore"):
                fair = np.where(count > 0, left / count, np.inf)
            least = fair.min()
            full = fair <= least * (1 + 1e-9)
            ended = np.zeros(len(flows), dtype=bool)
            ended[flow[on & full[arc]]] = True
            rate[ended] = least
            left -= least * np.bincount(arc[on & ended[flow]], minlength=left.size)
            active &= ~ended
        return np.asarray(rate * noise)

    def _mean_time(self, source: str, destination: str) -> float:
        """Return the mean time of a message over all shortest paths."""
        (leaf, first), (goal, last) = self._leaf[source], self._leaf[destination]
        ends = max(1 / self.capacity[first], 1 / self.capacity[last])
        times = self._times(leaf, goal)
        return float(np.mean(np.maximum(times, ends)))

    def _times(self, leaf: str, goal: str) -> list[float]:
        """Return the time of each shortest path between leafs, by its worst link."""
        if leaf == goal:
            return [0.0]
        if (known := self._known.get((leaf, goal))) is None:
            known = [
                max(1 / float(self.capacity[number]), rest)
                for there, number in self._nearer[goal][leaf]
                for rest in self._times(there, goal)
            ]
            self._known[leaf, goal] = known
        return known

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
