"""Places of a criterion: pairs, their nodes, nodes, or the whole allocation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.criteria import Criterion
from seatrial.judge import bounds
from seatrial.judge.findings import METHODS, Finding
from seatrial.judge.multiple_testing import share_of_look
from seatrial.judge.sampling import (
    LEAST_ALIKE,
    Marks,
    Sampled,
    Scale,
    Values,
    beside_the_others,
    scale_of,
)
from seatrial.model.places import PLACE, both_ways

Texts = npt.NDArray[np.object_]

WAY = "way"
"""Column with 'sending' or 'receiving', where a pair was measured both ways."""

_BETTER = 0.75
"""Quantile of its pairs by which a node is judged: most of them have a good partner."""

_LEAST_SHAPE_P = 1e-3
_LEAST_DRIFT_P = 5e-3


@dataclass(frozen=True)
class Group:
    """A criterion and its places of one kind, in one case.

    `levels` has the shape (places, allocations), on the scale of the criterion;
    `names` has a row per place: the columns of `PLACE`, and `WAY` for nodes of pairs.
    `trouble` (places,) is the reason why a place cannot be judged, or ''. `share` is
    the part of the risks that this look may spend. `nodes` are the nodes of pairs,
    judged before them.
    """

    subject: Finding
    criterion: Criterion
    scale: Scale
    names: pl.DataFrame
    levels: Values
    trouble: Texts
    share: float
    nodes: "Group | None" = None

    @property
    def alike(self) -> bool:
        """Whether places are held to the typical one, not to a limit."""
        return self.criterion.kind == "sameness"

    @property
    def of_pairs(self) -> bool:
        """Whether the places are pairs, which are judged after their nodes."""
        return self.nodes is not None

    @property
    def of_nodes(self) -> bool:
        """Whether the places are nodes, judged by their pairs."""
        return WAY in self.names.columns

    @property
    def case(self) -> tuple[str, ...]:
        """The key of the case."""
        return (self.subject.check, self.subject.case, self.subject.environment)

    @property
    def units(self) -> int:
        """All allocations, complete or not."""
        return int(self.levels.shape[1])

    @property
    def buyer(self) -> float:
        """The buyer's risk at this look."""
        return self.criterion.risks.buyer * self.share

    @property
    def seller(self) -> float:
        """The seller's risk at this look."""
        return self.criterion.risks.seller * self.share

    @cached_property
    def n(self) -> npt.NDArray[np.int64]:
        """Allocations in which each place was measured, or should have been."""
        return np.asarray((~np.isnan(self.levels)).sum(axis=1))

    @cached_property
    def centre(self) -> Values:
        """The level of each place."""
        return bounds.centre(self.levels, self.scale.method)

    @cached_property
    def lower(self) -> Values:
        """The lower bound of each level, at the buyer's risk."""
        return bounds.lower_bound(self.levels, self.scale.method, self.buyer)

    @cached_property
    def sound(self) -> Marks:
        """Places that can be judged at all."""
        return np.asarray(self.trouble == "", dtype=bool)

    @cached_property
    def drifts(self) -> bool:
        """Whether the typical level moved in the course of the allocations.

        Comparisons within an allocation do not drift.
        """
        if self.alike or not self.sound.any():
            return False
        usable = self.levels[self.sound]
        measured = np.where(np.isfinite(usable), usable, np.nan)
        measured = measured[:, ~np.isnan(measured).all(axis=0)]
        with np.errstate(all="ignore"):
            typical = np.nanmedian(measured, axis=0)
        return bounds.drift_p(typical) < _LEAST_DRIFT_P

    @cached_property
    def passes(self) -> Marks:
        """Places that reach the limit, at the buyer's risk."""
        reached: Marks = self.sound & (self.lower >= self.scale.limit)
        return reached & self.agree(self.levels >= self.scale.limit)

    def agree(self, met: Marks) -> Marks:
        """Mark places whose values all agree; without drift all places."""
        if not self.drifts:
            return np.ones(len(self.levels), dtype=bool)
        return np.asarray(np.all(met | np.isnan(self.levels), axis=1))

    @property
    def unattributed(self) -> Marks:
        """Allocations without any number, which blame none of their places."""
        missing = np.isneginf(self.levels).all(axis=0)
        return np.asarray(missing & (len(self.levels) > 1))


