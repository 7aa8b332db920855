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
from seatrial.judge.sampling import Marks
from seatrial.judge.verdicts import FAIL, Ruling

_Pairs = Counter[tuple[str, str]]
"""Numbers of pairs of nodes, by their two leafs."""

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
    pairs, failing = _between(ruling.names, fails, leafs)
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


def _between(names: pl.DataFrame, fails: Marks, leafs: Leafs) -> tuple[_Pairs, _Pairs]:
    """Count the pairs, and the failing pairs, between two leafs."""
    first, second = (
        pl.col(end).cast(pl.String).replace_strict(leafs, default=None)
        for end in ("source", "destination")
    )
    counts = (
        names.lazy()
        .select(first=first, second=second, fails=pl.Series(fails))
        .filter(pl.col("first") != pl.col("second"))
        .group_by(
            one=pl.min_horizontal("first", "second"),
            other=pl.max_horizontal("first", "second"),
            maintain_order=True,
        )
        .agg(pl.len(), pl.col("fails").sum())
        .collect()
    )
    rows = counts.rows()
    pairs = Counter({(one, other): count for one, other, count, _ in rows})
    failing = Counter({(one, other): bad for one, other, _, bad in rows if bad})
    return pairs, failing
