"""The numbers of one case, with the criteria that apply to each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from seatrial.criteria.criteria import Criterion
from seatrial.judge.findings import Finding, Kind, Subject
from seatrial.judge.place_groups import Group, groups_of
from seatrial.judge.sampling import Sampled, sampled
from seatrial.judge.verdicts import Ruling, counted
from seatrial.model.cases import Case, CaseKey, parameters_text
from seatrial.model.metrics import flat_name


@dataclass
class Numbers:
    """What is known of the numbers of one case before the trial of all places.

    `findings` are those that need none, `rulings` rest on facts, `groups` are to be
    tried. `answered` names the criteria that found numbers.
    """

    key: CaseKey
    findings: list[Finding] = field(default_factory=list)
    rulings: list[Ruling] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)


def numbers_by_size(
    key: CaseKey,
    cases: Sequence[Case],
    rows: Sequence[pl.DataFrame],
    criteria: Sequence[Criterion],
    expired: Mapping[str, str],
) -> list[Numbers]:
    """Hold the numbers of a case to the criteria, apart for each size of allocation.

    A run that lost a node goes on with fewer: what a job measured there as a whole is
    another case, called for example `Halo on 3 nodes`. Numbers of one node or of one
    pair do not depend on the others, and stay together.
    """
    sizes = sorted({size for each in rows for size in _sizes(each)}, reverse=True)
    if len(sizes) < 2:
        return [numbers_of(key, cases, rows, criteria, expired)]
    sized = [_with_size(each) for each in rows]
    whole = [each for each in cases if len(each.nodes) not in sizes[1:]]
    if not any(each.result == "pass" for each in whole):
        whole = list(cases)
    smaller = pl.col("_size").is_in(sizes[1:])
    kept = _filtered(sized, ~smaller | _PLACED)
    found = [numbers_of(key, whole, kept, criteria, expired)]
    for size in sizes[1:]:
        kept = _filtered(sized, (pl.col("_size") == size) & ~_PLACED)
        flat = {flat_name(*each.select("metric", "size_bytes").row(0)) for each in kept}
        own = [
            replace(case, declared=tuple(n for n in case.declared if n in flat))
            for case in cases
            if len(case.nodes) == size
        ]
        name = f"{key.case} on {size} node{'s' * (size > 1)}"
        of_size = key._replace(case=name)
        found.append(numbers_of(of_size, own, kept, criteria, expired))
    return found


_PLACED = pl.col("node").is_not_null() | pl.col("source").is_not_null()


def _filtered(tables: Sequence[pl.DataFrame], kept: pl.Expr) -> list[pl.DataFrame]:
    """Filter tables, and drop those without a row."""
    parts = (rows.filter(kept) for rows in tables)
    return [part for part in parts if part.height]


def _with_size(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the number of nodes of each row's allocation."""
    return rows.with_columns(
        pl.col("nodes").cast(pl.String).str.count_matches(r"\S+").alias("_size")
    )


def _sizes(rows: pl.DataFrame) -> set[int]:
    """Return the sizes of the allocations that were measured as a whole."""
    allocations = rows.filter(~_PLACED).select("nodes").unique()
    return set(_with_size(allocations)["_size"].drop_nulls())


