"""Trials of `seatrial fabric locate`: model fabrics whose bad parts are known."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from seatrial.calibration.simulate.fabric_traffic import Fault, ModelFabric
from seatrial.fabric.generate import Shape, generate
from seatrial.fabric.locate import Part, Suspect, located
from seatrial.fabric.measured_paths import paths_of, telling_pairs
from seatrial.fabric.plan import Cable
from seatrial.fabric.records import Link
from seatrial.fabric.routes import Graph, Routes

ROUNDS = 24
"""Rounds of all nodes that are measured first: 2.4 % of the pairs of 1,000 nodes."""

FURTHER = 4
"""Times that pairs which tell two parts apart are measured."""

_SHAPE = Shape("fat-tree-2", 1000, radix=64)
THREE_LEVELS = Shape("fat-tree-3", 1000, radix=16)
"""Pods of 64 nodes below 64 cores."""

_TELLING = 64
_NODE, _CABLE, _SWITCH = (1.1, 1.5), (1.3, 2.0), (1.2, 1.6)
"""Spans of factors by which bad parts are slower."""


@dataclass(frozen=True)
class Setting:
    """A kind of fabrics: how many parts are bad, the routing, and what is known.

    `wrong` is the share of entries that the known forwarding tables have wrong.
    """

    name: str
    bad: int
    routing: str = "fixed"
    wrong: float = 0.0
    counters: bool = False
    shape: Shape = _SHAPE


@dataclass(frozen=True)
class Trial:
    """One fabric: its faults and the suspects, both by kind and name.

    Suspects that are not told apart are together. `share` of all pairs was measured.
    """

    faults: frozenset[tuple[str, str]]
    suspects: tuple[tuple[tuple[str, str], ...], ...]
    share: float

    @property
    def first_is_right(self) -> bool:
        """Return True if the first suspect is bad, alone or before its likes."""
        return bool(self.suspects) and self.suspects[0][0] in self.faults

    @property
    def first_is_among(self) -> bool:
        """Return True if a bad part is among those of the first suspect."""
        return bool(self.suspects) and not self.faults.isdisjoint(self.suspects[0])

    @property
    def all_found(self) -> bool:
        """Return True if each bad part is the first of a suspect."""
        return self.faults <= {parts[0] for parts in self.suspects}

    @property
    def blames_sound(self) -> bool:
        """Return True if a suspect has no bad part."""
        return any(self.faults.isdisjoint(parts) for parts in self.suspects)


def trial(setting: Setting, seed: int) -> Trial:
    """Draw a fabric by a seed, measure it, and locate its bad parts."""
    return _Fabric(setting, seed).trial()


@dataclass(frozen=True)
class _Plan:
    """The cables of a shape, and what does not depend on a seed."""

    cables: tuple[Cable, ...]
    graph: Graph
    adaptive: Routes


@lru_cache(maxsize=2)
def _planned(shape: Shape) -> _Plan:
    cables = generate(shape)
    hosts = {c.a.device for c in cables if c.a.device.startswith(shape.prefix)}
    graph = Graph.of(sorted(hosts), [Link(c.a, c.b) for c in cables])
    return _Plan(cables, graph, Routes.planned(graph, adaptive=True))


class _Fabric:
    """A model fabric, what is known of it, and the pairs that were measured."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting, self.plan = setting, _planned(setting.shape)
        self.cables, self.graph = self.plan.cables, self.plan.graph
        self.random = np.random.default_rng(seed)
        self.hosts = [*self.graph.hosts]
        hosts = {*self.hosts}
        self.inner = [c for c in self.cables if c.a.device not in hosts]
        self.faults = self._faults()
        adaptive = setting.routing == "adaptive"
        self.model = ModelFabric(self.cables, seed, self.faults, adaptive=adaptive)
        self.routes = self._routes()
        self.rows: list[pl.DataFrame] = []
        self.measured: set[frozenset[str]] = set()
        self.round = 0

    def trial(self) -> Trial:
        """Measure rounds, locate; measure pairs that tell likes apart, and again."""
        for _ in range(ROUNDS):
            order = self.random.permutation(self.hosts).tolist()
            self._measure(list(zip(order[::2], order[1::2], strict=False)))
        suspects = self._located()
        alike = [suspect.parts for suspect in suspects if len(suspect.parts) > 1]
        further = [telling_pairs(self.routes, parts, _TELLING) for parts in alike]
        if any(further):
            for _ in range(FURTHER):
                for pairs in filter(None, further):
                    self._measure(pairs)
            suspects = self._located()
        all_pairs = len(self.hosts) * (len(self.hosts) - 1) / 2
        return Trial(
            frozenset((kind, name) for kind, name, _ in self.faults),
            tuple(tuple(map(self._name, suspect.parts)) for suspect in suspects),
            len(self.measured) / all_pairs,
        )

    def _faults(self) -> list[Fault]:
        """Draw bad parts: nodes and cables alike often, switches seldom."""
        switches = sorted({c.b.device for c in self.cables})
        faults: dict[str, Fault] = {}
        while len(faults) < self.setting.bad:
            chance = self.random.random()
            if chance < 0.45:
                name = str(self.random.choice(self.hosts))
                faults[name] = ("node", name, self.random.uniform(*_NODE))
            elif chance < 0.9:
                name = self.inner[int(self.random.integers(len(self.inner)))].cable
                faults[name] = ("cable", name, self.random.uniform(*_CABLE))
            else:
                name = str(self.random.choice(switches))
                faults[name] = ("switch", name, self.random.uniform(*_SWITCH))
        return [*faults.values()]

    def _routes(self) -> Routes:
        if self.setting.routing == "adaptive":
            return self.plan.adaptive
        forwarding: dict[str, dict[str, str]] = {}
        entries = [*self.model.entries()]
        wrong = (self.random.random(len(entries)) < self.setting.wrong).tolist()
        for (switch, host, number), is_wrong in zip(entries, wrong, strict=True):
            if is_wrong:
                number = self.model.other_cable(switch, host)
            cable = self.cables[number]
            end = cable.b if cable.b.device == switch else cable.a
            forwarding.setdefault(switch, {})[host] = end.port
        return Routes.forwarded(self.graph, forwarding)

    def _measure(self, pairs: list[tuple[str, str]]) -> None:
        """Measure pairs at the same time, first in one direction, then back."""
        for own in (pairs, [(b, a) for a, b in pairs]):
            columns = {
                "source": [a for a, _ in own],
                "destination": [b for _, b in own],
                "value": self.model.rates(own),
            }
            self.rows.append(
                pl.DataFrame(columns).with_columns(
                    check=pl.lit("PairSweep"),
                    environment=pl.lit("model"),
                    session=pl.lit("pairs-1"),
                    attempt=1,
                    round=self.round,
                )
            )
        self.round += 1
        self.measured |= {frozenset(pair) for pair in pairs}

    def _located(self) -> list[Suspect]:
        errors = self.model.errors() if self.setting.counters else None
        return located(self.graph, paths_of(self.routes, pl.concat(self.rows)), errors)

    def _name(self, part: Part) -> tuple[str, str]:
        if part.kind == "switch":
            return part.kind, self.graph.switches[part.number]
        cable = self.cables[part.number]
        return part.kind, cable.a.device if part.kind == "node" else cable.cable
