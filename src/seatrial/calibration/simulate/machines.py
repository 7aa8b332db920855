"""Draw machines of known truth. Nothing of the judge has a part in it.

Numbers are relative to the bound of their metric, 1, and higher is better. The level of
a place is the median of its numbers over allocations, for every noise: that is the
level that a criterion is about. A place with an intermittent fault has two levels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from seatrial.calibration.simulate.noises import Floats, Noise, errors

Layout = Literal["nodes", "pairs", "whole"]
Extent = Literal["none", "one", "leaf", "majority"]

_LEAST = 0.05
"""No number is less than this share of its level, however heavy the tail."""

_CRASHED = -np.inf
"""The number of a try that crashed: a missing one, which counts as the worst."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Setting:
    """Size and noise of a machine.

    `cv` is the standard deviation of a place's numbers from allocation to allocation, a
    share of its level; `shared` is the part of that variance that all places of an
    allocation have in common: its luck.
    """

    nodes: int = 16
    repeats: int = 12
    noise: Noise = "normal"
    cv: float = 0.02
    shared: float = 0.25


@dataclass(frozen=True)
class Truth:
    """The truth about a machine.

    What is healthy is better than its bound by the share `inside`. The bad nodes, of
    which there are as many as `extent` says, have the level `level` in all metrics, or
    in one, in a `share` of the allocations. `retried`: a number below the bound crashes
    its job, which is tried once more. The best of several `runs` counts.
    """

    name: str
    meaning: str
    inside: float = 0.05
    extent: Extent = "none"
    level: float = 1.0
    everywhere: bool = False
    share: float = 1.0
    retried: bool = False
    runs: int = 1

    def bad_nodes(self, nodes: int) -> int:
        """Return the number of bad nodes among these."""
        counts = {"none": 0, "one": 1, "leaf": max(2, nodes // 4)}
        return counts.get(self.extent, math.ceil(2 * nodes / 3))


_INSIDE = (0.0, 0.01, 0.02, 0.05)
TRUTHS: dict[str, Truth] = {
    truth.name: truth
    for truth in (
        *(
            Truth(f"inside-{100 * x:.0f}", f"all are {100 * x:.0f} % inside", inside=x)
            for x in _INSIDE
        ),
        Truth(
            "limit-node",
            "one node at its limit in one metric, the others 10 % inside",
            inside=0.1,
            extent="one",
        ),
        Truth(
            "bad-node",
            "one node 5 % below its limit in one metric, the others 5 % inside",
            extent="one",
            level=0.95,
        ),
        Truth(
            "slow-leaf",
            "a quarter of the nodes 10 % below in all metrics; of pairs, those that "
            "leave the leaf",
            extent="leaf",
            level=0.9,
            everywhere=True,
        ),
        Truth(
            "slow-majority",
            "two thirds of the nodes 10 % below in all metrics",
            extent="majority",
            level=0.9,
            everywhere=True,
        ),
        Truth(
            "survivors",
            "limit-node; numbers below the limit crash the job, which is retried once",
            inside=0.1,
            extent="one",
            retried=True,
        ),
        Truth(
            "until-pass",
            "limit-node; the best of 5 runs counts, each judged alone",
            inside=0.1,
            extent="one",
            runs=5,
        ),
        Truth(
            "intermittent",
            "one node at half its limit in one metric, in 4 of 10 allocations",
            extent="one",
            level=0.5,
            share=0.4,
        ),
        Truth(
            "half-speed",
            "one node at half its limits in all metrics",
            extent="one",
            level=0.5,
            everywhere=True,
        ),
    )
}


@dataclass(frozen=True)
class Metric:
    """A metric of a machine: its places, and how far inside they are by nature.

    `margin` replaces what a truth says: places that are held to each other are as far
    inside as their tolerance. `steady` numbers do not scatter, as counts. Of pairs
    `both_ways` counts each direction.
    """

    layout: Layout = "nodes"
    margin: float | None = None
    steady: bool = False
    both_ways: bool = False

    def ends(self, nodes: int) -> NDArray[np.int64]:
        """Return the two nodes of each pair, shape (pairs, 2)."""
        pairs = np.stack(np.triu_indices(nodes, 1), axis=1).astype(np.int64)
        return np.concatenate([pairs, pairs[:, ::-1]]) if self.both_ways else pairs


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a metric, and the truth about them.

    `values` has the shape (places, allocations), NaN where a place has no number, -inf
    where it crashed the job; a crashed try is one more allocation. `levels` (places,)
    are the lowest that each place has, `healthy` is that of what is healthy.
    """

    values: Floats
    levels: Floats
    healthy: float


@dataclass(frozen=True, eq=False)
class Drawn:
    """A machine: the numbers of each metric in each run, and its bad nodes.

    A node at its limit is not among the `bad`.
    """

    runs: list[list[Numbers]]
    bad: frozenset[int] = field(default_factory=frozenset)


def draw(
    truth: Truth,
    setting: Setting,
    metrics: Sequence[Metric],
    generator: np.random.Generator,
) -> Drawn:
    """Draw a machine with these metrics, and its runs."""
    count = truth.bad_nodes(setting.nodes)
    planted = generator.permutation(setting.nodes)[:count]
    hit = [*range(len(metrics))]
    if not truth.everywhere:
        # A count exactly at its limit meets it for sure.
        at_limit = truth.level >= 1 - _ROUNDING
        scattering = [i for i in hit if not (at_limit and metrics[i].steady)] or hit
        hit = [scattering[generator.integers(len(scattering))]]
    runs = [
        [
            _numbers(truth, setting, metric, planted if i in hit else planted[:0], rng)
            for i, metric in enumerate(metrics)
        ]
        for rng in generator.spawn(truth.runs)
    ]
    lowest = min(numbers.levels.min() for run in runs for numbers in run)
    bad = planted.tolist() if lowest < 1 - _ROUNDING else ()
    return Drawn(runs, frozenset(bad))


def _numbers(
    truth: Truth,
    setting: Setting,
    metric: Metric,
    planted: NDArray[np.int64],
    generator: np.random.Generator,
) -> Numbers:
    inside = truth.inside if metric.margin is None else metric.margin
    healthy = 1 + inside
    struck = _struck(truth, setting.nodes, metric, planted)
    retried = truth.retried and bool(struck.any())
    tries = setting.repeats * (1 + retried)
    bad = generator.random(tries) < truth.share
    series = np.where(struck[:, np.newaxis] & bad, truth.level, healthy)
    if not metric.steady:
        series = series * factors(setting, (len(struck), tries), generator)
    levels = np.where(struck, truth.level, healthy)
    if retried:
        series = _survivors(series, setting.repeats, struck)
        levels[np.isneginf(series).any(axis=1)] = -np.inf
    return Numbers(series, levels, healthy)


def _struck(
    truth: Truth, nodes: int, metric: Metric, planted: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Mark the places that suffer from bad nodes."""
    if metric.layout == "nodes":
        return np.isin(np.arange(nodes), planted)
    if metric.layout == "whole":
        return np.array([planted.size > 0])
    ends = np.isin(metric.ends(nodes), planted).sum(axis=1)
    # Of a leaf the uplink is slow.
    return np.asarray(ends == 1 if truth.extent == "leaf" else ends > 0)


def _survivors(series: Floats, repeats: int, struck: NDArray[np.bool_]) -> Floats:
    """Crash the tries with a struck place below the bound; retry each once.

    A crashed try has no number of the other places.
    """
    low = np.asarray(np.any(series[struck] < 1, axis=0))
    crashed = np.where(struck, _CRASHED, np.nan)
    columns: list[Floats] = []
    tries = iter(range(series.shape[1]))
    for _ in range(repeats):
        for _ in range(2):
            number = next(tries)
            columns.append(crashed if low[number] else series[:, number])
            if not low[number]:
                break
    return np.stack(columns, axis=1)


def factors(
    setting: Setting, size: tuple[int, int], generator: np.random.Generator
) -> Floats:
    """Draw what chance does to the numbers of (places, allocations); median 1."""
    error = setting.cv * errors(setting.noise, setting.shared, size, generator)
    if setting.noise in ("lognormal", "ar1"):
        return np.asarray(np.exp(error))
    return np.maximum(1 + error, _LEAST)
