"""Adaptive sweeps of model machines: which faults are found, by how many pairs.

The sweep draws the pairs, the model measures them, and the judge judges the numbers of
some allocations. A bad up-link counts as found if its leaf is named, as worth a look;
which cable it is, only the routes tell.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
import polars as pl

from seatrial.calibration.simulate.fabric import Fabric, Machine
from seatrial.checks.pairsweep.adaptive import (
    ADAPTIVE_ROUNDS,
    Adaptive,
    Level,
    Pair,
    Rounds,
)
from seatrial.criteria.criteria import Criteria, Criterion
from seatrial.judge.findings import Finding
from seatrial.judge.group import Group
from seatrial.judge.place_groups import groups_of
from seatrial.judge.sampling import UNIT, Sampled
from seatrial.judge.screening import tried
from seatrial.judge.shared_leafs import shared_leafs
from seatrial.judge.verdicts import FAIL, PASS, Ruling, rulings
from seatrial.model.places import PLACE

Numbers = dict[tuple[str, str], list[float]]
"""Numbers of each (directed) pair, one for each allocation; NaN was not drawn."""


@dataclass(frozen=True)
class Outcome:
    """Result of the sweeps of one machine.

    It counts the bad nodes and up-links that were found, and the sound ones that were
    blamed. `share` is the share of all pairs that any allocation measured,
    `largest` the largest of one allocation, `rounds` their mean number in one.
    """

    verdict: int
    nodes_found: int
    links_found: int
    sound_blamed: tuple[str, ...]
    share: float
    largest: float
    rounds: float

    @property
    def passes(self) -> bool:
        """Whether every place passes."""
        return self.verdict == PASS

    @property
    def fails(self) -> bool:
        """Whether some place fails."""
        return self.verdict == FAIL


@dataclass
class _Swept:
    """The numbers of all allocations."""

    repeats: int
    bandwidth: Numbers = field(default_factory=dict)
    latency: Numbers = field(default_factory=dict)
    counts: list[int] = field(default_factory=list)
    rounds: int = 0

    def add(self, numbers: Numbers, repeat: int, pair: Pair, value: float) -> None:
        numbers.setdefault(pair, [np.nan] * self.repeats)[repeat] = value


def swept_and_judged(
    fabric: Fabric,
    criteria: Criteria,
    *,
    repeats: int,
    seed: int,
    rounds: int = ADAPTIVE_ROUNDS,
    leafs_known: bool = True,
) -> Outcome:
    """Sweep a machine in `repeats` allocations and judge it; same seed, same outcome.

    `criteria` have limits of bw_1MiB and latency_8B of `PairSweep`, where 1 is the
    number of a sound pair.
    """
    machine = Machine(fabric, np.random.default_rng(seed))
    nodes = [f"cn{number:04}" for number in range(fabric.nodes)]
    leafs = {
        node: f"leaf l{leaf}" for node, leaf in zip(nodes, machine.leaf, strict=True)
    }
    known = leafs if leafs_known else {}
    swept = _Swept(repeats)
    for repeat in range(repeats):
        machine.begin_job()
        swept.counts.append(0)
        sweep = Adaptive(nodes, rounds, 1, known)
        drawn, levels = sweep.first(), list[Level]()
        while drawn:
            swept.rounds += len(drawn)
            levels += _measured(machine, drawn, swept, repeat)
            drawn = sweep.further(levels, nodes)
    ruled = _ruled(swept, criteria, known)
    every = fabric.nodes * (fabric.nodes - 1) / 2
    bad = {nodes[node] for node in machine.bad_nodes}
    bad_leafs = {f"leaf l{leaf}" for leaf, _ in machine.bad_links}
    convicted = set(_convicted(ruled))
    look = {one.leaf for one in shared_leafs(ruled, known, criteria.risks.discovery)}
    return Outcome(
        verdict=min(int(ruling.verdict.min()) for ruling in ruled),
        nodes_found=len(bad & convicted),
        links_found=sum(f"leaf l{leaf}" in look for leaf, _ in machine.bad_links),
        sound_blamed=tuple(
            sorted((convicted - bad) | (look - bad_leafs) | {*_sound(ruled, machine)})
        ),
        share=len(swept.latency) / every,
        largest=max(swept.counts) / every,
        rounds=swept.rounds / repeats,
    )


def _measured(
    machine: Machine, rounds: Rounds, swept: _Swept, repeat: int
) -> Iterator[Level]:
    """Measure the pairs of rounds, keep their numbers, and yield their levels."""
    pairs = [pair for pairs in rounds for pair in pairs]
    swept.counts[repeat] += len(pairs)
    numbers = [[int(node.removeprefix("cn")) for node in pair] for pair in pairs]
    source, destination = np.array(numbers, dtype=np.int64).T
    there = machine.bandwidth(source, destination).tolist()
    back = machine.bandwidth(destination, source).tolist()
    latency = machine.latency(
        np.minimum(source, destination), np.maximum(source, destination)
    ).tolist()
    for (a, b), ab, ba, time in zip(pairs, there, back, latency, strict=True):
        swept.add(swept.bandwidth, repeat, (a, b), ab)
        swept.add(swept.bandwidth, repeat, (b, a), ba)
        swept.add(swept.latency, repeat, (min(a, b), max(a, b)), time)
        yield Level(a, b, (0, "bw"), log(ab))
        yield Level(b, a, (0, "bw"), log(ba))
        yield Level(a, b, (0, "latency"), -log(time))


def _ruled(swept: _Swept, criteria: Criteria, leafs: dict[str, str]) -> list[Ruling]:
    groups: list[Group] = []
    for criterion in criteria.criteria:
        higher = criterion.direction == "higher"
        data = _sampled(swept.bandwidth if higher else swept.latency, higher=higher)
        groups += groups_of(_subject(criterion), criterion, data, leafs)
    return list(rulings(tried(groups, criteria.risks)))


def _sampled(numbers: Numbers, *, higher: bool) -> Sampled:
    values = np.array(list(numbers.values()))
    places = pl.DataFrame(
        list(numbers), {"source": pl.String, "destination": pl.String}, orient="row"
    ).with_columns(
        pl.lit(None, pl.Int64 if name == "socket" else pl.String).alias(name)
        for name in PLACE
        if name not in ("source", "destination")
    )
    jobs = [str(number) for number in range(values.shape[1])]
    units = pl.DataFrame({"session": jobs, "job_id": jobs})
    return Sampled(
        places=places.select(PLACE),
        units=units.with_columns(run=pl.lit("run"), attempt=1).select(UNIT),
        values=values,
        spoilt=np.zeros(values.shape, dtype=np.bool_),
        higher=higher,
        drawn=True,
    )


def _subject(criterion: Criterion) -> Finding:
    return Finding(
        "limit", criterion.check, criterion.check, environment="simulated"
    ).held_to(criterion)


def _failing(ruled: Iterable[Ruling], part: str) -> Iterator[pl.DataFrame]:
    for ruling in ruled:
        if ruling.part == part:
            yield ruling.names.filter(pl.Series(ruling.verdict == FAIL))


def _convicted(ruled: Sequence[Ruling]) -> Iterator[str]:
    """Yield nodes, leafs and ways that fail."""
    for part in ("node", "leaf"):
        for names in _failing(ruled, part):
            yield from names["node"].cast(pl.String)
    for names in _failing(ruled, "way"):
        for ends in names.select("source", "destination").iter_rows():
            yield " - ".join(ends)


def _sound(ruled: Sequence[Ruling], machine: Machine) -> Iterator[str]:
    """Yield failing pairs that no fault slows, in neither direction."""
    for names in _failing(ruled, "pair"):
        for pair in names.select("source", "destination").iter_rows():
            ends = np.array([[int(node.removeprefix("cn"))] for node in pair])
            bad = machine.bad_nodes & set(ends.ravel().tolist())
            if not (bad or machine.slowed(*ends)[0] or machine.slowed(*ends[::-1])[0]):
                yield " - ".join(pair)
