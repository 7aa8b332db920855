"""Places of a criterion: pairs, their nodes, nodes, or the whole allocation."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import log

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.criteria import Criterion
from seatrial.judge import assumptions, serial
from seatrial.judge.findings import METHODS, Finding
from seatrial.judge.levels import (
    HALF,
    SCATTER_FLOOR,
    Levels,
    Times,
    blamed,
    levels,
    rest_correlation,
    split,
)
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

_SHAPE_SHARE = 0.02
"""Part of each risk that the test of the noise's shape may spend."""

_MOST_BAD = 3
"""A place passes only if at most one of so many allocations misses the limit."""


@dataclass(frozen=True)
class Group:
    """A criterion and its places of one kind, in one case.

    `levels` has the shape (places, allocations), on the scale of the criterion;
    `names` has a row per place: the columns of `PLACE`, and `WAY` for nodes of pairs.
    `trouble` (places,) is the reason why a place cannot be judged, or ''. `share` is
    the part of the risks that this look may spend. `nodes` are the nodes of pairs,
    judged before them. `times` are the correlations of successive allocations in the
    metrics of the case; None: as these values show them.
    """

    subject: Finding
    criterion: Criterion
    scale: Scale
    names: pl.DataFrame
    levels: Values
    trouble: Texts
    share: float = field(default_factory=partial(share_of_look, 1))
    nodes: "Group | None" = None
    times: Times | None = None

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
        return self.criterion.risks.buyer * self.share * (1 - _SHAPE_SHARE)

    @property
    def seller(self) -> float:
        """The seller's risk at this look."""
        return self.criterion.risks.seller * self.share * (1 - _SHAPE_SHARE)

    @cached_property
    def at(self) -> Levels:
        """The levels of the places, with their bounds."""
        scale, least = self.scale, SCATTER_FLOOR
        if not scale.logs:
            least *= abs(scale.limit)
        return levels(
            np.where(self.sound[:, np.newaxis], self.levels, np.nan),
            scale.method,
            below=scale.below,
            shared=not self.alike,
            floor=least,
            worst=self._worst(),
            times=self.times,
        )

    def _worst(self) -> float:
        """Return the level that a missing number has in a mean.

        Half of the limit, or the lowest level of all if that is less.
        """
        half = HALF * abs(self.scale.limit)
        low = self.scale.limit - (log(2) if self.scale.logs else half)
        finite = self.levels[np.isfinite(self.levels)]
        return float(min(low, finite.min(initial=low)))

    @property
    def n(self) -> npt.NDArray[np.int64]:
        """Allocations in which each place was measured."""
        return self.at.n

    @cached_property
    def lower(self) -> Values:
        """The lower bound of each level, at the buyer's risk."""
        return self.at.lower(self.buyer)

    @cached_property
    def sound(self) -> Marks:
        """Places that can be judged at all."""
        return np.asarray(self.trouble == "", dtype=bool)

    @cached_property
    def misses(self) -> npt.NDArray[np.int64]:
        """Allocations in which each place misses the limit."""
        return np.asarray((self.levels < self.scale.limit).sum(axis=1))

    @cached_property
    def intermittent(self) -> Marks:
        """Places that miss the limit too often to pass, whatever their level is."""
        most = self.n // _MOST_BAD
        return np.asarray((self.misses > most) & (self.scale.below == HALF))

    @cached_property
    def passes(self) -> Marks:
        """Places that reach the limit, at the buyer's risk."""
        reached: Marks = self.sound & (self.lower >= self.scale.limit)
        return reached & ~self.intermittent


def groups_of(subject: Finding, criterion: Criterion, data: Sampled) -> Iterator[Group]:
    """Yield the groups of one metric: nodes of pairs, the pairs, all other places."""
    scale = scale_of(criterion)
    ends = data.places.select("source", "destination")
    pairs = ends.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    for of_pairs in (True, False):
        rows = np.flatnonzero(pairs.to_numpy() == of_pairs)
        if not rows.size:
            continue
        values = data.values[rows]
        of_rows = scale.levels(values)
        trouble = _without_number(of_rows, "nothing was measured")
        trouble[data.spoilt[rows]] = "a value is no number"
        names = data.places[rows]
        group = Group(subject, criterion, scale, names, of_rows, trouble)
        nodes = _checked(_nodes_of(group)) if of_pairs else None
        if nodes is not None:
            yield nodes
        yield replace(_checked(group), nodes=nodes)


def _without_number(values: Values, reason: str) -> Texts:
    """Return the troubles (places,): `reason` for places without a level, else ''."""
    return np.where(np.isnan(values).all(axis=1), reason, "").astype(object)


def _checked(group: Group) -> Group:
    """Compare places for sameness; check the assumptions of the method."""
    trouble = group.trouble.copy()
    values = group.levels
    if group.alike:
        values = beside_the_others(np.where(group.sound[:, np.newaxis], values, np.nan))
        if group.sound.sum() < LEAST_ALIKE:
            trouble[group.sound] = f"sameness takes at least {LEAST_ALIKE} places"
    group = replace(group, levels=values, trouble=trouble)
    if group.scale.method == "t":
        risk = min(group.criterion.risks.buyer, group.criterion.risks.seller)
        p = _shape_p(values[trouble == ""], shared=not group.alike)
        if p < risk * group.share * _SHAPE_SHARE:
            return _by_order(
                group, f"the values are not {group.criterion.model}, p = {p:.1g}"
            )
    return group


def _shape_p(values: Values, *, shared: bool) -> float:
    """Return p of 'the noise is normal'; small: it is not."""
    values = blamed(values)
    values = values[~np.isneginf(values).any(axis=1)]
    if not values.size:
        return 1.0
    rho = rest_correlation(values, shared=shared).used
    rest = split(values)[1] if shared else values
    return assumptions.t_shape_p(serial.whitened(rest, rho))


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
    of_pairs = np.where(pairs.sound[:, np.newaxis], pairs.levels, np.nan)
    table = pairs.names.select(
        pl.col("source", "destination", "hca").cast(pl.String)
    ).with_columns(pl.DataFrame(of_pairs, schema=units).fill_nan(None))
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
