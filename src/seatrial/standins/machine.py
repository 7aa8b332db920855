"""The model machine: what a truth says of nodes, pairs and many nodes at once.

Times are in us, rates in 10^6 B/s, unless a name says otherwise. Numbers are without
noise; whoever prints one multiplies it by `noise`.
"""

import math
import random

from seatrial.standins.hostlist import expand

_MASK = (1 << 64) - 1
_UNIFORM_WIDTH = math.sqrt(12)
_NETWORK = ("latency", "bandwidth")
_KINDS = {
    kind: number * 0xD1B54A32D192ED03
    for number, kind in enumerate((*_NETWORK, "memory", "compute", "pair", "noise"))
}

Slowness = tuple[float, float]
"""Factors by which latency is longer, and bandwidth is smaller."""


class UnknownNodeError(Exception):
    """A node that the truth does not name."""


class Machine:
    """A machine of a truth, as `truth.Truth` with only builtin types, for one step.

    `key` names the step, and what runs in it: noise is that of a step.
    """

    def __init__(self, truth: dict, key: str) -> None:
        self.numbers: dict[str, float] = truth["machine"]
        self.time_scale: float = truth["time_scale"]
        self.clock_khz: int = max(truth["clocks_khz"])
        self._mixed_seed: int = truth["seed"] * 0x9E3779B97F4A7C15
        self._names = truth["nodes"]
        self._index = {name: i for i, name in enumerate(expand(truth["nodes"]))}
        self._leaf_nodes: int = truth["leaf_nodes"]
        self._noise = truth["noise_percent"] / 100
        self._node_spread = truth["node_spread_percent"] / 100
        self._pair_spread = truth["pair_spread_percent"] / 100
        faults = truth["faults"]
        self._slow_nodes = faults["slow_nodes"]
        self._slow_links = {
            frozenset(slow["nodes"]): _of_network(slow) for slow in faults["slow_links"]
        }
        self._slow_leaves = {
            slow["leaf"]: _of_network(slow) for slow in faults["slow_leaves"]
        }
        self._random = random.Random(f"{truth['seed']} {key}")
        self._of_node: dict[tuple[str, str], float] = {}
        self._of_ports: dict[str, tuple[int, int, float, float]] = {}

    def noise(self) -> float:
        """Return the next factor of noise of this step, about 1."""
        return math.exp(self._noise * self._random.gauss(0, 1))

    def jitter(self, most: float) -> float:
        """Return a number from 0 to `most`."""
        return most * self._random.random()

    def slowness(self, node: str, area: str) -> float:
        """Return how much slower than the machine's number a node is, for good."""
        factor = self._of_node.get((node, area))
        if factor is None:
            shift = self._shift(area, self._at(node), 0)
            factor = math.exp(self._node_spread * shift)
            for slow in self._slow_nodes:
                if slow["node"] == node and area in _areas(slow["area"]):
                    factor *= slow["factor"]
            self._of_node[node, area] = factor
        return factor

    def pair(self, source: str, destination: str) -> tuple[float, float]:
        """Return half a round trip of 8 B, and the bandwidth of one direction.

        The worse end of a pair counts, its leaves and its link come on top.
        """
        first, leaf, latency, bandwidth = self._port(source)
        second, other_leaf, other_latency, other_bandwidth = self._port(destination)
        latency = max(latency, other_latency)
        bandwidth = max(bandwidth, other_bandwidth)
        numbers = self.numbers
        if first == second:
            rate = numbers["shared_bandwidth_mb_per_s"] / bandwidth
            return numbers["shared_latency_us"] * latency, rate
        low, high = (first, second) if first < second else (second, first)
        factor = math.exp(self._pair_spread * self._shift("pair", low, high + 1))
        slows = []
        if self._slow_links:
            slows.append(self._slow_links.get(frozenset((source, destination))))
        base = numbers["latency_us"]
        if leaf != other_leaf:
            base += numbers["hop_us"]
            slows += [self._slow_leaves.get(leaf), self._slow_leaves.get(other_leaf)]
        for slow in filter(None, slows):
            latency *= slow[0]
            bandwidth *= slow[1]
        rate = numbers["bandwidth_mb_per_s"] / (bandwidth * factor)
        return base * latency * factor, rate

    def half_trip(self, source: str, destination: str, size: int) -> float:
        """Return half a round trip of a message of `size` bytes."""
        latency, bandwidth = self.pair(source, destination)
        return latency + size / bandwidth

    def window_rate(self, source: str, destination: str, size: int) -> float:
        """Return the messages per us of one pair of ranks that sends windows."""
        gap = self.numbers["gap_us"]
        slow = max(self._port(source)[2], self._port(destination)[2])
        return 1 / (gap * slow + size / self.pair(source, destination)[1])

    def worst(self, nodes: list[str], area: str) -> float:
        """Return the slowness of the network for nodes that wait for each other."""
        at = _NETWORK.index(area)
        worst = max(self.slowness(node, area) for node in nodes)
        there = {*nodes}
        slows = [slow for link, slow in self._slow_links.items() if link <= there]
        leaves = {self._port(node)[1] for node in nodes}
        if len(leaves) > 1:
            slows += [s for leaf, s in self._slow_leaves.items() if leaf in leaves]
        return max([worst, *(slow[at] for slow in slows)])

    def rate(self, name: str, area: str, nodes: list[str]) -> float:
        """Return a rate of all `nodes` together, with noise: the slowest sets it."""
        slowest = max(self.slowness(node, area) for node in nodes)
        return len(nodes) * self.numbers[name] / slowest * self.noise()

    def _at(self, node: str) -> int:
        try:
            return self._index[node]
        except KeyError:
            names = self._names
            raise UnknownNodeError(f"{node} is none of the nodes {names}") from None

    def _port(self, node: str) -> tuple[int, int, float, float]:
        """Return a node's number and leaf, and the slowness of its port."""
        port = self._of_ports.get(node)
        if port is None:
            at = self._at(node)
            slow = (self.slowness(node, "latency"), self.slowness(node, "bandwidth"))
            port = self._of_ports[node] = (at, at // self._leaf_nodes, *slow)
        return port

    def _shift(self, kind: str, first: int, second: int) -> float:
        """Return a lasting deviation with mean 0 and variance 1, at most 1.7.

        It is the output of a mixer of bits (SplitMix64) over seed, kind and numbers.
        """
        state = self._mixed_seed + _KINDS[kind] + first * 0x8CB92BA72F3D8DD7
        state = (state + second * 0xAAF6D3C4E0B7A1F5) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((state ^ (state >> 31)) / 2**64 - 0.5) * _UNIFORM_WIDTH


def _areas(area: str) -> tuple[str, ...]:
    """Return the single areas of a fault's area."""
    if area == "all":
        return (*_NETWORK, "memory", "compute")
    return _NETWORK if area == "network" else (area,)


def _of_network(slow: dict) -> Slowness:
    """Return the slowness of latency and bandwidth that a fault means."""
    areas, factor = _areas(slow["area"]), float(slow["factor"])
    return (
        factor if "latency" in areas else 1.0,
        factor if "bandwidth" in areas else 1.0,
    )
