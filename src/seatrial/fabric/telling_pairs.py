"""Pairs of hosts whose numbers tell apart parts that explain slow pairs alike."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_array

from seatrial.fabric.locate import Part, incidence
from seatrial.fabric.measured_paths import column_of
from seatrial.fabric.routes import Crossings, Routes, Shares

Pairs = list[tuple[str, str]]

ROUNDS = 8
"""Rounds of pairs that tell the parts of a suspect apart."""

_MOST_PARTS = 64
_SAMPLE = 40_000


def telling_rounds(
    routes: Routes, parts: Sequence[Part], rounds: int = ROUNDS, seed: int = 1
) -> list[Pairs]:
    """Return rounds of pairs that each cross some of the parts, and not all alike.

    Each part is crossed by about as many, which cross few of the others. No two pairs
    of a round share a host or a link, so that they do not slow each other; no pair is
    in two rounds. There is none if all paths cross all parts alike: then pairs cannot
    tell them apart.
    """
    sample = _Sample(routes, parts[:_MOST_PARTS], seed)
    drawn = (sample.round() for _ in range(rounds))
    return [pairs for pairs in drawn if pairs]


class _Sample:
    """Pairs of hosts by chance, with the parts and links that they cross."""

    def __init__(self, routes: Routes, parts: Sequence[Part], seed: int) -> None:
        graph, dice = routes.graph, np.random.default_rng(seed)
        hosts = len(graph.hosts)
        self._names = graph.hosts
        self._ends = np.empty((_SAMPLE, 2), dtype=np.int64)
        self._ends[:, 0] = dice.integers(hosts, size=_SAMPLE)
        further = dice.integers(1, max(hosts, 2), size=_SAMPLE)
        self._ends[:, 1] = (self._ends[:, 0] + further) % hosts
        there = routes.crossings(self._ends[:, 0], self._ends[:, 1])
        back = routes.crossings(self._ends[:, 1], self._ends[:, 0])
        arcs = 2 * len(graph.links)
        self._arcs = (_by_path(there, arcs) + _by_path(back, arcs)).tocsr()
        columns = [column_of(graph, part) for part in parts]
        self._marks: Shares = incidence(graph, there, _SAMPLE)[:, columns].toarray()
        self._crossed = np.zeros(len(parts))
        self._left = [[*self._candidates(number)] for number in range(len(parts))]
        self._taken: set[frozenset[int]] = set()

    def _candidates(self, part: int) -> Iterator[int]:
        """Yield pairs that tell a part from others, those that cross fewest first."""
        marks = self._marks
        tells = (np.ptp(marks, axis=1) > 0.5) & (marks[:, part] > 0.5)
        own = np.flatnonzero(tells)
        yield from own[np.argsort(marks[own].sum(axis=1), kind="stable")].tolist()

    def round(self) -> Pairs:
        """Draw a round: a pair for each part, if there is one, the rarest first."""
        busy: set[int] = set()
        pairs: Pairs = []
        before = self._crossed.copy()
        for part in np.argsort(before, kind="stable").tolist():
            if self._crossed[part] > before[part]:
                continue
            path = next(self._free(part, busy), None)
            if path is not None:
                a, b = self._ends[path].tolist()
                busy |= self._links(path)
                self._taken.add(frozenset((a, b)))
                self._crossed += self._marks[path] > 0.5
                pairs.append((self._names[a], self._names[b]))
        return pairs

    def _free(self, part: int, busy: set[int]) -> Iterator[int]:
        """Yield pairs that were not drawn, and share no link with others."""
        for path in self._left[part]:
            if frozenset(self._ends[path].tolist()) in self._taken:
                continue
            if busy.isdisjoint(self._links(path)):
                yield path

    def _links(self, path: int) -> set[int]:
        """Return the arcs that a pair may take, in both directions."""
        return {*self._arcs.indices[slice(*self._arcs.indptr[path : path + 2])]}


def _by_path(crossings: Crossings, arcs: int) -> csr_array:
    where = (crossings.path, crossings.arc)
    return csr_array((crossings.share, where), shape=(_SAMPLE, arcs))