def groups_of(subject: Finding, criterion: Criterion, data: Sampled) -> Iterator[Group]:
    """Yield the groups of one metric: nodes of pairs, the pairs, all other places."""
    scale = scale_of(criterion)
    units = np.cumsum(data.per_run).tolist()
    share = share_of_look(units, criterion.looks, criterion.cap)
    ends = data.places.select("source", "destination")
    pairs = ends.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    for of_pairs in (True, False):
        rows = np.flatnonzero(pairs.to_numpy() == of_pairs)
        if not rows.size:
            continue
        levels = scale.levels(data.values[rows])
        trouble = _without_number(levels, "nothing was measured")
        names = data.places[rows]
        group = Group(subject, criterion, scale, names, levels, trouble, share)
        nodes = _checked(_nodes_of(group)) if of_pairs else None
        if nodes is not None:
            yield nodes
        yield replace(_checked(group), nodes=nodes)


def _without_number(levels: Values, reason: str) -> Texts:
    """Return the troubles (places,): `reason` for places without a level, else ''."""
    return np.where(np.isnan(levels).all(axis=1), reason, "").astype(object)


def _checked(group: Group) -> Group:
    """Compare places for sameness; check the assumptions of the method."""
    trouble = group.trouble.copy()
    levels = group.levels
    if group.alike:
        levels = beside_the_others(np.where(group.sound[:, np.newaxis], levels, np.nan))
        if group.sound.sum() < LEAST_ALIKE:
            trouble[group.sound] = f"sameness takes at least {LEAST_ALIKE} places"
    group = replace(group, levels=levels, trouble=trouble)
    usable = levels[trouble == ""]
    if group.scale.method == "t" and usable.size:
        p = bounds.t_shape_p(usable)
        if p < _LEAST_SHAPE_P:
            return _by_order(
                group, f"the values are not {group.criterion.model}, p = {p:.1g}"
            )
    return group


def _by_order(group: Group, reason: str) -> Group:
    """Judge by order statistics, which hold for any distribution.

    Their level is the median; it is that of logarithms, too.
    """
    method = f"{METHODS['any']} ({reason})"
    return replace(
        group,
        scale=replace(group.scale, method="order"),
        subject=replace(group.subject, method=method),
    )


def _nodes_of(pairs: Group) -> Group:
    """Judge each node by the better quartile of its pairs in each allocation.

    A pair is as good as the worse of its nodes, so a bad node spoils all its pairs,
    while most pairs of a good node are good. Rails count one by one, and so do the
    directions of numbers that were taken in both.
    """
    directed = both_ways(pairs.names)
    units = [f"{number}" for number in range(pairs.units)]
    levels = np.where(pairs.sound[:, np.newaxis], pairs.levels, np.nan)
    table = pairs.names.select(
        pl.col("source", "destination", "hca").cast(pl.String)
    ).with_columns(pl.DataFrame(levels, schema=units).fill_nan(None))
    ends = pl.concat(
        table.select(
            pl.col(node).alias("node"),
            "hca",
            pl.lit(way if directed else None, dtype=pl.String).alias(WAY),
            *units,
        )
        for node, way in (("source", "sending"), ("destination", "receiving"))
    )
    by_node = ends.group_by("node", "hca", WAY, maintain_order=True).agg(
        pl.col(unit).quantile(_BETTER, interpolation="higher") for unit in units
    )
    names = by_node.with_columns(
        source=None, destination=None, socket=pl.lit(None, dtype=pl.Int64)
    )
    node_levels = by_node.select(pl.col(units).fill_null(np.nan)).to_numpy()
    return replace(
        pairs,
        subject=replace(pairs.subject, kind="sameness" if pairs.alike else "node"),
        names=names.select(*PLACE, WAY),
        levels=node_levels,
        trouble=_without_number(node_levels, "none of its pairs was measured"),
    )
