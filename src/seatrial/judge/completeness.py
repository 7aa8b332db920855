"""Completeness: planned nodes x planned allocations x cases, and the numbers that came.

A metric that a case reports once is planned in each of its allocations, at every place
of their nodes (allocations.py). A missing number, NaN or infinity counts as the worst
value.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.judge.allocations import Allocation
from seatrial.judge.sampling import Marks, Sampled
from seatrial.model.places import PLACE

_ONLY_SUSPECTS = "crowded_"
"""Begin of metrics that a check takes only of places that look bad."""

_UNIT = ("run", "session", "job_id", "attempt")


def completed(
    data: Sampled, planned: Sequence[Allocation], metric: str, *, optional: bool
) -> Sampled:
    """Add the missing numbers that count as the worst value.

    Planned nodes without any number are added, too, unless the criterion is `optional`.
    """
    if metric.startswith(_ONLY_SUSPECTS):
        return data
    if _of_nodes(data.places) and not optional:
        data = _with_nodes(data, planned)
    data, columns, sizes = _with_allocations(data, planned)
    missing = np.isnan(data.values)
    if not missing.any():
        return data
    places = _Places.of(data.places, sizes)
    values = data.values.copy()
    worst = -np.inf if data.higher else np.inf
    together: dict[frozenset[str], Marks] = {}
    for column, allocation in enumerate(columns):
        if allocation is not None:
            marks = together.setdefault(allocation.got, np.zeros(len(values), bool))
            marks |= ~missing[:, column]
    for column, allocation in enumerate(columns):
        counted = data.spoilt[:, column]
        if allocation is not None and missing[:, column].any():
            if not allocation.drawn:
                counted = together[allocation.got] | counted
            counted = places.counted(allocation, counted)
        values[missing[:, column] & counted, column] = worst
    return replace(data, values=values)


def _of_nodes(places: pl.DataFrame) -> bool:
    """Return True if places are nodes or their sockets."""
    return places["node"].null_count() < places.height


def _with_nodes(data: Sampled, planned: Sequence[Allocation]) -> Sampled:
    """Add a place for each planned node without a number."""
    wanted = frozenset[str]().union(*(allocation.blamed for allocation in planned))
    names = data.places["node"].cast(pl.String)
    absent = sorted(wanted.difference(names.drop_nulls()))
    if not absent:
        return data
    added = pl.DataFrame({"node": absent}).select(
        pl.col("node") if name == "node" else pl.lit(None).alias(name) for name in PLACE
    )
    texts = [name for name in PLACE if data.places[name].dtype == pl.Categorical]
    places = pl.concat(
        [data.places.cast(dict.fromkeys(texts, pl.String)), added],
        how="vertical_relaxed",
    ).cast(dict.fromkeys(texts, pl.Categorical))
    shape = (len(absent), data.values.shape[1])
    return replace(
        data,
        places=places,
        values=np.vstack([data.values, np.full(shape, np.nan)]),
        spoilt=np.vstack([data.spoilt, np.zeros(shape, dtype=bool)]),
    )


def _with_allocations(
    data: Sampled, planned: Sequence[Allocation]
) -> tuple[Sampled, list[Allocation | None], frozenset[int]]:
    """Add the allocations without any number, in the order of time.

    Also returns the allocation of each column, None if the run has no case of it, and
    the sizes of those with numbers.
    """
    by_job = {one.unit[:3]: one for one in planned if one.unit[2] is not None}
    by_try = {(*one.unit[:2], one.unit[3]): one for one in planned}
    # The tables of old runs have no column `attempt`.
    columns = [
        by_job.get((run, session, job)) or by_try.get((run, session, attempt or 1))
        for run, session, job, attempt in data.units.select(_UNIT).rows()
    ]
    there = [one for one in columns if one is not None]
    data = replace(data, drawn=any(one.drawn for one in there))
    sizes = frozenset(one.size for one in there)
    placed = data.places.select(pl.col("node", "source").is_not_null().any()).row(0)
    known = {one.unit for one in there}
    added = [
        one
        for one in planned
        if one.unit not in known
        and (one.blamed if any(placed) else one.whole and one.size in sizes)
    ]
    if not added:
        return data, columns, sizes
    order = {allocation.unit: number for number, allocation in enumerate(planned)}
    numbers = [-1 if one is None else order[one.unit] for one in [*columns, *added]]
    position = np.argsort(numbers, kind="stable")
    schema = data.units.select(_UNIT).schema
    more = pl.DataFrame([one.unit for one in added], schema=schema, orient="row")
    width = ((0, 0), (0, len(added)))
    whole = replace(
        data,
        units=pl.concat([data.units, more], how="diagonal")[position],
        values=np.pad(data.values, width, constant_values=np.nan)[:, position],
        spoilt=np.pad(data.spoilt, width)[:, position],
    )
    return whole, [[*columns, *added][column] for column in position], sizes


@dataclass(frozen=True)
class _Places:
    """The nodes of places: one of a node, two of a pair, none of an allocation.

    `first` and `second` (places,) number the nodes in `names`; -1 without. `all_pairs`:
    the metric is one of all pairs of its nodes. `sizes` are those of the allocations
    with numbers.
    """

    names: Mapping[str, int]
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    all_pairs: bool
    sizes: frozenset[int]

    @classmethod
    def of(cls, places: pl.DataFrame, sizes: frozenset[int]) -> "_Places":
        """Number the nodes of places."""
        ends = places.select(
            first=pl.coalesce("node", "source").cast(pl.String),
            second=pl.coalesce("node", "destination").cast(pl.String),
        )
        names = pl.concat([ends["first"], ends["second"]]).unique().drop_nulls()
        numbers = {name: number for number, name in enumerate(names.to_list())}
        first, second = (
            ends[name]
            .replace_strict(numbers, default=-1, return_dtype=pl.Int64)
            .to_numpy()
            for name in ("first", "second")
        )
        pairs = first != second
        low, high = np.minimum(first, second)[pairs], np.maximum(first, second)[pairs]
        count = np.unique(low * len(numbers) + high).size
        nodes = np.unique(np.concatenate([low, high])).size
        return cls(numbers, first, second, count == nodes * (nodes - 1) // 2, sizes)

    def counted(self, allocation: Allocation, together: Marks) -> Marks:
        """Mark the places whose missing number of an allocation counts.

        `together` marks pairs that an allocation of the same nodes measured, unless the
        allocation drew its pairs; and those whose number is spoilt.
        """
        planned, blamed = (
            self._both(nodes) for nodes in (allocation.nodes, allocation.blamed)
        )
        of_all, pair = self.first < 0, self.first != self.second
        whole = allocation.whole and (not self.sizes or allocation.size in self.sizes)
        counted: Marks = planned & blamed & ~of_all
        every = self.all_pairs and not allocation.drawn
        counted &= ~pair | (allocation.whole & (every | together))
        return counted | (of_all & whole)

    def _both(self, nodes: Collection[str]) -> Marks:
        """Mark the places with both ends among these nodes."""
        marks = np.zeros(len(self.names) + 1, dtype=bool)  # the last is no node
        marks[[self.names[name] for name in nodes if name in self.names]] = True
        both: Marks = marks[self.first] & marks[self.second]
        return both
