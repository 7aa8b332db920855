"""Screening: some allocations pick suspects, the others convict them.

A machine has thousands of numbers; some of them look bad by chance. So the first
quarter of the allocations only picks suspects, leniently, and the others, which had no
part in it, must convict them. All suspects of the machine, of all criteria, are one
family: Holm's procedure keeps the risk that any sound one is convicted at the seller's,
however their numbers depend on each other. The list of suspects worth a look has a
weaker rule, a false discovery rate, and decides nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from seatrial.criteria.criteria import Risks
from seatrial.judge import bounds
from seatrial.judge.multiple_testing import cauchy, discoveries, holm, rank_p
from seatrial.judge.place_groups import Group
from seatrial.judge.sampling import Marks, Values

_LENIENT = 0.1
"""Probability to suspect a sound place by its low rank."""

_ALLOCATIONS_FOR_SUSPICION = 4
"""Allocations for each one that picks suspects."""


@dataclass(frozen=True)
class Tried:
    """A group after the trial; all arrays are (places,).

    The first `screened` allocations picked the suspects; `p` is NaN for the others.
    `covered` pairs are those of a suspected node, which is tried in their place.
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
    alone = sum(len(group.levels) for group in groups) == 1
    screened = [0 if alone else screening(group.units) for group in groups]
    ranks = _ranks(groups, screened)
    suspected = [
        _suspected(group, first, rank)
        for group, first, rank in zip(groups, screened, ranks, strict=True)
    ]
    covered = _covered(groups, suspected)
    suspected = [
        marks & ~spoken_for
        for marks, spoken_for in zip(suspected, covered, strict=True)
    ]
    p = [
        _p_of_suspects(*each) for each in zip(groups, screened, suspected, strict=True)
    ]
    family = np.concatenate([[], *(each[~np.isnan(each)] for each in p)])
    ends = np.cumsum([marks.sum() for marks in suspected])[:-1]
    verdicts = np.split(holm(family, risks.seller), ends)
    found = np.split(discoveries(family, risks.discovery), ends)
    return [
        Tried(
            group=groups[number],
            screened=screened[number],
            suspected=marks,
            p=p[number],
            convicted=_of(marks, verdicts[number])
            & (p[number] <= groups[number].criterion.risks.seller),
            discovered=_of(marks, found[number]),
            covered=covered[number],
        )
        for number, marks in enumerate(suspected)
    ]


def _of(marks: Marks, answers: Marks) -> Marks:
    """Return the answers at the marked places, False elsewhere."""
    result = np.zeros(len(marks), dtype=bool)
    result[marks] = answers
    return result


def _ranks(groups: Sequence[Group], screened: Sequence[int]) -> list[Values | None]:
    """Combine how low a node ranks in all that it is compared in; None: not compared.

    Its metrics depend on each other: a slow node is slow in many.
    """
    own = {
        number: rank_p(
            np.where(group.sound[:, np.newaxis], group.levels, np.nan)[:, :first]
        )
        for number, (group, first) in enumerate(zip(groups, screened, strict=True))
        if group.alike and not group.of_pairs
    }
    names: dict[str, int] = {}
    rows = {
        number: np.array(
            [
                names.setdefault(name, len(names))
                for name in groups[number].names["node"].cast(pl.String).fill_null("")
            ]
        )
        for number in own
    }
    table = np.full((len(names), max(len(own), 1)), np.nan)
    for column, (number, p) in enumerate(own.items()):
        # A node with several sockets or rails is as bad as the worst of them.
        worst = np.full(len(names), np.inf)
        np.minimum.at(worst, rows[number], p)
        times = np.bincount(rows[number], minlength=len(names))
        there = times > 0
        table[there, column] = np.minimum(1.0, worst[there] * times[there])
    combined = cauchy(table)
    return [
        combined[rows[number]] if number in own else None
        for number in range(len(groups))
    ]


def _suspected(group: Group, first: int, rank: Values | None) -> Marks:
    """Pick the places that may be bad, by the first allocations: they miss the limit.

    More would not do: each suspect makes it harder to convict the others. But a node
    that ranks low in all that it is compared in needs to be off by half of what is
    tolerated only. A place that these allocations did not measure may be bad, too.
    """
    limit = group.scale.limit
    levels = group.levels[:, :first] if first else group.levels
    centre = bounds.centre(levels, group.scale.method)
    below: Marks = np.isnan(centre) | (centre < limit)
    if rank is not None:
        lowest = max(_LENIENT, 2 / max(int(group.sound.sum()), 1))
        below |= (rank <= lowest) & (centre < limit / 2)
    return group.sound & below


def _covered(groups: Sequence[Group], suspected: Sequence[Marks]) -> list[Marks]:
    """Mark pairs of a node that is a suspect in any metric of the same case.

    The node is tried for them: a bad one is named once, not with all its pairs.
    """
    nodes: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for group, marks in zip(groups, suspected, strict=True):
        if group.of_nodes:
            nodes[group.case].update(group.names["node"].filter(pl.Series(marks)))
    return [
        touching(group.names, nodes[group.case])
        if group.of_pairs
        else np.zeros(len(marks), dtype=bool)
        for group, marks in zip(groups, suspected, strict=True)
    ]


def touching(pairs: pl.DataFrame, nodes: Collection[str]) -> Marks:
    """Mark the pairs that contain one of these nodes."""
    ends = pairs.select(
        pl.col("source", "destination").cast(pl.String).is_in(list(nodes))
    ).fill_null(value=False)
    return ends.select(pl.any_horizontal(pl.all())).to_series().to_numpy()


def _p_of_suspects(group: Group, first: int, suspected: Marks) -> Values:
    """Return p of 'it reaches the limit', from allocations that picked no suspects.

    Where less than the whole risk may be spent at this look, p grows accordingly.
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
