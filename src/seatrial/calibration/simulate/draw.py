"""Draw the numbers of a machine with planted faults.

Numbers are relative to the limit, which is 1, and higher is better. A number is the
level of its place, times the effects of allocation and noise. The level is the median
over allocations, for every shape of the noise.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seatrial.calibration.simulate.machine import Machine, Shape

Floats = NDArray[np.float64]

_TURBO_SHARE, _MODE_WIDTH = 0.7, 0.25
_LEAST = 0.05
"""No number is less than this share of its level, however heavy the tail."""

_ONE_DRAW = 200_000
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Drawn:
    """Numbers of a machine and the truth about them.

    `values` has the shape (layers, places, allocations), `levels` (layers, places). A
    place is the whole machine, a node, or a pair, whose ends are in `ends` (places, 2).
    A layer is a metric; of pairs, bandwidth there, bandwidth back, and latency.
    """

    machine: Machine
    values: Floats
    levels: Floats
    ends: NDArray[np.int64]
    slow_nodes: frozenset[str]
    slow_links: frozenset[tuple[str, str]]

    @property
    def good(self) -> bool:
        """Whether every place reaches the limit: to fail it is an error."""
        return self._worst >= self.machine.bound - _ROUNDING

    @property
    def bad(self) -> bool:
        """Whether some place is at the limit or below: to pass it is an error."""
        return self._worst <= self.machine.bound + _ROUNDING

    @property
    def _worst(self) -> float:
        if self.machine.kind != "sameness":
            return float(self.levels.min())
        if self.machine.slow_nodes:
            return self.machine.slow_level
        ratios = self.levels / np.median(self.levels, axis=1, keepdims=True)
        return float(ratios.min())


def draw(machine: Machine, generator: np.random.Generator) -> Drawn:
    """Draw a machine; ValueError if it cannot have so many faults."""
    if machine.slow_nodes + 2 * machine.slow_links > machine.nodes:
        raise ValueError(
            f"{machine.slow_nodes} slow nodes and {machine.slow_links} slow links need "
            f"more than {machine.nodes} nodes"
        )
    if machine.kind == "pairs":
        return _draw_pairs(machine, generator)
    places = 1 if machine.kind == "value" else machine.nodes
    common = generator.standard_normal(places)
    own = generator.standard_normal((machine.metrics, places))
    levels = machine.level * np.exp(machine.spread * _mixed(machine, common, own))
    slow = generator.permutation(places)[: machine.slow_nodes]
    for node in slow:
        hit = generator.permutation(machine.metrics)[: machine.slow_metrics]
        if machine.kind == "sameness":
            others = np.delete(levels[hit], slow, axis=1)
            levels[hit, node] = machine.slow_level * np.median(others, axis=1)
        else:
            levels[hit, node] = machine.slow_level
    below = machine.slow_level < machine.bound - _ROUNDING
    return Drawn(
        machine,
        _values(machine, levels, generator),
        levels,
        np.empty((0, 2), np.int64),
        frozenset(machine.names[i] for i in slow if machine.names and below),
        frozenset(),
    )


def _draw_pairs(machine: Machine, generator: np.random.Generator) -> Drawn:
    """Draw all pairs: each is as good as the worse of its nodes, unless planted."""
    order = generator.permutation(machine.nodes)
    slow = order[: machine.slow_nodes]
    links = order[machine.slow_nodes :][: 2 * machine.slow_links].reshape(-1, 2)
    layers = 2 if machine.metrics == 1 else 3
    spread = machine.spread * generator.standard_normal((layers, machine.nodes))
    node_levels = machine.level * np.exp(spread)
    node_levels[:, slow] = machine.slow_level
    first, second = np.triu_indices(machine.nodes, 1)
    levels = np.minimum(node_levels[:, first], node_levels[:, second])
    for a, b in np.sort(links, axis=1):
        levels[:, (first == a) & (second == b)] = machine.slow_level
    names = machine.names
    below = machine.slow_level < machine.bound - _ROUNDING
    return Drawn(
        machine,
        _values(machine, levels, generator),
        levels,
        np.stack((first, second), axis=1),
        frozenset(names[i] for i in slow if below),
        frozenset((names[a], names[b]) for a, b in np.sort(links, axis=1) if below),
    )


def _values(machine: Machine, levels: Floats, generator: np.random.Generator) -> Floats:
    """Draw the numbers of each place, one for each allocation."""
    layers, places = levels.shape
    error = _errors(machine, layers, places, generator)
    error -= _centre(replace(machine, nodes=1, metrics=1, repeats=1, drift=0))
    steps = np.linspace(-0.5, 0.5, machine.repeats) if machine.repeats > 1 else 0.0
    error -= machine.drift * steps
    if machine.shape == "lognormal":
        factors = np.exp(error)
    else:
        factors = np.maximum(1 + error, _LEAST)
    return np.asarray(levels[:, :, None] * factors)


def _errors(
    machine: Machine, layers: int, places: int, generator: np.random.Generator
) -> Floats:
    """Draw what allocations and noise do to numbers, on the additive scale."""
    size = (layers, places, machine.repeats)
    own = _noise(machine.shape, size, generator)
    if machine.shared:
        own = _mixed(machine, _noise(machine.shape, size[1:], generator), own)
    jobs = generator.standard_normal((layers, 1, machine.repeats))
    return machine.noise * own + machine.allocation * jobs


def _noise(
    shape: Shape, size: tuple[int, ...], generator: np.random.Generator
) -> Floats:
    """Draw noise of standard deviation 1."""
    if shape == "heavy":
        return generator.standard_t(3, size) / math.sqrt(3)
    if shape == "bimodal":
        turbo = generator.random(size) < _TURBO_SHARE
        apart = math.sqrt((1 - _MODE_WIDTH**2) / (_TURBO_SHARE * (1 - _TURBO_SHARE)))
        return apart * turbo + _MODE_WIDTH * generator.standard_normal(size)
    return generator.standard_normal(size)


def _mixed(machine: Machine, common: Floats, own: Floats) -> Floats:
    """Mix what metrics have in common with what each has alone, by variance."""
    return math.sqrt(machine.shared) * common + math.sqrt(1 - machine.shared) * own


@lru_cache
def _centre(machine: Machine) -> float:
    """Return the median of the errors, so that a level is a median."""
    if machine.shape != "bimodal":
        return 0.0
    many = replace(machine, repeats=_ONE_DRAW)
    return float(np.median(_errors(many, 1, 1, np.random.default_rng(1))))
