"""Places of a criterion: leafs, nodes and links by pairs; nodes; the allocation."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.criteria import Criterion
from seatrial.judge import bounds
from seatrial.judge.findings import METHODS, Finding, Kind
from seatrial.judge.majority import better_than_typical
from seatrial.judge.multiple_testing import share_of_look
from seatrial.judge.network_parts import NO_LEAFS, PARTS, Leafs, Network, network
from seatrial.judge.pair_effects import Parts, part_levels
from seatrial.judge.sampling import (
    LEAST_ALIKE,
    Marks,
    Sampled,
    Scale,
    Values,
    beside_the_others,
    scale_of,
)

Texts = npt.NDArray[np.object_]

_LEAST_SHAPE_P = 1e-3
_LEAST_DRIFT_P = 5e-3


@dataclass(frozen=True)
class Group:
    """A criterion and its places of one kind, in one case.

    `levels` has the shape (places, allocations), on the scale of the criterion;
    `names` has a row per place: the columns of `PLACE`, and `WAY` for parts of pairs.
    `trouble` (places,) is the reason why a place cannot be judged, or ''. `doubt`
    (places,) is the reason why a place that looks bad is not blamed, or ''. `share` is
    the part of the risks that this look may spend. `part` is the kind of the places, if
    they are pairs or are judged by pairs; `leafs` has the leaf of each node.
    """

    subject: Finding
    criterion: Criterion
    scale: Scale
    names: pl.DataFrame
    levels: Values
    trouble: Texts
    share: float
    doubt: Texts
    leafs: Leafs
    part: Literal["", "leaf", "way", "node", "pair"] = ""

    @property
    def alike(self) -> bool:
        """Whether places are held to the typical one, not to a limit."""
        return self.criterion.kind == "sameness"

    @property
    def of_pairs(self) -> bool:
        """Whether the places are pairs, which are judged after their nodes."""
        return self.part == "pair"

    @property
    def of_nodes(self) -> bool:
        """Whether the places are nodes, or leafs, judged by their pairs."""
        return self.part in ("leaf", "node")

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
        """Allocations in which each place was measured."""
        return np.asarray(np.isfinite(self.levels).sum(axis=1))

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
        with np.errstate(all="ignore"):
            typical = np.nanmedian(self.levels[self.sound], axis=0)
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
        return np.asarray(np.all(met | ~np.isfinite(self.levels), axis=1))


def groups_of(
    subject: Finding, criterion: Criterion, data: Sampled, leafs: Leafs = NO_LEAFS
) -> Iterator[Group]:
    """Yield the groups of one metric: parts of pairs, pairs, all other places.

    `leafs` has the leafs of nodes, as far as they are known.
    """
    scale = scale_of(criterion)
    units = np.cumsum(data.per_run).tolist()
    share = share_of_look(units, criterion.looks, criterion.cap)
    ends = data.places.select("source", "destination")
    pairs = ends.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    for of_pairs in (True, False):
        rows = np.flatnonzero(pairs.to_numpy() == of_pairs)
        if not rows.size:
            continue
        values = data.values[rows]
        levels = scale.levels(values)
        trouble = _without_number(levels, "nothing was measured")
        if scale.logs:
            no_log = "a value of 0 or less has no logarithm"
            trouble[(values <= 0).any(axis=1)] = no_log
        trouble[data.spoilt[rows]] = "a value is no number"
        names = data.places[rows]
        doubt = np.full(rows.size, "", dtype=object)
        group = Group(
            subject,
            criterion,
            scale,
            names,
            levels,
            trouble,
            share,
            doubt,
            leafs,
            "pair" if of_pairs else "",
        )
        parts = list(map(_checked, _parts_of(group))) if of_pairs else []
        yield from (_without_majority(part, parts) for part in parts)
        yield _without_majority(_checked(group), parts)


def _without_number(levels: Values, reason: str) -> Texts:
    """Return the troubles (places,): `reason` for places without a level, else ''."""
    return np.where(np.isfinite(levels).any(axis=1), "", reason).astype(object)


def _checked(group: Group) -> Group:
    """Compare places for sameness; check the assumptions of the method."""
    trouble = group.trouble.copy()
    levels = group.levels
    if group.alike and group.part != "way":
        levels = beside_the_others(np.where(group.sound[:, np.newaxis], levels, np.nan))
        if group.sound.sum() < LEAST_ALIKE:
            trouble[group.sound] = f"sameness takes at least {LEAST_ALIKE} places"
        elif reason := _no_majority(group):
            trouble[group.sound] = reason
    group = replace(group, levels=levels, trouble=trouble)
    usable = levels[trouble == ""]
    if group.scale.method == "t" and usable.size:
        p = bounds.t_shape_p(usable)
        if p < _LEAST_SHAPE_P:
            return _by_order(
                group, f"the values are not {group.criterion.model}, p = {p:.1g}"
            )
    return group


def _no_majority(group: Group) -> str:
    """Return why the typical place of a group may be a bad one; '' if it is not.

    Pairs, and ways between leafs, are as their nodes and leafs.
    """
    if group.part not in ("", "node", "leaf"):
        return ""
    levels = np.where(group.sound[:, np.newaxis], group.levels, np.nan)
    better = better_than_typical(levels, -group.scale.limit)
    if not better.any():
        return ""
    names = group.names.select("node", "socket")
    places, good = (names.filter(marks).n_unique() for marks in (group.sound, better))
    return (
        f"{places - good} of {places} differ: no majority; the other {good} are better "
        "by more than the tolerance, and may be the only sound ones"
    )


def _without_majority(group: Group, parts: Sequence[Group]) -> Group:
    """Leave pairs and ways unjudged where the typical node may be a bad one."""
    nodes = [part for part in parts if part.part == "node" and part.alike]
    if group.part not in ("way", "pair") or not nodes or nodes[0].sound.any():
        return group
    reason = f"of its nodes, {nodes[0].trouble[0]}"
    return replace(group, trouble=np.where(group.sound, reason, group.trouble))


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


def _parts_of(pairs: Group) -> Iterator[Group]:
    """Yield the leafs, the ways between leafs, and the nodes of pairs.

    A leaf with one other leaf is left out: the way between them is judged.
    """
    parts = network(pairs.names, pairs.leafs)
    levels = np.where(pairs.sound[:, np.newaxis], pairs.levels, np.nan)
    fitted = part_levels(levels, parts.paths)
    if pairs.alike:  # a way is compared with the typical pair
        ways = parts.kinds == "way"
        with warnings.catch_warnings(action="ignore"):
            fitted.levels[ways] -= np.nanmedian(levels, axis=0)
    doubt = _doubts(pairs, parts, fitted)
    for part in PARTS:
        rows = np.flatnonzero(
            (parts.kinds == part) & ~(fitted.alone & (parts.kinds == "leaf"))
        )
        if not rows.size:
            continue
        kind: Kind = "node" if part == "node" else "leaf"
        own = fitted.levels[rows]
        yield replace(
            pairs,
            subject=replace(pairs.subject, kind="sameness" if pairs.alike else kind),
            names=parts.names[rows],
            levels=own,
            trouble=_without_number(own, "none of its pairs was measured"),
            doubt=doubt[rows],
            part=part,
        )


def _doubts(pairs: Group, parts: Network, fitted: Parts) -> Texts:
    """Return why nodes that look bad may be sound, '' if they are to blame."""
    doubt = np.full(len(parts.kinds), "", dtype=object)
    nodes = parts.kinds == "node"
    limit = pairs.scale.limit
    if pairs.alike:
        limit += float(np.median(fitted.typical[nodes]))
    good = fitted.typical >= limit
    if good[nodes].any():  # else look at what all of them share
        beside = nodes & ~good & (fitted.beside < limit)
        doubt[beside] = "each of its partners looks bad too: it may be sound"
    for part in np.flatnonzero(nodes & fitted.alone):
        doubt[part] = (
            f"its only partner was {parts.partners[part]}: the fault may be there, or "
            "between them"
        )
    return doubt
