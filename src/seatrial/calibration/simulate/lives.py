"""Simulated machines that fail: times of failures in a phase of many nodes.

This module imports nothing of the method that judges them. For a test of the MTBF, a
machine is compliant if its MTBF in the long run is the accepted one; for a test of
intervals, if its share of good intervals in the phase is.
"""

from dataclasses import dataclass, replace
from math import gamma
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Lives = Literal["exponential", "wear-out", "infant mortality", "bursts", "long bursts"]
LIVES: tuple[Lives, ...] = get_args(Lives)

_SHAPES = {"wear-out": 3.0, "infant mortality": 0.5}
"""Shape of Weibull's distribution; 1 is exponential."""

_BURST, _BURST_S, _LONG_BURST_S = 5, 30.0, 3600.0
"""Failed jobs of a burst on average, and the mean seconds between them."""


_DRAWS, _HALVES = 400, 14


@dataclass(frozen=True)
class Failing:
    """A machine of new nodes, for a phase of some hours.

    `mtbf` is that of the machine in hours, in the long run: nodes are exchanged when
    they fail. Each node's lives have the mean `nodes` x `mtbf`.
    """

    lives: Lives
    mtbf: float
    hours: float
    nodes: int = 100

    def failures(self, generator: np.random.Generator) -> list[list[float]]:
        """Draw the failures of a phase: seconds of each failed job, event by event."""
        shape = _SHAPES.get(self.lives, 1.0)
        mean = self.nodes * self.mtbf
        scale = mean / gamma(1 + 1 / shape)
        times: list[float] = []
        # Nodes begin new; a machine of exponential lives has no age.
        ends = scale * generator.weibull(shape, self.nodes)
        while (ends < self.hours).any():
            failed = ends < self.hours
            times += ends[failed].tolist()
            ends = ends[failed] + scale * generator.weibull(shape, failed.sum())
        return [self._jobs(3600 * time, generator) for time in sorted(times)]

    def _jobs(self, start: float, generator: np.random.Generator) -> list[float]:
        """Draw the moments at which an event kills jobs."""
        if self.lives not in ("bursts", "long bursts"):
            return [start]
        mean = _BURST_S if self.lives == "bursts" else _LONG_BURST_S
        jobs = int(generator.geometric(1 / _BURST))
        pauses = generator.exponential(mean, jobs - 1)
        return [start, *(start + np.cumsum(pauses)).tolist()]


def with_good_share(machine: Failing, length: float, share: float) -> Failing:
    """Return the machine with the MTBF that has this share of good intervals.

    It is that of the phase, on average: what an interval test is about.
    """
    low, high = machine.mtbf / 64, machine.mtbf * 64
    for _ in range(_HALVES):
        middle = (low * high) ** 0.5
        if good_share(replace(machine, mtbf=middle), length, _DRAWS, seed=1) < share:
            low = middle
        else:
            high = middle
    return replace(machine, mtbf=(low * high) ** 0.5)


def good_share(machine: Failing, length: float, draws: int, seed: int) -> float:
    """Return the share of intervals without a failure, by `draws` of phases."""
    generator = np.random.default_rng(seed)
    intervals = int(machine.hours / length + 1e-9)
    bad = 0
    for _ in range(draws):
        events = machine.failures(generator)
        hits = {int(t / 3600 / length) for jobs in events for t in jobs}
        bad += sum(hit < intervals for hit in hits)
    return 1 - bad / (draws * intervals)
