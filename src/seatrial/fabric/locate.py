"""Which part of a fabric explains slow pairs: the most likely nodes, cables, switches.

Method. A residual says how much slower a path is than others under the same expected
load, as a logarithm in units of their scatter (1.4826 MAD), clipped at `CLIP`: single
slow paths count little. It is regressed on the parts that the path crosses, each with
the share that the routes give. With fixed routes these are the parts with the path's
greatest load, as it waits there. The gain of a part is the log-likelihood ratio of the
regression with and without it, 0 if its paths are faster. Up to `most` parts are chosen
greedily from several starts, each again given the others (orthogonal matching pursuit:
Pati et al. 1993). Permuted residuals must hardly reach the gain of each. A suspect has
the most likely parts in its place, given the other suspects, that have `LIKELY` of the
likelihood together, if they slow most of their paths: one of them is slow.
Error counters of a link add their own log-likelihood ratio (Poisson, against the median
of all links).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from seatrial.fabric.part_search import CLIP, Sample, Search, chance_of
from seatrial.fabric.routes import Crossings, Graph, Numbers, Shares

LIKELY = 0.95
"""Share of the likelihood that the parts of a suspect have together."""

RISK = 0.001
"""Risk of naming any part of a sound fabric, if its residuals are exchangeable."""

_LEAST_LIKELY = 1e-3
"""Parts that are so much less likely than the first do not count, however many."""

_SAME = 1e-6
"""Gains that differ by less are the same."""

_MOST_COUNTERS = 25.0
_OF_MEAN = 0.75
"""Least median of their slowness, of its mean: single slow paths raise the mean."""

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
    """One of some parts, the most likely first, explains slow paths.

    `likely` are their shares of the likelihood, together 1. `gain` is the
    log-likelihood ratio of the first, given the suspects before it; `p` is the chance
    that a sound fabric reaches it. A path across it takes longer by the share `slower`,
    on average of `paths` measured ones.
    """

    parts: tuple[Part, ...]
    likely: tuple[float, ...]
    gain: float
    p: float
    slower: float
    paths: int

    @property
    def is_single(self) -> bool:
        """Return True if the paths tell which part it is."""
        return len(self.parts) == 1


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


def located(
    graph: Graph,
    measured: Sequence[MeasuredPaths],
    errors: Shares | None = None,
    *,
    risk: float = RISK,
    most: int = 2,
    seed: int = 1,
) -> list[Suspect]:
    """Name the parts that explain slow paths, the strongest first; none if sound.

    `measured` has an entry for each routing under which paths were measured. `errors`
    are counts by link, of the same time.
    """
    samples = [_sample(graph, paths) for paths in measured]
    prior = np.zeros(len(graph.links) + len(graph.switches))
    if errors is not None:
        prior[: len(graph.links)] = counter_llr(errors)
    search = Search(samples, prior)
    chance = chance_of(search, np.random.default_rng(seed))
    suspects = []
    chosen = _significant(search, chance, most, risk)
    for part, gain in chosen:
        gains = search.gains([other for other, _ in chosen if other != part])
        slowed = {
            one: shown
            for one in likely_parts(gains, part)
            if (shown := _slowed(samples, measured, one)) is not None
        }
        if not slowed:
            continue
        names = [*slowed]
        likely = np.exp(gains[names] - gains[names].max())
        suspects.append(
            Suspect(
                tuple(part_of(graph, number) for number in names),
                tuple((likely / likely.sum()).tolist()),
                gain,
                chance(gain),
                *slowed[names[0]],
            )
        )
    return suspects


def _sample(graph: Graph, paths: MeasuredPaths) -> Sample:
    marks = incidence(graph, paths.crossings, paths.residual.size)
    # A shift of the same size shows less where paths scatter more.
    marks.data *= (paths.scatter.min() / paths.scatter)[marks.indices]
    return Sample(marks, paths.residual, paths.group)


def _significant(
    search: Search, chance: Callable[[float], float], most: int, risk: float
) -> list[tuple[int, float]]:
    """Return the largest set of parts whose gains a sound fabric hardly reaches."""
    for count in range(most, 0, -1):
        chosen = search.chosen(count)
        if all(chance(gain) <= risk for _, gain in chosen):
            return chosen
    return []


def likely_parts(gains: Shares, part: int) -> list[int]:
    """Return the most likely parts that have `LIKELY` of the likelihood together.

    Their gains are log-likelihoods. Parts as likely as the last one belong to them;
    `part` does in any case.
    """
    order = np.argsort(-gains, kind="stable")
    weight = np.exp(gains[order] - gains[order[0]])
    weight[weight < _LEAST_LIKELY] = 0.0
    count = int(np.searchsorted(np.cumsum(weight), LIKELY * weight.sum())) + 1
    last = min(gains[order[count - 1]], gains[part])
    return list(map(int, order[gains[order] >= last - _SAME]))


def _slowed(
    samples: Sequence[Sample], measured: Sequence[MeasuredPaths], part: int
) -> tuple[float, int] | None:
    """Return by how much a part slows its paths, and how many; None: only some of them.

    Looks at the sample whose paths cross it for certain, if there is one. A load that
    the routes do not show, as of wrong tables, slows some.
    """

    def share(number: int) -> float:
        marks = samples[number].marks
        own = marks.data[slice(*marks.indptr[part : part + 2])]
        return float(own.max(initial=0.0))

    best = max(range(len(samples)), key=share)
    marks, paths = samples[best].marks, measured[best]
    own = slice(*marks.indptr[part : part + 2])
    across = np.zeros(paths.residual.size, dtype=bool)
    across[marks.indices[own]] = True
    if not across.any():
        return None
    usual = float(np.median(paths.residual[~across])) if not across.all() else 0.0
    slow = np.clip(paths.residual[across] - usual, -CLIP, CLIP)
    if np.median(slow) < _OF_MEAN * slow.mean():
        return None
    shares, residual = marks.data[own], paths.residual[marks.indices[own]]
    shift = float(shares @ residual / (shares @ shares) * paths.scatter.min())
    return float(np.expm1(shift)), shares.size


def counter_llr(errors: Shares) -> Shares:
    """Return the LLR of more errors than the median of all links has (Poisson)."""
    usual = max(float(np.median(errors)), 0.5)
    more = np.maximum(errors, usual)
    return np.minimum(more * np.log(more / usual) - (more - usual), _MOST_COUNTERS)