def numbers_of(
    key: CaseKey,
    cases: Sequence[Case],
    rows: Sequence[pl.DataFrame],
    criteria: Sequence[Criterion],
    expired: Mapping[str, str],
) -> Numbers:
    """Hold the numbers of a case to the criteria of its check.

    `rows` has a table for each metric and size. `expired` tells of measured criteria,
    by name, why they no longer hold.
    """
    found = Numbers(key)
    finished = [
        case
        for case in cases
        if case.result == "pass" or (case.phase == "performance" and rows)
    ]
    if not finished:
        return found
    case = finished[0]
    applying = [
        each
        for each in criteria
        if each.applies(
            key.check,
            key.partition,
            key.environment,
            case.parameters,
            len(case.nodes),
        )
    ]
    nodes = {name for each in finished for name in each.nodes}
    declared = sorted({name for each in finished for name in each.declared})
    seen = set()
    for samples in _own(rows, finished):
        name, size = samples.select("metric", "size_bytes").row(0)
        flat = flat_name(str(name), size)
        wanted = [each for each in applying if each.metric == flat]
        arrays: dict[str | None, Sampled] = {}
        if wanted or flat in declared:
            seen.add(flat)
        for criterion in wanted:
            found.answered.add(criterion.name)
            why_expired = expired.get(criterion.name, "")
            _hold(found, criterion, size, samples, arrays, why_expired, nodes)
        if flat in declared and not wanted:
            found.findings.append(_without_criterion(key, flat, size, samples))
    found.findings += [
        replace(Subject.of_case(key, "limit"), metric=name).finding(
            "undecided", "the check declares this metric and did not report it"
        )
        for name in declared
        if name not in seen
    ]
    return found


def _hold(
    found: Numbers,
    criterion: Criterion,
    size: int | None,
    samples: pl.DataFrame,
    arrays: dict[str | None, Sampled],
    expired: str,
    nodes: set[str],
) -> None:
    """Hold the samples of one metric to one criterion; keep `arrays` for others.

    `nodes` are those of the allocations: where some are measured, all must be.
    """
    kind: Kind = "sameness" if criterion.kind == "sameness" else "limit"
    subject = replace(Subject.of_case(found.key, kind), size_bytes=size)
    subject = subject.held_to(criterion)
    units = samples["unit"].unique().to_list()
    reason = expired
    if units != [criterion.unit]:
        names = " and ".join(sorted(units))
        reason = f"the criterion is in {criterion.unit}, the numbers are in {names}"
    known = sorted(samples["statistic"].unique())
    statistic = criterion.statistic
    if statistic is not None and statistic not in known:
        reason = f"no {statistic} was recorded, only {', '.join(known)}"
    if reason:
        found.findings.append(subject.finding("undecided", reason, n=samples.height))
        return
    if statistic not in arrays:
        arrays[statistic] = sampled(samples, statistic)
    data = arrays[statistic]
    found.findings += [
        subject.finding("undecided", "nothing was measured of this node", place=name)
        for name in sorted(_not_measured(data, nodes))
    ]
    if criterion.model == "every":
        found.rulings.append(counted(subject, criterion, data))
    else:
        found.groups += groups_of(subject, criterion, data)


def _not_measured(data: Sampled, nodes: set[str]) -> set[str]:
    """Return the nodes without a number, if other nodes have some."""
    places = data.places.select(
        pl.col("node", "source", "destination").cast(pl.String)
    ).unpivot()["value"]
    measured = set(places.drop_nulls())
    return nodes - measured if measured else set()


def _own(rows: Sequence[pl.DataFrame], cases: Sequence[Case]) -> Iterator[pl.DataFrame]:
    """Yield the numbers without parameters of their own; no criterion covers others.

    A sweep has millions of rows, none of them such.
    """
    own = {parameters_text(each.parameters) for each in cases}
    for samples in rows:
        if set(samples["parameters"].unique()) <= own:
            yield samples
            continue
        kept = samples.filter(pl.col("parameters").cast(pl.String).is_in(own))
        if kept.height:
            yield kept


def _without_criterion(
    key: CaseKey, flat: str, size: int | None, samples: pl.DataFrame
) -> Finding:
    values = samples["value"].to_numpy()
    subject = replace(
        Subject.of_case(key, "limit"),
        metric=flat,
        size_bytes=size,
        unit=str(samples["unit"][0]),
        direction=str(samples["direction"][0]),
    )
    return subject.finding(
        "undecided",
        "no criterion for this metric",
        n=len(values),
        value=float(np.median(values)),
    )
