"""Attribute bad places to bad parts of the network on their path: leafs, ways, nodes.

A part is tried in place of what is attributed to it, so that a fault is named once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from seatrial.judge.group import Group
from seatrial.judge.sampling import Marks

_ENDS = ("source", "destination")


@dataclass
class BadParts:
    """The bad parts in any metric of a case, by name; a way by both its leafs."""

    leafs: set[str] = field(default_factory=set)
    ways: set[tuple[str, str]] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)


def bad_parts(
    marked: Iterable[tuple[Group, Marks]],
) -> Mapping[tuple[str, ...], BadParts]:
    """Collect the marked parts of each case."""
    bad: dict[tuple[str, ...], BadParts] = defaultdict(BadParts)
    for group, marks in marked:
        if group.part not in ("leaf", "way", "node"):
            continue
        of_case, names = bad[group.case], group.names.filter(pl.Series(marks))
        if group.part == "way":
            of_case.ways.update(names.select("source", "destination").iter_rows())
        else:
            own = of_case.leafs if group.part == "leaf" else of_case.nodes
            own.update(names["node"])
    return bad


def attributed(group: Group, bad: BadParts) -> Marks:
    """Mark places whose badness is attributed to a bad part.

    A pair to its nodes; one that leaves a bad leaf, or takes a bad way, to these; a
    node to its bad leaf, if no pair shows that the node itself is bad.
    """
    names = group.names
    if group.part == "way":
        return touching(names, bad.leafs)
    if group.part == "node":
        of_bad = [node for node, leaf in group.leafs.items() if leaf in bad.leafs]
        return np.asarray(_is_in(names["node"], of_bad) & (group.doubt != ""))
    marks = np.zeros(names.height, dtype=bool)
    if group.part != "pair":
        return marks
    marks |= touching(names, bad.nodes)
    nodes: dict[str, list[str]] = defaultdict(list)
    if bad.leafs or bad.ways:
        for node, leaf in group.leafs.items():
            nodes[leaf].append(node)
    for leaf in bad.leafs:
        starts, ends = (_is_in(names[end], nodes[leaf]) for end in _ENDS)
        marks |= starts != ends
    for way in bad.ways:
        for first, second in (way, way[::-1]):
            ends = _is_in(names["destination"], nodes[second])
            marks |= _is_in(names["source"], nodes[first]) & ends
    return marks


def touching(pairs: pl.DataFrame, names: Collection[str]) -> Marks:
    """Mark pairs with one of these as source or destination."""
    marks = np.zeros(pairs.height, dtype=bool)
    if names:
        for end in _ENDS:
            marks |= _is_in(pairs[end], names)
    return marks


def _is_in(names: pl.Series, chosen: Collection[str]) -> Marks:
    return names.cast(pl.String).is_in(list(chosen)).fill_null(value=False).to_numpy()
