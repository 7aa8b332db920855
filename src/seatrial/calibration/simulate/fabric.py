"""A model machine with a fabric: leafs, up-links, and routes by destination.

It shares no code with the sweep and the judge. Bandwidth and latency are relative to
those of a sound pair; bandwidth is that of the worst part on the way.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Fabric:
    """A two-level tree of `nodes`, `per_leaf` on each leaf, with `uplinks` cables each.

    Destination d is reached by cable d mod `uplinks` of the source's leaf, and from the
    spine by the same cable of its own. `bad_nodes` have the share `node_level` of the
    bandwidth in both directions, `bad_links` cables the share `link_level`. Numbers
    scatter by `noise`; nodes and pairs differ for ever by `spread`, jobs by `job`; all
    are standard deviations of logarithms.
    """

    nodes: int = 1000
    per_leaf: int = 32
    uplinks: int = 16
    bad_nodes: int = 3
    node_level: float = 0.9
    bad_links: int = 2
    link_level: float = 0.5
    noise: float = 0.02
    spread: float = 0.005
    job: float = 0.005

    @property
    def leafs(self) -> int:
        """The number of leafs; the last may be smaller."""
        return -(-self.nodes // self.per_leaf)


class Machine:
    """One machine of a kind, its faults drawn at random; it measures pairs."""

    def __init__(self, fabric: Fabric, generator: np.random.Generator) -> None:
        self.fabric = fabric
        self._generator = generator
        numbers = np.arange(fabric.nodes)
        self.leaf: Integers = generator.permutation(numbers) // fabric.per_leaf
        self.bad_nodes = frozenset(
            generator.choice(fabric.nodes, fabric.bad_nodes, replace=False).tolist()
        )
        cables = fabric.leafs * fabric.uplinks
        chosen = generator.choice(cables, fabric.bad_links, replace=False)
        self.bad_links = frozenset(
            (int(cable) // fabric.uplinks, int(cable) % fabric.uplinks)
            for cable in chosen
        )
        self._node = np.exp(generator.normal(0, fabric.spread, fabric.nodes))
        self._node[list(self.bad_nodes)] *= fabric.node_level
        self._peculiar = generator.normal(0, fabric.spread, (fabric.nodes,) * 2)
        self.begin_job()

    def begin_job(self) -> None:
        """Draw what all numbers of the next job share: of bandwidth, and latency."""
        luck = self._generator.normal(0, self.fabric.job, 2)
        self._luck = np.exp(luck)

    def slowed(self, source: Integers, destination: Integers) -> Marks:
        """Mark directed pairs whose route takes a bad cable."""
        slow = np.zeros(len(source), dtype=np.bool_)
        outside = self.leaf[source] != self.leaf[destination]
        cable = destination % self.fabric.uplinks
        for leaf, number in self.bad_links:
            own = (self.leaf[source] == leaf) | (self.leaf[destination] == leaf)
            slow |= outside & own & (cable == number)
        return slow

    def bandwidth(self, source: Integers, destination: Integers) -> Floats:
        """Measure the bandwidth of directed pairs."""
        level = np.minimum(self._node[source], self._node[destination])
        slow = self.slowed(source, destination)
        level = np.where(slow, np.minimum(level, self.fabric.link_level), level)
        return self._noisy(level * self._luck[0], source, destination)

    def latency(self, source: Integers, destination: Integers) -> Floats:
        """Measure the latency of pairs, which no fault changes."""
        level = np.full(len(source), self._luck[1])
        return self._noisy(level, source, destination)

    def _noisy(self, level: Floats, source: Integers, destination: Integers) -> Floats:
        """Add what is peculiar to each pair, the same each time, and noise."""
        peculiar = self._peculiar[source, destination]
        noise = self._generator.normal(0, self.fabric.noise, len(source))
        return np.asarray(level * np.exp(peculiar + noise))
