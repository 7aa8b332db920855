"""The pairs of an adaptive sweep: first some of every node, then more of suspects.

In the first rounds each node meets as many partners. A node is a suspect if its median
pair is slow, if a pair of it is slower than both of its nodes explain, or if several
such pairs begin or end at its leaf: then an up-link of the leaf may be bad, which shows
in a part of the pairs of all its nodes. Each suspect gets as many rounds again, with
fresh partners: every fourth on its own leaf, whose pairs take no up-link. The others
rest. A fault of a single pair shows only if the pair is drawn.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from statistics import median

Pair = tuple[str, str]
Rounds = list[list[Pair]]

ADAPTIVE_ROUNDS = 12
"""Rounds of the first phase, unless stated."""

FURTHER_PHASES = 3
"""Phases of suspects; all have at most so many times the pairs of the first phase."""

_APART = 4.0
"""Suspicion begins at so many robust standard deviations below the typical node."""

_PAIR_APART = 5.0
"""The same of a pair below its nodes."""

_LEAST = 0.02
"""No node or pair is suspect that is less than this share worse."""

_LEAF_PAIRS = 3
"""Slow pairs of a leaf that make all its nodes suspects."""

_NEAR = 4
"""Every fourth partner is on the leaf of the suspect."""


@dataclass(frozen=True)
class Level:
    """A number of a pair on a scale where higher is better: a logarithm.

    `kind` holds what is compared: the rail, and latency or bandwidth. Numbers with a
    direction have the sending node as `source`.
    """

    source: str
    destination: str
    kind: tuple[int, str]
    level: float


@dataclass
class Adaptive:
    """Draws the pairs of `nodes`: `rounds` of all, then more of the suspects.

    `leafs` has the leaf of each node, as far as they are known. The same seed draws the
    same pairs, so that they are the same in each repeat. With `further_phases` 0 there
    are only the first rounds.
    """

    nodes: Sequence[str]
    rounds: int
    seed: int
    leafs: Mapping[str, str] = field(default_factory=dict)
    further_phases: int = FURTHER_PHASES

    def __post_init__(self) -> None:
        self.met: dict[str, set[str]] = {node: {node} for node in self.nodes}
        self.rested = set(self.nodes)
        self.left = 0

    def first(self) -> Rounds:
        """Draw the first rounds: a tournament of all nodes in random places."""
        names = sorted(self.nodes)
        random.Random(self.seed).shuffle(names)
        places: list[str | None] = [*names, *[None] * (len(names) % 2)]
        fixed, circle = places[0], places[1:]
        drawn: Rounds = []
        for number in range(min(self.rounds, len(circle))):
            turned = [fixed, *circle[number:], *circle[:number]]
            half = len(turned) // 2
            ends = zip(turned[:half], reversed(turned[half:]), strict=True)
            drawn.append([(a, b) for a, b in ends if a is not None and b is not None])
        self._keep(drawn)
        self.left = self.further_phases * sum(map(len, drawn))
        return drawn

    def further(self, levels: Iterable[Level], nodes: Sequence[str]) -> Rounds:
        """Draw rounds of suspects that rested until now; `nodes` still answer.

        No round: there is no new suspect, or as much was drawn as may be.
        """
        if not self.further_phases:
            return []
        self.further_phases -= 1
        found = suspects(levels, self.leafs)
        new = [node for node in found if node in self.rested and node in set(nodes)]
        new = new[: self.left // self.rounds]
        self.rested.difference_update(new)
        order = {node: self._candidates(node, nodes) for node in new}
        drawn = [self._round(number, order) for number in range(self.rounds)]
        self.left -= sum(map(len, drawn))
        return [pairs for pairs in drawn if pairs]

    def _candidates(
        self, node: str, nodes: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Return partners of a suspect elsewhere, and on its own leaf.

        They are in random order; those that rest come first.
        """
        order = sorted(nodes)
        random.Random(f"{self.seed} {node}").shuffle(order)
        order.sort(key=lambda partner: partner not in self.rested)
        leaf = self.leafs.get(node)
        near = [one for one in order if leaf and self.leafs.get(one) == leaf]
        known = set(near)
        return [one for one in order if one not in known], near

    def _round(
        self, number: int, order: Mapping[str, tuple[list[str], list[str]]]
    ) -> list[Pair]:
        """Draw a partner for each suspect that is not in the round yet."""
        busy: set[str] = set()
        pairs: list[Pair] = []
        for node, (far, near) in order.items():
            if node in busy:
                continue
            chosen = (near, far) if number % _NEAR == _NEAR - 1 else (far, near)
            taken = self.met[node]
            free = (
                one
                for candidates in chosen
                for one in candidates
                if one not in taken and one not in busy
            )
            if partner := next(free, None):
                pairs.append((node, partner))
                busy |= {node, partner}
        self._keep([pairs])
        return pairs

    def _keep(self, rounds: Rounds) -> None:
        for a, b in (pair for pairs in rounds for pair in pairs):
            self.met[a].add(b)
            self.met[b].add(a)


