"""Levels of the parts of a network, from numbers of pairs.

A pair is as good as the worst part on its path: the node that sends, the one that
receives, their leafs, the way between these. So a part is as good as its best pairs,
and a pair counts for a part only if each other part on its path is known to be as good.
A sound node is not blamed for slow partners, however many they are, and a node of a
leaf with a slow uplink is judged by the traffic within the leaf.

Latencies add up instead: then the level of a part is that of its pairs whose other
parts are sound.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from seatrial.judge.by_rows import by_rows
from seatrial.judge.row_numbers import wide_enough

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
Marks = npt.NDArray[np.bool_]

NO_PART = -1

_BETTER = 0.75
"""Quantile of its pairs by which a part is judged at first, to stand bad links."""

_ROUNDS = 4
"""Rounds in which levels of parts and the pairs that count for them settle."""

_ALIKE, _CLUSTER = 2.0, 4.0
"""Differences between parts, and pairs, that are noise, in standard errors of a pair.

Chosen by simulation of 4 to 64 nodes, 0 to 87 % of them slow by 5 to 30 %.
"""

_CELLS = 1 << 21
"""Cells of a padded table of pairs; further parts are in further tables."""


@dataclass(frozen=True)
class Parts:
    """Levels of the parts of a network.

    `levels` has the shape (parts, allocations), NaN where no pair tells. `typical`
    (parts,) is the level over all allocations. `beside` (parts,) is the best typical
    level of the worst other part on any of its paths, -inf without one: if that is bad,
    each pair has a bad part beside this one. `alone` (parts,) marks parts without two
    pairs of different counterparts.
    """

    levels: Floats
    typical: Floats
    beside: Floats
    alone: Marks


def part_levels(levels: Floats, parts: Integers) -> Parts:
    """Estimate the level of each part in each allocation.

    `levels` (pairs, allocations): higher is better, NaN was not measured. `parts`
    (pairs, parts of a path) numbers the parts from 0, `NO_PART` where a path has fewer;
    columns 0 and 1, 2 and 3, ... are counterparts.

    The medians over the allocations decide which pairs count for a part, so that these
    are the same in each allocation: those beside parts that are as good, near the
    better quartile of them or better. All of those count, so a level has no bias.
    """
    count = int(parts.max(initial=NO_PART)) + 1
    middle = by_rows(lambda rows: _sorted_median(np.sort(rows, axis=1)), levels)
    noise = _standard_error(levels)
    paths = _Paths.of(parts, np.isfinite(middle))
    typical = paths.best(middle[paths.pair], count)
    counting = np.zeros(len(paths.part), dtype=bool)
    least = np.full(count, np.inf)
    for _ in range(_ROUNDS):
        before = counting
        counting = paths.beside(typical) >= typical[paths.part] - _ALIKE * noise
        told = np.bincount(paths.part[counting], minlength=count) > 0
        counting |= before & ~told[paths.part]
        if np.array_equal(counting, before):
            break
        for part, table in paths.tables(middle, counting):
            least[part] = _sorted_quantile(table, _BETTER) - _CLUSTER * noise
            typical[part] = _sorted_median(table, least[part])
    near = counting & (middle[paths.pair] >= least[paths.part])
    result = np.full((count, levels.shape[1]), np.nan)
    for unit, column in enumerate(levels.T):
        for part, table in paths.tables(column, near):
            result[part, unit] = _sorted_median(table)
    beside = paths.best(paths.beside(typical), count)
    return Parts(result, typical, beside, paths.alone(count))


def _standard_error(levels: Floats) -> float:
    """Return the standard error of a pair's median over the allocations.

    From differences of successive allocations, without what pairs have in common; 0
    with a single allocation.
    """
    units = levels.T
    steps = (_finite(later - unit) for unit, later in pairwise(units))
    rests = [np.abs(own - np.median(own)) for own in steps if own.size]
    if not rests:
        return 0.0
    sigma = 1.4826 * float(np.median(np.concatenate(rests))) / np.sqrt(2)
    return float(1.2533 * sigma / np.sqrt(len(units)))


def _finite(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def _sorted_median(rows: Floats, least: Floats | None = None) -> Floats:
    """Return the median of sorted rows with NaN at the end; of values >= `least`."""
    first: Integers | int = 0
    if least is not None:
        first = np.sum(rows < least[:, np.newaxis], axis=1)
    last = np.sum(np.isfinite(rows), axis=1) - 1
    middle = np.column_stack([(first + last) // 2, (first + last + 1) // 2])
    return np.asarray(np.take_along_axis(rows, middle, axis=1).mean(axis=1))


def _sorted_quantile(rows: Floats, quantile: float) -> Floats:
    """Return a quantile of sorted rows with NaN at the end, the higher of two."""
    last = np.sum(np.isfinite(rows), axis=1) - 1
    rank = np.ceil(quantile * last).astype(np.int64)
    return np.asarray(np.take_along_axis(rows, rank[:, np.newaxis], axis=1)[:, 0])


@dataclass(frozen=True)
class _Paths:
    """The measured pairs of each part, sorted by part.

    `paths` (pairs, parts of a path); entry by entry `part`, its `pair` and its `column`
    of the path.
    """

    paths: Integers
    part: Integers
    pair: Integers
    column: Integers

    @classmethod
    def of(cls, parts: Integers, measured: Marks) -> "_Paths":
        """List measured pairs by part."""
        pairs, most = parts.shape
        part = parts.T.ravel()
        kept = np.flatnonzero((part != NO_PART) & np.tile(measured, most))
        kept = kept.astype(wide_enough(part.size))
        order = kept[np.argsort(part[kept], kind="stable")]
        column, pair = np.divmod(order, order.dtype.type(pairs))
        return cls(parts, part[order], pair, column.astype(np.int8))

    def best(self, values: Floats, count: int) -> Floats:
        """Return the best of the values of each part's entries, -inf without one."""
        best = np.full(count, -np.inf)
        if self.part.size:
            first = np.flatnonzero(np.diff(self.part, prepend=NO_PART))
            best[self.part[first]] = np.maximum.reduceat(values, first)
        return best

    def beside(self, typical: Floats) -> Floats:
        """Return the level of the worst other part on the path of each entry."""
        padded = np.append(typical, np.inf)  # NO_PART is the last one

        def two_worst(paths: Integers) -> Floats:
            worst: Floats = np.partition(padded[paths], 1, axis=1)[:, :2]
            return worst

        first, second = by_rows(two_worst, self.paths).T
        beside: Floats = first[self.pair]
        own_is_worst = typical[self.part] <= beside
        beside[own_is_worst] = second[self.pair[own_is_worst]]
        return beside

    def alone(self, count: int) -> Marks:
        """Mark parts whose pairs all have the same counterpart."""
        opposite = np.minimum(self.column ^ 1, self.paths.shape[1] - 1)
        counterpart = self.paths[self.pair, opposite].astype(np.float64)
        return self.best(counterpart, count) <= -self.best(-counterpart, count)

    def tables(
        self, values: Floats, chosen: Marks
    ) -> Iterator[tuple[Integers, Floats]]:
        """Yield parts, and sorted values of their chosen entries, padded with NaN."""
        entries = np.flatnonzero(chosen & np.isfinite(values)[self.pair])
        entries = entries.astype(self.pair.dtype)
        starts = np.flatnonzero(np.diff(self.part[entries], prepend=NO_PART))
        sizes = np.diff(starts, append=entries.size)
        largest_first = np.argsort(-sizes, kind="stable")
        while largest_first.size:
            width = int(sizes[largest_first[0]])
            block = largest_first[: max(1, _CELLS // width)]
            largest_first = largest_first[len(block) :]
            column = np.arange(width)
            filled = column < sizes[block, np.newaxis]
            table = np.full(filled.shape, np.nan)
            positions = (starts[block, np.newaxis] + column)[filled]
            table[filled] = values[self.pair[entries[positions]]]
            table.sort(axis=1)
            yield self.part[entries[starts[block]]], table
