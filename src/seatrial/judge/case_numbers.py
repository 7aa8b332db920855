"""The numbers of one case, with the criteria that apply to each."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
import polars as pl

from seatrial.criteria.criteria import Criterion
from seatrial.judge.allocations import Allocation
from seatrial.judge.completeness import completed
from seatrial.judge.counted import counted
from seatrial.judge.findings import Finding, first_of
from seatrial.judge.group import Group
from seatrial.judge.network_parts import Leafs
from seatrial.judge.place_groups import groups_of
from seatrial.judge.sampling import OfSeveral, Sampled, sampled
from seatrial.judge.verdicts import Ruling
from seatrial.model.cases import Case, CaseKey, parameters_text
from seatrial.model.metrics import flat_name
from seatrial.names import natural_key
from seatrial.runs.row_groups import FEW_ROWS
from seatrial.runs.row_parts import Blocks, LoadBlocks, distinct_texts, filtered

Criteria = Sequence[tuple[Criterion, str]]
"""Criteria, each with the reason why it has expired; '' if it has not."""

NO_CRITERION = "no criterion for this metric"

_Need = tuple[str, str | None, OfSeveral]
"""Metric, statistic, and what counts of several numbers."""

_PLACED = pl.col("node").is_not_null() | pl.col("source").is_not_null()
_SIZE = pl.col("nodes").cast(pl.String).str.count_matches(r"\S+")
"""Number of nodes of the allocation."""


def sizes_of(rows: pl.LazyFrame) -> dict[CaseKey, set[int]]:
    """Return the sizes of the allocations with numbers as a whole, by case."""
    whole = rows.filter(~_PLACED).select(*CaseKey._fields, "nodes").unique()
    sizes: dict[CaseKey, set[int]] = defaultdict(set)
    for *key, size in whole.with_columns(nodes=_SIZE).collect().iter_rows():
        sizes[CaseKey(*key)] |= {size} - {None}
    return sizes


@dataclass
class Numbers:
    """The numbers of one case before the trial of all places.

    `findings` and `rulings` are final, `groups` are to be tried. `answered` names the
    criteria that have numbers.
    """

    key: CaseKey
    findings: list[Finding] = field(default_factory=list)
    rulings: list[Ruling] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)


def numbers_by_size(
    key: CaseKey,
    cases: Sequence[Case],
    rows: Sequence[LoadBlocks],
    sizes: Collection[int],
    criteria: Criteria,
    planned: Sequence[Allocation],
    leafs: Leafs,
) -> list[Numbers]:
    """Hold the numbers of a case to the criteria, apart for each size of allocation.

    `rows` has those of each metric and size, `sizes` those of the allocations with
    numbers as a whole. A run that lost a node goes on with fewer: numbers of a smaller
    allocation as a whole are another case, for example `Halo on 3 nodes`. Numbers of
    one node or pair do not depend on the others, and stay together. `leafs` has the
    leafs of nodes, as far as they are known.
    """
    smaller = sorted(sizes, reverse=True)[1:]
    if not smaller:
        return [_numbers_of(key, cases, rows, criteria, planned, leafs)]
    whole = [case for case in cases if len(case.nodes) not in smaller]
    if not any(case.result == "pass" for case in whole):
        whole = list(cases)
    others = ~_SIZE.is_in(smaller) | _PLACED
    kept: list[LoadBlocks] = [partial(_filtered, load, others) for load in rows]
    numbers = [_numbers_of(key, whole, kept, criteria, planned, leafs)]
    for size in smaller:
        tables = [_filtered(load, _SIZE.eq(size) & ~_PLACED) for load in rows]
        kept = [partial(list, blocks) for blocks in tables if blocks]
        metrics = {_metric(load())[0] for load in kept}
        own = [
            replace(case, declared=tuple(n for n in case.declared if n in metrics))
            for case in cases
            if len(case.nodes) == size
        ]
        of_size = key._replace(case=f"{key.case} on {size} node{'s' * (size > 1)}")
        numbers.append(_numbers_of(of_size, own, kept, criteria, planned, leafs))
    return numbers


def _filtered(load: LoadBlocks, kept: pl.Expr) -> Blocks:
    return filtered(load(), kept)


def _metric(samples: Blocks) -> tuple[str, int | None]:
    """Return the flat name and the size of the only metric of samples."""
    name, size = (samples[0][column][0] for column in ("metric", "size_bytes"))
    return flat_name(str(name), size), size


def _numbers_of(
    key: CaseKey,
    cases: Sequence[Case],
    rows: Sequence[LoadBlocks],
    criteria: Criteria,
    planned: Sequence[Allocation],
    leafs: Leafs,
) -> Numbers:
    """Hold the numbers of a case to the criteria of its check."""
    numbers = Numbers(key)
    finished = [
        case
        for case in cases
        if case.result == "pass" or (case.phase == "performance" and rows)
    ]
    if not finished:
        return numbers
    case = finished[0]
    of_case = (key.check, key.partition, key.environment)
    applying = [
        (criterion, expired)
        for criterion, expired in criteria
        if criterion.applies(*of_case, case.parameters, len(case.nodes))
    ]
    missing = {name for case in finished for name in case.declared}
    declared = frozenset(missing)
    parameters = {parameters_text(case.parameters) for case in finished}
    done: list[Numbers] = []
    waiting = _Waiting(numbers, planned, leafs)
    for load in rows:
        samples = _own(load(), parameters)
        if not samples:
            continue
        metric = _metric(samples)[0]
        missing.discard(metric)
        own = [pair for pair in applying if pair[0].metric == metric]
        waiting.add(samples, own)
        if metric in declared and not own:
            numbers.findings.append(_without_criterion(key, samples))
        del samples
        if waiting.rows > FEW_ROWS:
            done += waiting.held()
    for part in (*done, *waiting.held()):
        numbers.findings += part.findings
        numbers.rulings += part.rulings
        numbers.groups += part.groups
    numbers.findings += [
        replace(Finding.of_case(key, "limit"), metric=name).judged(
            "undecided", "the check declares this metric and did not report it"
        )
        for name in sorted(missing)
    ]
    return numbers


@dataclass
class _Waiting:
    """Criteria of a case that wait to be held to their metrics, which have `rows`."""

    numbers: Numbers
    planned: Sequence[Allocation]
    leafs: Leafs
    rows: int = 0
    arrays: dict[_Need, Callable[[], Sampled]] = field(default_factory=dict)
    criteria: list[tuple[_Need, Finding, Criterion]] = field(default_factory=list)

    def add(self, samples: Blocks, criteria: Criteria) -> None:
        """Add the criteria of a metric; those that cannot judge it are undecided."""
        height = sum(block.height for block in samples)
        self.rows += height
        metric, size = _metric(samples)
        for criterion, expired in criteria:
            self.numbers.answered.add(criterion.name)
            subject = Finding.of_case(
                self.numbers.key,
                "sameness" if criterion.kind == "sameness" else "limit",
            )
            subject = replace(subject, size_bytes=size).held_to(criterion)
            reason = _mismatch(criterion, samples) or expired
            if reason:
                finding = subject.judged("undecided", reason, n=height)
                self.numbers.findings.append(finding)
                continue
            of_several: OfSeveral = "median"
            if criterion.model == "every":
                of_several = "min" if criterion.direction == "higher" else "max"
            how = (criterion.statistic, of_several)
            self.arrays.setdefault((metric, *how), partial(sampled, samples, *how))
            self.criteria.append(((metric, *how), subject, criterion))

    def held(self) -> list[Numbers]:
        """Hold the metrics to their criteria; their samples are freed before."""
        data = {need: array() for need, array in self.arrays.items()}
        key, criteria = self.numbers.key, self.criteria
        self.arrays, self.criteria, self.rows = {}, [], 0
        return [
            _held(key, subject, criterion, data[need], self.planned, self.leafs)
            for need, subject, criterion in criteria
        ]


def _mismatch(criterion: Criterion, samples: Blocks) -> str:
    """Return why a criterion cannot judge samples: statistic or unit; '' if it can."""
    statistics = distinct_texts(samples, "statistic")
    if criterion.statistic is not None and criterion.statistic not in statistics:
        return f"no {criterion.statistic} was recorded, only {', '.join(statistics)}"
    units = distinct_texts(samples, "unit")
    if units != [criterion.unit]:
        names = " and ".join(units)
        return f"the criterion is in {criterion.unit}, the numbers are in {names}"
    return ""


def _held(
    key: CaseKey,
    subject: Finding,
    criterion: Criterion,
    data: Sampled,
    planned: Sequence[Allocation],
    leafs: Leafs,
) -> Numbers:
    """Hold one metric to one criterion; if some nodes have numbers, all must."""
    numbers = Numbers(key)
    data = completed(data, planned, criterion.metric, optional=criterion.optional)
    if absent := _without_numbers(data, planned):
        verdict: Literal["skipped", "undecided"] = "undecided"
        if criterion.optional:
            verdict = "skipped"
        which = f"of {first_of(absent)}" if len(absent) > 1 else "of this node"
        place = "" if len(absent) > 1 else absent[0]
        reason = f"nothing was measured {which}"
        numbers.findings.append(subject.judged(verdict, reason, place=place))
    if criterion.model == "every":
        numbers.rulings.append(counted(subject, criterion, data))
    else:
        numbers.groups += groups_of(subject, criterion, data, leafs)
    return numbers


def _without_numbers(data: Sampled, planned: Sequence[Allocation]) -> list[str]:
    """Return the planned nodes without a place, where other nodes have one."""
    ends = data.places.select(pl.col("node", "source", "destination"))
    names = {name for end in ends for name in end.unique().drop_nulls()}
    if not names:
        return []
    wanted = frozenset[str]().union(*(allocation.nodes for allocation in planned))
    return sorted(wanted - names, key=natural_key)


def _own(samples: Blocks, parameters: Collection[str]) -> Blocks:
    """Return the numbers with the parameters of their case: criteria cover these."""
    if {*distinct_texts(samples, "parameters")}.issubset(parameters):
        return samples  # a sweep has millions
    return filtered(samples, pl.col("parameters").cast(pl.String).is_in(parameters))


def _without_criterion(key: CaseKey, samples: Blocks) -> Finding:
    metric, size = _metric(samples)
    values = pl.concat(block.select("value") for block in samples).to_series()
    unit, direction = (samples[0][column][0] for column in ("unit", "direction"))
    return Finding(
        "limit",
        key.check,
        key.case,
        key.environment,
        metric,
        size,
        n=values.len(),
        value=float(np.median(values.to_numpy())),
        unit=str(unit),
        direction=str(direction),
        reason=NO_CRITERION,
    )
