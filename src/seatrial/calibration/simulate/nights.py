"""Simulated machines of known truth, night by night.

This module imports nothing of the method that finds changes.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NightNoise = Literal["normal", "lognormal", "t3", "outliers", "ar1", "missing"]
NIGHT_NOISES: tuple[NightNoise, ...] = get_args(NightNoise)

NIGHTS_A_YEAR = 365
BEFORE = 100
"""Nights in which baselines are learnt; faults and alarms count from then on."""

_OUTLIER_SHARE, _OUTLIER = 0.02, 5.0
_MISSING = 0.2
_PLACE_CV, _SHARED_CV = 0.01, 0.01
_LONG = 50
_MOST_FAULTY = 10
"""At most one of so many nodes is faulty."""


@dataclass(frozen=True)
class NightFault:
    """A loss of the share `loss` in so many `metrics` of a node.

    At once, or as a `drift` over so many nights.
    """

    name: str
    loss: float = 0.0
    metrics: int = 1
    drift: int = 0

    def factor(self, nights: Floats) -> Floats:
        """Return what is left of the level, so many nights after the onset."""
        grown = np.clip((nights + 1) / max(self.drift, 1), 0, 1)
        left: Floats = 1 - self.loss * grown
        return left


HEALTHY = NightFault("healthy")
FAULTS = (
    NightFault("3 %, 1 metric", 0.03),
    NightFault("3 %, 4 metrics", 0.03, 4),
    NightFault("5 %, 1 metric", 0.05),
    NightFault("5 %, 4 metrics", 0.05, 4),
    NightFault("10 %, 1 metric", 0.10),
    NightFault("10 %, 4 metrics", 0.10, 4),
    NightFault("drift of 10 % in 100 nights, 4 metrics", 0.10, 4, 100),
)


@dataclass(frozen=True)
class NightMachine:
    """A machine whose nodes are measured in turns, each within `every` nights.

    Numbers scatter by `cv` from night to night. The scatter of a node differs from that
    by a lognormal factor; its logarithm scatters by `unequal`. AR(1) noise has the
    `correlation` from one night to the next. `faulty` nodes have the fault, each from a
    night of its own; one of a small machine.
    """

    noise: NightNoise = "normal"
    fault: NightFault = HEALTHY
    nodes: int = 1000
    metrics: int = 20
    every: int = 5
    cv: float = 0.02
    unequal: float = 0.0
    correlation: float = 0.3
    faulty: int = 10


class Nights:
    """The nights of one machine; `onsets` (nodes,) are -1 for healthy nodes."""

    def __init__(self, machine: NightMachine, generator: np.random.Generator) -> None:
        self.machine, self.generator = machine, generator
        size = (machine.nodes, machine.metrics)
        self.levels = np.exp(_PLACE_CV * generator.standard_normal(size))
        self.errors = np.zeros(size)
        self.cv = np.full((machine.nodes, 1), machine.cv)
        if machine.unequal:
            self.cv *= np.exp(
                machine.unequal * generator.standard_normal(self.cv.shape)
            )
        self.last = np.full(machine.nodes, -1)
        self.onsets = np.full(machine.nodes, -1)
        if machine.fault.loss:
            most = min(machine.faulty, machine.nodes // _MOST_FAULTY)
            faulty = generator.permutation(machine.nodes)[: max(most, 1)]
            first, last = BEFORE, BEFORE + NIGHTS_A_YEAR // 2
            self.onsets[faulty] = generator.integers(first, last, len(faulty))

    def chosen(self, watched: Integers) -> Integers:
        """Return the nodes of a night: those watched, and those unseen longest."""
        order = np.argsort(self.last, kind="stable")
        others = order[~np.isin(order, watched)]
        count = -(-self.machine.nodes // self.machine.every)
        nodes = np.concatenate([watched, others[:count]])
        if self.machine.noise == "missing":
            nodes = nodes[self.generator.random(len(nodes)) >= _MISSING]
        return np.asarray(np.sort(nodes), dtype=np.int64)

    def measured(self, night: int, nodes: Integers) -> Floats:
        """Draw the numbers of these nodes, (nodes, metrics); higher is better."""
        machine = self.machine
        size = (len(nodes), machine.metrics)
        error = self._error(night, nodes, size)
        if machine.noise == "normal":
            scatter = np.maximum(1 + self.cv[nodes] * error, 0.05)
        else:
            scatter = np.exp(self.cv[nodes] * error)
        shared = np.exp(_SHARED_CV * self.generator.standard_normal(machine.metrics))
        numbers = self.levels[nodes] * scatter * shared
        bad = (self.onsets[nodes] >= 0) & (self.onsets[nodes] <= night)
        since = (night - self.onsets[nodes[bad]]).astype(float)
        hit = machine.fault.metrics
        numbers[bad, :hit] *= machine.fault.factor(since)[:, np.newaxis]
        self.last[nodes] = night
        return np.asarray(numbers)

    def _error(self, night: int, nodes: Integers, size: tuple[int, int]) -> Floats:
        draw, noise = self.generator, self.machine.noise
        if noise == "t3":
            return np.asarray(draw.standard_t(3, size) / np.sqrt(3))
        error = draw.standard_normal(size)
        if noise == "outliers":
            error -= _OUTLIER * (draw.random(size) < _OUTLIER_SHARE)
        if noise == "ar1":
            gap = np.minimum(night - self.last[nodes], _LONG)[:, np.newaxis]
            same = np.where(self.last[nodes, np.newaxis] < 0, 0, 1)
            rho = same * self.machine.correlation**gap
            error = rho * self.errors[nodes] + np.sqrt(1 - rho**2) * error
            self.errors[nodes] = error
        return np.asarray(error)
