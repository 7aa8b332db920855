"""False alarms a year, and nights until a fault is confirmed, beside other rules.

Others judge each series by itself: mean less 2 or 3 standard deviations of the last 30
visits, z below -5 over the last 100, and E-divisive, which looks back at a whole year.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from seatrial.calibration.simulate.nights import (
    BEFORE,
    HEALTHY,
    NIGHTS_A_YEAR,
    NightFault,
    NightMachine,
    NightNoise,
    Nights,
)
from seatrial.history.part import Part
from seatrial.history.rules import Rules

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OURS = "ours"
SIGMAS = {"2 sigma": (30, 2.0), "3 sigma": (30, 3.0), "z 5 of 100": (100, 5.0)}
"""Visits of the window, and standard deviations, of simple rules."""

DIVISIVE = "E-divisive"
RULES = (OURS, *SIGMAS, DIVISIVE)
MISSED_AFTER = 60
"""Nights after which a fault that was not found counts as missed."""

_CLASS = -1
"""The machine as a whole, in the place of a node: here it is never slow."""

_FEWEST = 10
_PERMUTATIONS, _LEVEL, _LEAST_PART = 99, 0.05, 5
_BESIDE = 5
"""Machine-years of a row that other rules look at: these have many alarms in each."""

_SAMPLED = 20
"""Series of a machine-year that E-divisive looks at; all would take hours."""


@dataclass
class Year:
    """Counts of one or more machine-years.

    `false` are false alarms by rule, `delays` the nights from onset to alarm of each
    fault, inf if missed. `visits` counts measured nodes. Other rules than ours looked
    at `beside` of the years.
    """

    years: int = 0
    beside: int = 0
    visits: int = 0
    false: dict[str, float] = field(default_factory=dict)
    delays: dict[str, list[float]] = field(default_factory=dict)

    def add(self, other: "Year") -> None:
        """Add the counts of other machine-years."""
        self.years += other.years
        self.beside += other.beside
        self.visits += other.visits
        for rule, count in other.false.items():
            self.false[rule] = self.false.get(rule, 0.0) + count
        for rule, delays in other.delays.items():
            self.delays[rule] = self.delays.get(rule, []) + delays


def one_year(machine: NightMachine, rules: Rules, seed: Sequence[int]) -> Year:
    """Play the nights of one machine: those of learning, then a year that counts.

    The second number of the seed is that of the year: other rules look at the first.
    """
    beside = seed[1] < _BESIDE
    generator = np.random.default_rng(seed)
    nights = Nights(machine, generator)
    part = Part(machine.nodes, np.ones(machine.metrics), rules)
    others = _Others(machine.nodes, machine.metrics)
    alarms: dict[str, list[tuple[int, int]]] = {rule: [] for rule in RULES}
    visits = 0
    for night in range(BEFORE + NIGHTS_A_YEAR):
        nodes = nights.chosen(part.watched)
        values = nights.measured(night, nodes)
        found = part.night(night, nodes, values)
        named = {OURS: [one.node for one in found.losses]}
        named[OURS] += [_CLASS for _ in found.class_losses]
        if beside:
            logs = np.log(values)
            named |= others.night(nodes, logs - np.median(logs, axis=0))
        if night >= BEFORE:
            visits += len(nodes)
            for rule, accused in named.items():
                alarms[rule] += [(night, node) for node in accused]
    year = Year(1, int(beside), visits)
    for rule in (OURS, *SIGMAS) if beside else (OURS,):
        bad = [a for a in alarms[rule] if _is_false(a, nights.onsets)]
        year.false[rule] = float(len(bad))
        year.delays[rule] = [
            _delay(alarms[rule], node, onset)
            for node, onset in enumerate(nights.onsets.tolist())
            if onset >= 0
        ]
    if beside:
        _divide(year, others.window, nights.onsets, generator)
    return year


def _is_false(alarm: tuple[int, int], onsets: Integers) -> bool:
    night, node = alarm
    return node == _CLASS or not 0 <= onsets[node] <= night


def _delay(alarms: Iterable[tuple[int, int]], node: int, onset: int) -> float:
    after = (night for night, name in alarms if name == node and night >= onset)
    nights = next(after, BEFORE + 2 * NIGHTS_A_YEAR) - onset
    return float(nights) if nights <= MISSED_AFTER else np.inf


class _Others:
    """The last visits of each series, (nodes, metrics, visits), the newest last."""

    def __init__(self, nodes: int, metrics: int) -> None:
        longest = max(window for window, _ in SIGMAS.values())
        self.window = np.full((nodes, metrics, longest), np.nan)

    def night(self, nodes: Integers, signals: Floats) -> dict[str, list[int]]:
        """Return the nodes with an alarm in any metric, by rule; take the visits."""
        named = {}
        past = self.window[nodes]
        for rule, (count, sigmas) in SIGMAS.items():
            last = past[..., -count:]
            known = ~np.isnan(last)
            n = known.sum(axis=2)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = np.where(known, last, 0).sum(axis=2) / n
                rest = np.where(known, last - mean[..., np.newaxis], 0)
                sd = np.sqrt((rest**2).sum(axis=2) / (n - 1))
                low = (signals < mean - sigmas * sd) & (n >= _FEWEST)
            named[rule] = nodes[low.any(axis=1)].tolist()
        self.window[nodes, :, :-1] = past[..., 1:]
        self.window[nodes, :, -1] = signals
        return named


def _divide(
    year: Year, window: Floats, onsets: Integers, generator: np.random.Generator
) -> None:
    """Count the change points that E-divisive finds in some series.

    The false ones are scaled to all series.
    """
    healthy, faulty = np.flatnonzero(onsets < 0), np.flatnonzero(onsets >= 0)
    metrics = window.shape[1]
    chosen = generator.choice(healthy, min(_SAMPLED, len(healthy)), replace=False)
    found = sum(divides(_known(window[node, 0]), generator) for node in chosen)
    year.false[DIVISIVE] = found / len(chosen) * len(healthy) * metrics
    some = faulty[: max(1, _SAMPLED // 4)]
    year.delays[DIVISIVE] = [
        0.0 if divides(_known(window[node, 0]), generator) else np.inf for node in some
    ]


def _known(series: Floats) -> Floats:
    return np.asarray(series[~np.isnan(series)])


def divides(series: Floats, generator: np.random.Generator) -> bool:
    """Return True if E-divisive finds a change point in a series.

    By the energy distance of the two parts, against 99 permutations of the series
    (Matteson and James, Journal of the American Statistical Association 109, 2014).
    """
    n = len(series)
    if n < 2 * _LEAST_PART:
        return False
    distance = np.abs(series[:, np.newaxis] - series)
    orders = [np.arange(n), *(generator.permutation(n) for _ in range(_PERMUTATIONS))]
    largest = np.array([_energy(distance[np.ix_(order, order)]) for order in orders])
    return bool(np.mean(largest >= largest[0]) <= _LEVEL)


def _energy(distance: Floats) -> float:
    """Return the largest scaled energy distance over all splits."""
    n = len(distance)
    total = np.cumsum(np.cumsum(distance, axis=0), axis=1)
    k = np.arange(_LEAST_PART, n - _LEAST_PART + 1)
    left = total[k - 1, k - 1]
    across = total[k - 1, n - 1] - left
    right = total[n - 1, n - 1] - left - 2 * across
    m = n - k
    within = left / (k * (k - 1)) + right / (m * (m - 1))
    energy = k * m / n * (2 * across / (k * m) - within)
    return float(energy.max())


@dataclass(frozen=True)
class NightRow:
    """A noise and a fault, with the counts of its machine-years."""

    noise: NightNoise
    fault: NightFault
    year: Year


def night_rows(
    machines: Sequence[NightMachine],
    rules: Rules,
    *,
    years: int,
    seed: int,
    workers: int = 1,
    played: Callable[[int], object] = lambda _: None,
) -> Iterator[NightRow]:
    """Play so many years of each machine; the same seed, the same counts.

    `played` is called with the number of years that are done.
    """
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for machine in machines:
            name = [*f"{machine.noise} {machine.fault.name}".encode()]
            seeds = [[seed, number, *name] for number in range(years)]
            total = Year()
            for year in pool.map(partial(one_year, machine, rules), seeds):
                total.add(year)
                played(1)
            yield NightRow(machine.noise, machine.fault, total)


def machines_of(
    noises: Sequence[NightNoise], faults: Sequence[NightFault], size: NightMachine
) -> list[NightMachine]:
    """Return healthy machines of each noise, then one of each fault by AR(1) noise."""
    healthy = [replace(size, noise=noise, fault=HEALTHY) for noise in noises]
    return healthy + [replace(size, noise="ar1", fault=fault) for fault in faults]
