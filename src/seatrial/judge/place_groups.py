"""Places of a criterion: leafs, nodes and links by pairs; nodes; the allocation."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.criteria import Criterion
from seatrial.judge import assumptions, serial
from seatrial.judge.drawn_pairs import always, steady
from seatrial.judge.findings import METHODS, Finding, Kind
from seatrial.judge.group import SHAPE_SHARE, Group, Texts, no_words
from seatrial.judge.majority import beside_the_others, better_than_typical
from seatrial.judge.network_parts import NO_LEAFS, PARTS, Leafs, Network, network
from seatrial.judge.order_statistics import medians
from seatrial.judge.pair_effects import Parts, part_levels
from seatrial.judge.sampling import LEAST_ALIKE, Sampled, Values, scale_of
from seatrial.judge.scatter import blamed, rest_correlation, split, thinned_finite

_LEAST_NEAR = 2
"""Pairs on its own leaf that tell about a node."""


def groups_of(
    subject: Finding, criterion: Criterion, data: Sampled, leafs: Leafs = NO_LEAFS
) -> Iterator[Group]:
    """Yield the groups of one metric: parts of pairs, pairs, all other places.

    `leafs` has the leafs of nodes, as far as they are known.
    """
    scale = scale_of(criterion)
    ends = data.places.select("source", "destination")
    pairs = ends.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    for of_pairs in (True, False):
        rows = np.flatnonzero(pairs.to_numpy() == of_pairs)
        if not rows.size:
            continue
        values, names = data.values, data.places
        if rows.size < len(values):
            values, names = values[rows], names[rows]
        of_rows = scale.levels(values)
        trouble = _without_number(of_rows, "nothing was measured")
        doubt = no_words(rows.size)
        group = Group(
            subject,
            criterion,
            scale,
            names,
            of_rows,
            trouble,
            doubt,
            leafs,
            "pair" if of_pairs else "",
        )
        parts = (
            list(map(_checked, _parts_of(group, drawn=data.drawn))) if of_pairs else []
        )
        yield from (_without_majority(part, parts) for part in parts)
        if of_pairs and data.drawn:
            group = _only(group, np.flatnonzero(steady(values, names)))
        if len(group.levels):
            yield _without_majority(_checked(group), parts)


def _without_number(values: Values, reason: str) -> Texts:
    """Return the troubles (places,): `reason` for places without a level, else ''."""
    missing = np.isnan(values).all(axis=1)
    trouble = no_words(len(values))
    if missing.any():
        trouble = trouble.copy()
        trouble[missing] = reason
    return trouble


def _checked(group: Group) -> Group:
    """Compare places for sameness; check the assumptions of the method."""
    trouble, values = group.trouble, group.levels
    if group.alike and group.part != "way":
        trouble = trouble.copy()
        values = beside_the_others(np.where(group.sound[:, np.newaxis], values, np.nan))
        if group.sound.sum() < LEAST_ALIKE:
            trouble[group.sound] = f"sameness takes at least {LEAST_ALIKE} places"
        elif reason := _no_majority(group):
            trouble[group.sound] = reason
    group = replace(group, levels=values, trouble=trouble)
    if group.scale.method == "t":
        risk = min(group.criterion.risks.buyer, group.criterion.risks.seller)
        sound = trouble == ""
        judged = values if sound.all() else values[sound]
        p = _shape_p(judged, shared=not group.alike)
        if p < risk * group.share * SHAPE_SHARE:
            return _by_order(
                group, f"the values are not {group.criterion.model}, p = {p:.1g}"
            )
    return group


def _shape_p(values: Values, *, shared: bool) -> float:
    """Return p of 'the noise is normal'; small: it is not."""
    values = thinned_finite(blamed(values))
    if not values.size:
        return 1.0
    rho = rest_correlation(values, shared=shared).used
    rest = split(values)[1] if shared else values
    return assumptions.t_shape_p(serial.whitened(rest, rho))


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


def _only(group: Group, rows: npt.NDArray[np.int64]) -> Group:
    """Return the group of some of its places."""
    return replace(
        group,
        names=group.names[rows],
        levels=group.levels[rows],
        trouble=group.trouble[rows],
        doubt=group.doubt[rows],
    )


def _parts_of(pairs: Group, *, drawn: bool = False) -> Iterator[Group]:
    """Yield the leafs, the ways between leafs, and the nodes of pairs.

    A leaf with one other leaf is left out: the way between them is judged. So are ways
    whose pairs were `drawn` in some allocations only.
    """
    parts = network(pairs.names, pairs.leafs)
    levels = pairs.levels
    if not pairs.sound.all():
        levels = np.where(pairs.sound[:, np.newaxis], levels, np.nan)
    levels = blamed(levels)
    missing = np.isneginf(levels)
    if missing.any():
        levels = np.where(missing, np.nan, levels)
    fitted = part_levels(levels, parts.paths)
    if missing.any():  # a part without any pair counts as worst; else others tell
        lost = part_levels(np.where(missing, 0.0, np.nan), parts.paths).levels
        fitted.levels[np.isnan(fitted.levels) & ~np.isnan(lost)] = -np.inf
    if pairs.alike:  # a way is compared with the typical pair
        ways = parts.kinds == "way"
        fitted.levels[ways] -= medians(levels.T)
    doubt = _doubts(pairs, parts, fitted)
    for part in PARTS:
        rows = np.flatnonzero(
            (parts.kinds == part) & ~(fitted.alone & (parts.kinds == "leaf"))
        )
        if drawn and part == "way":
            rows = rows[always(fitted.levels[rows])]
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


def _sound_on_its_leaf(
    pairs: Group, parts: Network, limit: float
) -> npt.NDArray[np.int64]:
    """Return the nodes whose pairs on their own leaf are good, several of them.

    Such a node reaches its limit; what is bad lies on the ways to other leafs.
    """
    if not pairs.leafs:
        return np.array([], dtype=np.int64)
    first, second = (
        pairs.names[end].cast(pl.String).replace_strict(pairs.leafs, default=None)
        for end in ("source", "destination")
    )
    near = (first == second).fill_null(value=False).to_numpy()
    rows = np.flatnonzero(near & ~np.isnan(pairs.levels).all(axis=1))
    if not rows.size:
        return rows
    good = medians(pairs.levels[rows]) >= limit
    own = parts.paths[rows, :2]
    count = len(parts.kinds)
    known = np.bincount(own.ravel(), minlength=count)
    reach = np.bincount(own[good].ravel(), minlength=count)
    return np.flatnonzero((known >= _LEAST_NEAR) & (2 * reach > known))


def _doubts(pairs: Group, parts: Network, fitted: Parts) -> Texts:
    """Return why nodes that look bad may be sound, '' if they are to blame."""
    doubt = np.full(len(parts.kinds), "", dtype=object)
    nodes = parts.kinds == "node"
    limit = pairs.scale.limit
    if pairs.alike:
        limit += float(np.median(fitted.typical[nodes]))
    for part in _sound_on_its_leaf(pairs, parts, limit):
        doubt[part] = (
            "its pairs on its own leaf are good: it may be sound, and an up-link bad"
        )
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