def levels_of(row: Mapping[str, float | str]) -> list[Level]:
    """Return the levels of a row of `pairsweep`."""
    there = str(row["source"]), str(row["destination"])
    rail = int(row["rail"])
    return [
        Level(*there, (rail, "latency"), -log(float(row["latency_p50_us"]))),
        Level(*there, (rail, "bw"), log(float(row["bw_mb_per_s"]))),
        Level(*there[::-1], (rail, "bw"), log(float(row["bw_back_mb_per_s"]))),
    ]


def suspects(levels: Iterable[Level], leafs: Mapping[str, str]) -> list[str]:
    """Return the nodes that deserve more rounds, the worst first."""
    severity: dict[str, float] = defaultdict(float)
    slow: dict[Pair, float] = {}
    by_kind: dict[tuple[int, str], list[Level]] = defaultdict(list)
    for one in levels:
        by_kind[one.kind].append(one)
    for own in by_kind.values():
        _compare(own, severity, slow)
    for pair, depth in slow.items():
        for node in pair:
            severity[node] = max(severity[node], depth)
    for leaf, depth in _slow_leafs(slow, leafs).items():
        for node in (node for node, own in leafs.items() if own == leaf):
            severity[node] = max(severity[node], depth)
    return sorted(severity, key=lambda node: -severity[node])


def _compare(
    levels: Sequence[Level], severity: dict[str, float], slow: dict[Pair, float]
) -> None:
    """Add nodes and pairs that are worse than the typical ones, with their depths.

    A node has a level for each direction, as a cable may be bad in one.
    """
    usual = median(one.level for one in levels)
    of_end: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in levels:
        of_end["source", one.source].append(one.level - usual)
        of_end["destination", one.destination].append(one.level - usual)
    typical = {end: median(own) for end, own in of_end.items()}
    least = _threshold(typical.values(), _APART)
    for (_, node), level in typical.items():
        if level < -least:
            severity[node] = max(severity[node], -level)
    rests = [
        one.level
        - usual
        - min(typical["source", one.source], typical["destination", one.destination], 0)
        for one in levels
    ]
    least = _threshold(rests, _PAIR_APART)
    for one, rest in zip(levels, rests, strict=True):
        if rest < -least:
            pair = min(one.source, one.destination), max(one.source, one.destination)
            slow[pair] = max(slow.get(pair, 0.0), -rest)


def _threshold(values: Iterable[float], times: float) -> float:
    """Return the distance from the median at which suspicion begins."""
    values = list(values)
    middle = median(values)
    deviation = 1.4826 * median(abs(value - middle) for value in values)
    return max(_LEAST, times * deviation)


def _slow_leafs(
    slow: Mapping[Pair, float], leafs: Mapping[str, str]
) -> dict[str, float]:
    """Return the leafs that explain several slow pairs, the one of most pairs first."""
    rest = {
        pair: {leafs[node] for node in pair}
        for pair in slow
        if all(node in leafs for node in pair)
    }
    found: dict[str, float] = {}
    while True:
        counts = Counter(
            leaf for ends in rest.values() if len(ends) > 1 for leaf in ends
        )
        leaf, most = max(counts.items(), key=lambda item: item[1], default=("", 0))
        if most < _LEAF_PAIRS:
            return found
        own = [pair for pair, ends in rest.items() if leaf in ends]
        found[leaf] = median(slow[pair] for pair in own)
        for pair in own:
            del rest[pair]
