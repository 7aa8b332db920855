"""Trials of `seatrial fabric locate`: model fabrics whose bad parts are known."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import polars as pl

from seatrial.calibration.simulate.fabric_traffic import Fault, ModelFabric
from seatrial.fabric.generate import Shape, generate
from seatrial.fabric.locate import MeasuredPaths, Part, Suspect, located
from seatrial.fabric.measured_paths import paths_of
from seatrial.fabric.plan import Cable
from seatrial.fabric.records import Link
from seatrial.fabric.routes import Graph, Routes
from seatrial.fabric.telling_pairs import telling_rounds

ROUNDS = 24
"""Rounds of all nodes that are measured first: 2.4 % of the pairs of 1,000 nodes."""

FURTHER = 2
"""Times that pairs which tell parts apart are measured."""

_SHAPE = Shape("fat-tree-2", 1000, radix=64)
THREE_LEVELS = Shape("fat-tree-3", 1000, radix=16)
"""Pods of 64 nodes below 64 cores."""

_TIE = 1e-6
_NODE, _CABLE, _SWITCH = (1.1, 1.5), (1.3, 2.0), (1.2, 1.6)
"""Spans of factors by which bad parts are slower."""


@dataclass(frozen=True)
class Setting:
    """A kind of fabrics: how many parts are bad, the routing, and what is known.

    `wrong` is the share of entries that the known forwarding tables have wrong. After a
    sweep with adaptive routing, `then` measures without it: the `pairs` that tell parts
    apart, or as many `rounds` of all nodes again.
    """

    name: str
    bad: int
    routing: str = "fixed"
    wrong: float = 0.0
    counters: bool = False
    then: Literal["", "pairs", "rounds"] = ""
    shape: Shape = _SHAPE


@dataclass(frozen=True)
class Trial:
    """One fabric: its faults and the suspects, both by kind and name.

    Suspects that are not told apart are together, the most likely first; `ties` are the
    suspects whose first has its equals. `share` of all pairs was measured.
    """

    faults: frozenset[tuple[str, str]]
    suspects: tuple[tuple[tuple[str, str], ...], ...]
    share: float
    ties: frozenset[int] = frozenset()

    @property
    def first_is_right(self) -> bool:
        """Return True if the first suspect is bad, and more likely than its likes."""
        return 0 in self._right

    @property
    def first_is_among(self) -> bool:
        """Return True if a bad part is among those of the first suspect."""
        return bool(self.suspects) and not self.faults.isdisjoint(self.suspects[0])

    @property
    def all_found(self) -> bool:
        """Return True if each bad part is the first of a suspect."""
        return self.faults <= {self.suspects[number][0] for number in self._right}

    @property
    def blames_sound(self) -> bool:
        """Return True if a suspect has no bad part."""
        return any(self.faults.isdisjoint(parts) for parts in self.suspects)

    @property
    def _right(self) -> set[int]:
        """Return the suspects whose first is bad, and has no equal."""
        return {
            number
            for number, parts in enumerate(self.suspects)
            if parts[0] in self.faults and number not in self.ties
        }


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
        self.model = ModelFabric(self.cables, seed, self.faults)
        self.routes = self._routes()
        self.rows: dict[bool, list[pl.DataFrame]] = {True: [], False: []}
        self.paths: dict[bool, MeasuredPaths] = {}
        self.measured: set[frozenset[str]] = set()
        self.round = 0

    def trial(self) -> Trial:
        """Measure rounds, locate; measure pairs that tell likes apart, and again."""
        adaptive = self.setting.routing == "adaptive"
        self._measure_all(adaptive)
        suspects = self._located()
        without = self.setting.then
        if without == "rounds":
            self._measure_all(False)
            suspects = self._located()
        elif without or not adaptive:
            further = [
                pairs
                for suspect in suspects
                if not suspect.is_single
                for pairs in telling_rounds(self.routes, suspect.parts)
            ]
            for pairs in further * FURTHER:
                self._measure(pairs, False)
            suspects = self._located() if further else suspects
        all_pairs = len(self.hosts) * (len(self.hosts) - 1) / 2
        return Trial(
            frozenset((kind, name) for kind, name, _ in self.faults),
            tuple(tuple(map(self._name, suspect.parts)) for suspect in suspects),
            len(self.measured) / all_pairs,
            frozenset(
                number
                for number, one in enumerate(suspects)
                if not one.is_single and one.likely[1] > (1 - _TIE) * one.likely[0]
            ),
        )

    def _measure_all(self, adaptive: bool) -> None:
        """Measure rounds of all nodes."""
        for _ in range(ROUNDS):
            order = self.random.permutation(self.hosts).tolist()
            self._measure(list(zip(order[::2], order[1::2], strict=False)), adaptive)

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
        """Return the routes of messages without adaptive routing, as known.

        The links of the graph are the cables of the model, so that ways are arcs.
        """
        switches, hosts = self.graph.switches, self.graph.hosts
        tables = self.model.ways(switches, hosts)
        wrong = self.random.random(tables.shape) < self.setting.wrong
        for switch, host in np.argwhere(wrong & (tables >= 0)).tolist():
            way = self.model.other_way(switches[switch], hosts[host])
            tables[switch, host] = way
        return Routes(self.graph, tables)

    def _measure(self, pairs: list[tuple[str, str]], adaptive: bool) -> None:
        """Measure pairs at the same time, first in one direction, then back."""
        for own in (pairs, [(b, a) for a, b in pairs]):
            columns = {
                "source": [a for a, _ in own],
                "destination": [b for _, b in own],
                "value": self.model.rates(own, adaptive=adaptive),
            }
            self.rows[adaptive].append(
                pl.DataFrame(columns).with_columns(
                    check=pl.lit("PairSweep"),
                    environment=pl.lit("model"),
                    session=pl.lit("pairs-1"),
                    attempt=1,
                    round=self.round,
                )
            )
        self.round += 1
        self.paths.pop(adaptive, None)
        self.measured |= {frozenset(pair) for pair in pairs}

    def _located(self) -> list[Suspect]:
        errors = self.model.errors() if self.setting.counters else None
        for adaptive, rows in self.rows.items():
            if rows and adaptive not in self.paths:
                routes = self.plan.adaptive if adaptive else self.routes
                self.paths[adaptive] = paths_of(routes, pl.concat(rows))
        return located(self.graph, [*self.paths.values()], errors)

    def _name(self, part: Part) -> tuple[str, str]:
        if part.kind == "switch":
            return part.kind, self.graph.switches[part.number]
        cable = self.cables[part.number]
        return part.kind, cable.a.device if part.kind == "node" else cable.cable
