"""Which part of a fabric explains slow pairs: the most likely nodes, cables, switches.

Method. A residual says how much slower a path is than others under the same expected
load, as a logarithm in units of their scatter (1.4826 MAD), clipped at `CLIP`: single
slow paths count little. It is regressed on the parts that the path crosses, each with
the share that the routes give. With fixed routes these are the parts with the path's
greatest load, as it waits there. The gain of a part is the log-likelihood ratio of the
regression with and without it, 0 if its paths are faster. Up to `most` parts are chosen
greedily from several starts, each again given the others (orthogonal matching pursuit:
Pati et al. 1993). A part is named if permuted residuals hardly reach its gain, and
if it slows most of its paths.
Error counters of a link add their own log-likelihood ratio (Poisson, against the median
of all links).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from seatrial.fabric.routes import Crossings, Graph, Numbers, Shares

CLIP = 5.0
"""Greatest size of a residual that counts, in units of the scatter."""

SAME = 3.0
"""Parts whose gain differs by less are not told apart: a likelihood ratio of 20."""

RISK = 0.001
"""Risk of naming any part of a sound fabric, if its residuals are exchangeable."""

STARTS = 8
PERMUTATIONS = 40
_MOST_COUNTERS = 25.0
_OF_MEAN = 0.75
"""Least median of their slowness, of its mean: single slow paths raise the mean."""
_EULER = 0.5772156649

PartKind = Literal["node", "cable", "switch"]


class Part(NamedTuple):
    """A node with its cable, a cable between switches, or a switch, by its number."""

    kind: PartKind
    number: int


@dataclass(frozen=True)
class MeasuredPaths:
    """What was measured of paths, as arrays with an entry for each of them.

    `residual`: how slow a path is, in units of `scatter`; 0 is usual, positive is slow.
    `scatter`: that of the logarithms of the numbers in its group. `group`: numbers of
    one group may be exchanged if the fabric is sound. `crossings`: the arcs on which
    they may wait.
    """

    residual: Shares
    scatter: Shares
    group: Numbers
    crossings: Crossings


@dataclass(frozen=True)
class Suspect:
    """A part that explains slow paths, with others that explain them as well.

    `gain` is the log-likelihood ratio, given the suspects before it; `p` is the chance
    that a sound fabric reaches it. A path across the part takes longer by the share
    `slower`, on average of `paths` measured ones.
    """

    parts: tuple[Part, ...]
    gain: float
    p: float
    slower: float
    paths: int


def part_of(graph: Graph, number: int) -> Part:
    """Return the part of a column: links come first, then switches."""
    if number >= len(graph.links):
        return Part("switch", number - len(graph.links))
    host = graph.ends[number].min() < len(graph.hosts)
    return Part("node" if host else "cable", number)


def incidence(graph: Graph, crossings: Crossings, paths: int) -> csc_array:
    """Return the chance that a path crosses a part: paths x parts, links come first.

    A path crosses a switch that it enters or leaves, once.
    """
    links, hosts = len(graph.links), len(graph.hosts)
    arcs = np.arange(2 * links)
    size = (2 * links, links + len(graph.switches))
    crossed = (crossings.share, (crossings.path, crossings.arc))
    by_arc = csr_array(crossed, shape=(paths, 2 * links))

    def by_part(switch: Numbers) -> csr_array:
        inner = switch >= hosts
        of_arc = np.concatenate([arcs, arcs[inner]])
        part = np.concatenate([arcs // 2, links + switch[inner] - hosts])
        return by_arc @ csr_array((np.ones(part.size), (of_arc, part)), shape=size)

    tails = graph.ends.reshape(-1)
    heads = graph.ends[:, ::-1].reshape(-1)
    marks = by_part(heads).maximum(by_part(tails)).tocsc()
    np.minimum(marks.data, 1.0, out=marks.data)
    return marks


def residuals(slowness: Shares, group: Numbers) -> tuple[Shares, Shares]:
    """Center logarithms of slowness by group, and divide them by its scatter.

    The second array is the scatter of each path's group, 1.4826 MAD.
    """
    answer, scatter = np.empty_like(slowness), np.empty_like(slowness)
    order = np.argsort(group, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        centered = slowness[own] - np.median(slowness[own])
        scatter[own] = max(1.4826 * float(np.median(np.abs(centered))), 1e-9)
        answer[own] = centered / scatter[own]
    return answer, scatter


def expected_load(
    crossings: Crossings, group: Numbers, arcs: int
) -> tuple[Shares, Crossings]:
    """Return the load of each path: the most paths of its group that share an arc.

    The second value has the arcs with that load: there the path waits.
    """
    key = group[crossings.path] * arcs + crossings.arc
    kinds, place = np.unique(key, return_inverse=True)
    place = place.reshape(-1)
    load = np.bincount(place, crossings.share, minlength=kinds.size)[place]
    greatest = np.ones(group.size)
    np.maximum.at(greatest, crossings.path, load)
    waits = load >= greatest[crossings.path]
    return greatest, crossings.kept(waits)


@dataclass
class Search:
    """The search among the parts of a fabric; `prior` is what is known of each part.

    `marks` is an incidence, whose shares may be weighted by path.
    """

    marks: csc_array
    residual: Shares
    prior: Shares
    _squares: Shares = field(init=False)

    def __post_init__(self) -> None:
        self.residual = _centered(self.residual)
        self._variance = float(np.mean(self.residual**2))
        self._squares = np.asarray(self.marks.power(2).sum(axis=0), np.float64)

    def gains(self, given: Sequence[int] = ()) -> Shares:
        """Return the gain of each part, given others; -inf for these."""
        left, basis = self.residual, list[Shares]()
        squares = self._squares.copy()
        for part in given:
            column = self.marks[:, [part]].toarray()[:, 0]
            for known in basis:
                column = column - known * (known @ column)
            length = float(np.sqrt(column @ column))
            if length < 1e-9:
                continue
            basis.append(column / length)
            left = left - basis[-1] * (basis[-1] @ left)
            squares -= (self.marks.T @ basis[-1]) ** 2
        own = squares > 1e-6 * np.maximum(self._squares, 1e-12)
        gain = np.zeros(squares.size)
        sums = (self.marks.T @ left)[own]
        gain[own] = np.maximum(sums, 0) ** 2 / squares[own] / 2 / self._variance
        gain += self.prior
        gain[list(given)] = -np.inf
        return gain

    def greatest(self, residuals: Shares) -> Shares:
        """Return the greatest gain for each of other residuals, a row each."""
        rows = np.stack([_centered(row) for row in residuals])
        own = self._squares > 0
        sums = np.maximum((self.marks.T @ rows.T)[own], 0)
        gain = sums**2 / self._squares[own, None] / 2 / np.mean(rows**2, axis=1)
        return np.asarray(gain.max(axis=0))

    def chosen(self, most: int) -> list[tuple[int, float]]:
        """Return up to `most` parts with their gains, the best set that was found.

        The strongest comes first; the gain of each is given those before it.
        """
        starts = np.argsort(self.gains(), kind="stable")[::-1][:STARTS]
        sets = []
        for start in starts.tolist():
            own = [start]
            while len(own) < most:
                own.append(int(np.argmax(self.gains(own))))
            for place in range(len(own)):
                own[place] = int(np.argmax(self.gains(own[:place] + own[place + 1 :])))
            sets.append(self._valued(own))
        return max(sets, key=lambda one: sum(gain for _, gain in one))

    def _valued(self, own: Sequence[int]) -> list[tuple[int, float]]:
        left, valued = list(own), list[tuple[int, float]]()
        while left:
            gains = self.gains([part for part, _ in valued])
            strongest = max(left, key=lambda part: gains[part])
            left.remove(strongest)
            valued.append((strongest, float(gains[strongest])))
        return valued


def _centered(residual: Shares) -> Shares:
    clipped = np.clip(residual, -CLIP, CLIP)
    return np.asarray(clipped - clipped.mean())


def located(
    graph: Graph,
    paths: MeasuredPaths,
    errors: Shares | None = None,
    *,
    risk: float = RISK,
    most: int = 2,
    seed: int = 1,
) -> list[Suspect]:
    """Name the parts that explain slow paths, the strongest first; none if sound.

    `errors` are counts by link, of the same time.
    """
    marks = incidence(graph, paths.crossings, paths.residual.size)
    # A shift of the same size shows less where paths scatter more.
    least = float(paths.scatter.min())
    marks.data *= (least / paths.scatter)[marks.indices]
    prior = np.zeros(marks.shape[1])
    if errors is not None:
        prior[: len(graph.links)] = counter_llr(errors)
    search = Search(marks, paths.residual, prior)
    chance = _chance_of(search, paths.group, np.random.default_rng(seed))
    suspects, given = list[Suspect](), list[int]()
    for part, gain in search.chosen(most):
        p = chance(gain)
        if p > risk:
            break
        gains = search.gains(given)
        alike = np.flatnonzero(gains >= gain - SAME)
        order = alike[np.argsort(-gains[alike], kind="stable")].tolist()
        likely = dict.fromkeys([part, *order])
        names = [one for one in likely if _slows_most(marks, paths, one)]
        if not names:
            continue
        parts = tuple(part_of(graph, number) for number in names)
        own = slice(*marks.indptr[names[0] : names[0] + 2])
        share, slow = marks.data[own], paths.residual[marks.indices[own]]
        shift = float(share @ slow / (share @ share)) * least
        suspects.append(Suspect(parts, gain, p, float(np.expm1(shift)), share.size))
        given.append(part)
    return suspects


def _slows_most(marks: csc_array, paths: MeasuredPaths, part: int) -> bool:
    """Return True if the usual path across a part is slow, not only some of them.

    A load that the routes do not show, as of wrong tables, slows some.
    """
    across = np.zeros(paths.residual.size, dtype=bool)
    across[marks.indices[slice(*marks.indptr[part : part + 2])]] = True
    usual = float(np.median(paths.residual[~across])) if not across.all() else 0.0
    slow = np.clip(paths.residual[across] - usual, -CLIP, CLIP)
    return bool(np.median(slow) >= _OF_MEAN * slow.mean())


def counter_llr(errors: Shares) -> Shares:
    """Return the LLR of more errors than the median of all links has (Poisson)."""
    usual = max(float(np.median(errors)), 0.5)
    more = np.maximum(errors, usual)
    return np.minimum(more * np.log(more / usual) - (more - usual), _MOST_COUNTERS)


def _chance_of(
    search: Search, group: Numbers, dice: np.random.Generator
) -> Callable[[float], float]:
    """Return the chance that a sound fabric reaches a gain: Gumbel, of permutations."""
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[order])) + 1
    parts = np.split(order, edges)
    mixed = np.tile(search.residual, (PERMUTATIONS, 1))
    for row in mixed:
        for own in parts:
            row[own] = search.residual[dice.permutation(own)]
    greatest = search.greatest(mixed)
    scale = max(float(np.std(greatest, ddof=1)) * 6**0.5 / np.pi, 1e-3)
    place = float(np.mean(greatest)) - _EULER * scale
    return lambda gain: float(-np.expm1(-np.exp(-(gain - place) / scale)))
