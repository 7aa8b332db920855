"""The trial of all places of a machine: nodes first, then their metrics.

A machine has thousands of numbers; some of them look bad by chance. All nodes are one
family of tests: Holm's procedure keeps the risk to convict any compliant one at the
seller's risk, for any dependence between their numbers. A node is tried by all its
metrics together, so more damage is never harder to convict. Pairs of nodes that are no
suspects are a second family; where there are pairs, each family has half of the risk. A
criterion with a smaller risk of its own is one more family, so that this risk holds for
the criterion, not for each place.

Order statistics of few allocations cannot convict one of many. So for them the first
quarter of the allocations only picks suspects, leniently, and the others convict.

The list of places worth a look has a weaker rule, a false discovery rate, and decides
nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import polars as pl

from seatrial.criteria.criteria import Risks
from seatrial.judge.attribution import attributed, bad_parts
from seatrial.judge.common_time import in_common_time
from seatrial.judge.group import Group
from seatrial.judge.multiple_testing import (
    cauchy,
    discoveries,
    holm,
    inheritance,
    rank_p,
)
from seatrial.judge.order_statistics import quantiles
from seatrial.judge.row_numbers import RowNumbers, ranked
from seatrial.judge.sampling import Marks, Values

_LENIENT = 0.1
"""Probability to suspect a compliant place by its low rank."""

_ALLOCATIONS_FOR_SUSPICION = 4
"""Allocations for each one that picks suspects."""


@dataclass(frozen=True)
class Tried:
    """A group after the trial; all arrays are (places,).

    The first `screened` allocations picked the suspects of order statistics. `p` is
    NaN for places that were not tried, `family` counts the nodes or pairs that were.
    `covered` places are attributed to another suspect, which is tried in their place:
    pairs to a node, pairs and nodes to a leaf.
    """

    group: Group
    screened: int
    suspected: Marks
    p: Values
    family: int
    convicted: Marks
    discovered: Marks
    covered: Marks


def screening(units: int) -> int:
    """Return the number of allocations that pick suspects."""
    return max(1, units // _ALLOCATIONS_FOR_SUSPICION)


def total_for(convicting: int) -> int:
    """Return the fewest allocations that leave `convicting` of them to convict."""
    total = convicting + 1
    while total - screening(total) < convicting:
        total += 1
    return total


def tried(groups: Sequence[Group], risks: Risks) -> list[Tried]:
    """Try all places of a machine together.

    A single hypothesis needs no suspicion: all its allocations count.
    """
    if not groups:
        return []
    groups = in_common_time(groups)
    alone = sum(len(group.levels) for group in groups) == 1
    screened = [0 if alone else screening(group.units) for group in groups]
    ranks = _ranks(groups, screened)
    picked = [
        _suspected(group, first, ranks.get(number))
        for number, (group, first) in enumerate(zip(groups, screened, strict=True))
    ]
    covered = _covered(groups, picked)
    suspected = [marks & ~pairs for marks, pairs in zip(picked, covered, strict=True)]
    metrics = sum(group.shares for group in groups)
    trials = list(zip(groups, screened, suspected, covered, strict=True))
    p = [_p(*trial, metrics) for trial in trials]
    convicted, families = _convicted(groups, p, risks.seller)
    every_p = np.concatenate(p)
    family = ~np.isnan(every_p)
    discovered = np.zeros_like(family)
    discovered[family] = discoveries(every_p[family], risks.discovery)
    ends = np.cumsum([len(values) for values in p])[:-1]
    marks = (np.split(convicted, ends), np.split(discovered, ends))
    return list(map(Tried, groups, screened, suspected, p, families, *marks, covered))


def _convicted(
    groups: Sequence[Group], p: Sequence[Values], risk: float
) -> tuple[Marks, list[int]]:
    """Convict places of the whole machine; count the family of each group."""
    every_p = np.concatenate(p)
    places = [len(values) for values in p]
    of_pairs = np.repeat([group.of_pairs for group in groups], places)
    owner = _owners(groups)
    family = ~np.isnan(every_p)
    both = bool((family & of_pairs).any() and (family & ~of_pairs).any())
    convicted = np.zeros_like(family)
    sizes = {}
    for pairs in (False, True):
        own = of_pairs == pairs
        convicted[own], sizes[pairs] = inheritance(
            every_p[own], owner[own], risk / 2 if both else risk
        )
    names = [group.criterion.name for group in groups]
    smaller = {
        group.criterion.name: group.criterion.risks.seller
        for group in groups
        if group.criterion.risks.seller < risk
    }
    for name, own_risk in smaller.items():
        own = family & np.repeat([other == name for other in names], places)
        convicted[own] &= holm(every_p[own], own_risk)
    return convicted, [sizes[group.of_pairs] for group in groups]


def _owners(groups: Sequence[Group]) -> RowNumbers:
    """Number the node of each place, the pair, or the case that has neither."""
    ends = pl.col("node", "source", "destination").cast(pl.Categorical)
    places = pl.concat(
        group.names.select(ends, case=pl.lit(" ".join(group.case), pl.Categorical))
        for group in groups
    )
    texts = sorted({*chain(*(column.unique() for column in places))} - {None})
    first, second = (
        name.cast(pl.Enum(texts)).to_physical().cast(pl.Int64)
        for name in (
            pl.coalesce("node", "source", "case"),
            pl.when(pl.col("node").is_null()).then("destination"),
        )
    )
    # In the order of their names: cn01, then cn01 - cn02.
    width = len(texts) + 1
    number = first * width + second.fill_null(-1) + 1
    return ranked(places.select(number).to_series().to_numpy(), width**2)


def _ranks(groups: Sequence[Group], screened: Sequence[int]) -> dict[int, Values]:
    """Combine the ranks of each node in all its comparisons, by number of the group.

    Its metrics depend on each other: a slow node is slow in many. Only order statistics
    need suspects.
    """
    tables = {}
    for number, (group, first) in enumerate(zip(groups, screened, strict=True)):
        if group.alike and group.part in ("", "node") and group.at.ordered:
            values = np.where(group.sound[:, np.newaxis], group.levels, np.nan)
            node = group.names["node"].cast(pl.String).fill_null("")
            columns = {"node": node, "p": rank_p(values[:, :first])}
            tables[number] = pl.DataFrame(columns).with_columns(group=number)
    if not tables:
        return {}
    # A node with several sockets or rails is as bad as the worst of them.
    worst = (pl.col("p").min() * pl.len()).clip(upper_bound=1.0)
    by_node = pl.concat(tables.values()).group_by("group", "node", maintain_order=True)
    matrix = by_node.agg(worst).pivot("group", index="node", values="p")
    combined = cauchy(matrix.drop("node").to_numpy(order="c"))
    rank_of = dict(zip(matrix["node"], combined, strict=True))
    return {
        number: np.array([rank_of[node] for node in table["node"]])
        for number, table in tables.items()
    }


def _suspected(group: Group, first: int, rank: Values | None) -> Marks:
    """Pick the places that miss the limit; by order statistics, in the first units.

    Each further suspect makes it harder to convict the others. But for a node with a
    low rank in all its comparisons half of the tolerance is enough. A place that these
    allocations did not measure is a suspect, too; one that may be sound is none.
    """
    limit, at = group.scale.limit, group.at
    below: Marks = at.centre < limit
    if at.ordered:
        early = group.levels[:, :first] if first else group.levels
        centre = quantiles(early, group.scale.below)
        lenient = np.isnan(centre) | (centre < limit)
        if rank is not None:
            lowest = max(_LENIENT, 2 / max(int(group.sound.sum()), 1))
            lenient |= (rank <= lowest) & (centre < limit / 2)
        below = lenient
    return np.asarray(group.sound & below & (group.doubt == ""))


def _covered(groups: Sequence[Group], suspected: Sequence[Marks]) -> list[Marks]:
    """Mark places that are attributed to a suspect in any metric of the same case.

    The suspect is tried in their place, so that it is named once.
    """
    bad = bad_parts(zip(groups, suspected, strict=True))
    return [attributed(group, bad[group.case]) for group in groups]


def _p(
    group: Group, first: int, suspected: Marks, covered: Marks, metrics: int
) -> Values:
    """Return p of 'it reaches the limit' of each place that is tried.

    By order statistics these are the suspects, and the allocations that picked them do
    not count. p is divided by the share of the risk that this look may spend on it.
    `metrics` is the number of metrics that need a bound on what their places share.
    """
    at = group.at
    free = group.sound & (at.n > 0) & ~covered & (group.doubt == "")
    on_trial = suspected if at.ordered else free
    spendable = group.seller / group.criterion.risks.seller
    common_risk = group.seller / metrics if group.shares else None
    below = at.p_below(group.scale.limit, first, common_risk)
    p = np.minimum(1.0, below / spendable)
    return np.where(on_trial, p, np.nan)
