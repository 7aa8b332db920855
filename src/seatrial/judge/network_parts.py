"""The parts of a network on the path of each pair: nodes, leafs, ways between leafs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.judge.pair_effects import NO_PART
from seatrial.model.places import PLACE, both_ways

Integers = npt.NDArray[np.integer[Any]]
Marks = npt.NDArray[np.bool_]
Part = Literal["leaf", "way", "node"]

PARTS: tuple[Part, ...] = ("leaf", "way", "node")
"""The kinds of parts, in the order in which they are judged."""

WAY = "way"
"""Column with 'sending' or 'receiving', where a pair was measured both ways."""

Leafs = Mapping[str, str]
"""The leaf of each node, as it is named: 'leaf l3'."""

NO_LEAFS: Leafs = MappingProxyType({})

_LEAST_OF_WAY = 3
"""Pairs between two leafs that make a way; fewer are links."""


@dataclass(frozen=True)
class Network:
    """The parts of some pairs.

    `paths` (pairs, parts of a path) has the number of each part, as `part_levels` takes
    it. `names` has a row per part: the columns of `PLACE`, and `WAY`; `kinds` (parts,)
    has their kinds. A way has its leafs as source and destination, a leaf its name as
    node. `partners` (parts,) has a counterpart of each node, '' else.
    """

    paths: Integers
    names: pl.DataFrame
    kinds: npt.NDArray[np.object_]
    partners: npt.NDArray[np.object_]


def network(pairs: pl.DataFrame, leafs: Leafs) -> Network:
    """Number the parts of pairs, which have the columns of `PLACE`.

    Each rail counts by itself, and so does each direction of numbers that were taken in
    both. A leaf with a single measured node is left out: the node is judged.
    """
    directed = both_ways(pairs)
    ends = pairs.select(pl.col("source", "destination", "hca").cast(pl.Categorical))
    nodes = _distinct(ends["source"], ends["destination"])
    rails = _distinct(ends["hca"])
    rail = _codes(ends["hca"], rails)
    source, destination = (_codes(ends[name], nodes) for name in ends.columns[:2])
    leaf_names, leaf_of = _leafs_of(nodes.to_list(), leafs)
    numbering = _Numbering(directed, rails.to_list(), rail)
    numbering.add_ends("node", source, destination, nodes.to_list())
    if len(leaf_names) > 1:
        a, b = leaf_of[source], leaf_of[destination]
        outside = (a != b) & (a != NO_PART) & (b != NO_PART)
        numbering.add_ends("leaf", a, b, leaf_names, outside)
        numbering.add_ways(a, b, leaf_names)
    partners = np.full(len(numbering.kinds), "", dtype=object)
    names = nodes.cast(pl.String).to_numpy()
    partners[numbering.paths[1]] = names[source]
    partners[numbering.paths[0]] = names[destination]
    return Network(
        np.column_stack(numbering.paths),
        pl.DataFrame(numbering.names, _SCHEMA, orient="row"),
        np.array(numbering.kinds, dtype=object),
        partners,
    )


_SCHEMA = dict.fromkeys((*PLACE, WAY), pl.String) | {"socket": pl.Int64()}


def _distinct(*names: pl.Series) -> pl.Series:
    """Return the distinct names in the order of their appearance."""
    several = [each.unique(maintain_order=True).alias("name") for each in names]
    return pl.concat(several).unique(maintain_order=True)


def _codes(names: pl.Series, known: pl.Series) -> Integers:
    """Return the position of each name among the known ones; null may be one."""
    of_known, of_names = (
        series.to_physical().cast(pl.Int32).fill_null(-1).to_numpy()
        for series in (known, names)
    )
    position = np.zeros(of_known.max(initial=-1) + 2, dtype=np.int32)
    position[of_known] = np.arange(known.len())  # null is the last
    return np.asarray(position[of_names])


def _leafs_of(nodes: list[str], leafs: Leafs) -> tuple[list[str], Integers]:
    """Return the leafs of several nodes, and the number of each node's."""
    counts = Counter(leafs[node] for node in nodes if node in leafs)
    numbers = {
        leaf: number
        for number, leaf in enumerate(leaf for leaf, n in counts.items() if n > 1)
    }
    own = [numbers.get(leafs.get(node, ""), NO_PART) for node in nodes]
    return list(numbers), np.array(own, dtype=np.int32)


@dataclass
class _Numbering:
    """Parts that were numbered so far; `rail` has the rail of each pair."""

    directed: bool
    rails: list[str | None]
    rail: Integers
    paths: list[Integers] = field(default_factory=list)
    names: list[tuple[object, ...]] = field(default_factory=list)
    kinds: list[Part] = field(default_factory=list)

    def add_ends(
        self,
        kind: Part,
        source: Integers,
        destination: Integers,
        names: list[str],
        chosen: Marks | None = None,
    ) -> None:
        """Add the part at either end of the (chosen) pairs."""
        size = len(names)
        keys = self.rail * size + np.array([source, destination])
        keys[1] += self.directed * len(self.rails) * size
        kept, numbers = self._numbered(keys, chosen)
        self.paths += list(numbers)
        for key in kept.tolist():
            way, rest = divmod(key, len(self.rails) * size)
            rail, name = divmod(rest, size)
            told = ("sending", "receiving")[way] if self.directed else None
            row = (None, None, names[name], self.rails[rail], None, told)
            self._add(kind, row)

    def add_ways(self, a: Integers, b: Integers, names: list[str]) -> None:
        """Add the ways between two leafs, or within one, with several pairs."""
        size = len(names)
        known = (a != NO_PART) & (b != NO_PART)
        if not self.directed:
            a, b = np.minimum(a, b), np.maximum(a, b)
        way = (self.rail.astype(np.int64) * size + a) * size + b
        keys = np.where(known, way, 0)
        pairs = np.bincount(keys[known], minlength=1)
        kept, numbers = self._numbered(
            keys[np.newaxis], known & (pairs[keys] >= _LEAST_OF_WAY)
        )
        self.paths += list(numbers)
        for key in kept.tolist():
            rest, second = divmod(key, size)
            rail, first = divmod(rest, size)
            row = (names[first], names[second], None, self.rails[rail], None, None)
            self._add("way", row)

    def _numbered(
        self, keys: Integers, chosen: Marks | None
    ) -> tuple[Integers, Integers]:
        """Return the keys of chosen pairs, and their numbers behind the known parts."""
        taken = keys if chosen is None else keys[:, chosen]
        used = np.bincount(taken.ravel(), minlength=1) > 0
        of_key = np.cumsum(used, dtype=np.int32) + (len(self.kinds) - 1)
        numbers = of_key[np.minimum(keys, len(used) - 1)]
        if chosen is not None:
            numbers[:, ~chosen] = NO_PART
        return np.flatnonzero(used), numbers

    def _add(self, kind: Part, row: tuple[object, ...]) -> None:
        self.kinds.append(kind)
        self.names.append(row)
