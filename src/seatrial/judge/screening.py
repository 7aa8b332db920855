"""Screening: some allocations pick suspects, the others convict them.

A machine has thousands of numbers; some of them look bad by chance. So the first
quarter of the allocations only picks suspects, leniently, and the others convict them.
All suspects of the machine, of all criteria, are one family: Holm's procedure keeps the
risk to convict any compliant one at the seller's risk, for any dependence between their
numbers. A criterion with a smaller risk of its own is one more family, so that this
risk holds for the criterion, not for each place. The list of suspects worth a look has
a weaker rule, a false discovery rate, and decides nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from seatrial.criteria.criteria import Risks
from seatrial.judge import bounds
from seatrial.judge.attribution import attributed, bad_parts
from seatrial.judge.multiple_testing import cauchy, discoveries, holm, rank_p
from seatrial.judge.place_groups import Group
from seatrial.judge.sampling import Marks, Values

_LENIENT = 0.1
"""Probability to suspect a compliant place by its low rank."""

_ALLOCATIONS_FOR_SUSPICION = 4
"""Allocations for each one that picks suspects."""


@dataclass(frozen=True)
class Tried:
    """A group after the trial; all arrays are (places,).

    The first `screened` allocations picked the suspects; `p` is NaN for other places.
    `covered` places are attributed to another suspect, which is tried in their place:
    pairs to a node, pairs and nodes to a leaf.
    """

    group: Group
    screened: int
    suspected: Marks
    p: Values
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
    alone = sum(len(group.levels) for group in groups) == 1
    screened = [0 if alone else screening(group.units) for group in groups]
    ranks = _ranks(groups, screened)
    picked = [
        _suspected(group, first, ranks.get(number))
        for number, (group, first) in enumerate(zip(groups, screened, strict=True))
    ]
    covered = _covered(groups, picked)
    suspected = [marks & ~pairs for marks, pairs in zip(picked, covered, strict=True)]
    p = list(map(_p_of_suspects, groups, screened, suspected))
    every_p = np.concatenate(p)
    family = ~np.isnan(every_p)
    convicted, discovered = np.zeros_like(family), np.zeros_like(family)
    convicted[family] = holm(every_p[family], risks.seller)
    discovered[family] = discoveries(every_p[family], risks.discovery)
    places = [len(values) for values in p]
    names = np.repeat([group.criterion.name for group in groups], places)
    smaller = {
        group.criterion.name: group.criterion.risks.seller
        for group in groups
        if group.criterion.risks.seller < risks.seller
    }
    for name, risk in smaller.items():  # its suspects are a family of their own
        own = family & (names == name)
        convicted[own] &= holm(every_p[own], risk)
    ends = np.cumsum(places)[:-1]
    answers = [np.split(marks, ends) for marks in (convicted, discovered)]
    return list(map(Tried, groups, screened, suspected, p, *answers, covered))


def _ranks(groups: Sequence[Group], screened: Sequence[int]) -> dict[int, Values]:
    """Combine the ranks of each node in all its comparisons, by number of the group.

    Its metrics depend on each other: a slow node is slow in many.
    """
    tables = {}
    for number, (group, first) in enumerate(zip(groups, screened, strict=True)):
        if group.alike and group.part in ("", "node"):
            levels = np.where(group.sound[:, np.newaxis], group.levels, np.nan)
            node = group.names["node"].cast(pl.String).fill_null("")
            columns = {"node": node, "p": rank_p(levels[:, :first])}
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
    """Pick the places that miss the limit in the first allocations.

    Each further suspect makes it harder to convict the others. But for a node with a
    low rank in all its comparisons half of the tolerance is enough. A place that these
    allocations did not measure is a suspect, too; one that may be sound is none.
    """
    limit = group.scale.limit
    levels = group.levels[:, :first] if first else group.levels
    centre = bounds.centre(levels, group.scale.method)
    below: Marks = np.isnan(centre) | (centre < limit)
    if rank is not None:
        lowest = max(_LENIENT, 2 / max(int(group.sound.sum()), 1))
        below |= (rank <= lowest) & (centre < limit / 2)
    return np.asarray(group.sound & below & (group.doubt == ""))


def _covered(groups: Sequence[Group], suspected: Sequence[Marks]) -> list[Marks]:
    """Mark places that are attributed to a suspect in any metric of the same case.

    The suspect is tried in their place, so that it is named once.
    """
    bad = bad_parts(zip(groups, suspected, strict=True))
    return [attributed(group, bad[group.case]) for group in groups]


def _p_of_suspects(group: Group, first: int, suspected: Marks) -> Values:
    """Return p of 'it reaches the limit', from allocations that picked no suspects.

    p is divided by the share of the risk that this look may spend.
    """
    p = np.full(len(suspected), np.nan)
    if suspected.any():
        fresh = group.levels[suspected, first:]
        p[suspected] = bounds.p_below(fresh, group.scale.limit, group.scale.method)
        agree = group.agree(group.levels < group.scale.limit)
        p[suspected & ~agree] = 1.0
        spendable = max(group.share, np.finfo(np.float64).tiny)
        p[suspected] = np.minimum(1.0, p[suspected] / spendable)
    return p
