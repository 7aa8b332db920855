"""Leafs that several failing pairs share, although no node of them fails.

With static routes a bad up-link of a leaf carries some destinations only: it slows a
part of the pairs of all its nodes. The leaf is named as worth a look, and convicted of
nothing: which up-link it is, only the routes tell.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl
import scipy

from seatrial.judge.network_parts import Leafs
from seatrial.judge.verdicts import FAIL, Ruling

_LEAST = 3
"""Failing pairs that make a leaf worth a look."""


@dataclass(frozen=True)
class SharedLeaf:
    """A leaf with failing pairs, `count` of `pairs` with other leafs."""

    leaf: str
    count: int
    pairs: int

    def __str__(self) -> str:
        return (
            f"{self.leaf}: {self.count} of its {self.pairs} pairs with other leafs "
            "fail, more than chance explains: look at its up-links"
        )


def shared_leafs(
    ruled: Iterable[Ruling], leafs: Leafs, risk: float
) -> list[SharedLeaf]:
    """Return the leafs with more failing pairs than the others, the worst first.

    The number of failing pairs of a leaf is compared with the share of such pairs that
    do not touch it (binomial, Bonferroni over leafs and rulings, at `risk`). Pairs of
    a leaf that is named do not count for the others.
    """
    ruled = [ruling for ruling in ruled if ruling.part == "pair"]
    found: dict[str, SharedLeaf] = {}
    for ruling in ruled:
        for one in _of_ruling(ruling, leafs, risk / len(ruled)):
            if one.leaf not in found or one.count > found[one.leaf].count:
                found[one.leaf] = one
    return sorted(found.values(), key=lambda one: -one.count)


def _of_ruling(ruling: Ruling, leafs: Leafs, risk: float) -> list[SharedLeaf]:
    fails = ruling.verdict == FAIL
    if not leafs or int(fails.sum()) < _LEAST:
        return []
    names = ruling.names.select(pl.col("source", "destination").cast(pl.String))
    ends = [
        frozenset(leafs.get(node, "") for node in pair) for pair in names.iter_rows()
    ]
    between = [len(pair) > 1 and "" not in pair for pair in ends]
    pairs = Counter(ends[row] for row, own in enumerate(between) if own)
    failing = Counter(ends[row] for row, own in enumerate(between & fails) if own)
    measured = Counter[str]()
    for pair, count in pairs.items():
        measured.update(dict.fromkeys(pair, count))
    found = []
    while failing:
        counts = Counter[str]()
        for pair, count in failing.items():
            counts.update(dict.fromkeys(pair, count))
        leaf, count = counts.most_common(1)[0]
        others = pairs.total() - measured[leaf]
        share = (failing.total() - count + 1) / (others + 1)
        p = scipy.stats.binom.sf(count - 1, measured[leaf], min(share, 1.0))
        if count < _LEAST or p * len(measured) > risk:
            break
        found.append(SharedLeaf(leaf, count, measured[leaf]))
        failing = Counter({k: n for k, n in failing.items() if leaf not in k})
    return found
