"""Headline numbers of page one, by area: nodes, links, the whole machine, programs.

`METRICS` states a metric's area; else the measured place decides: a node, a pair of
nodes, or the whole allocation.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import get_args

import polars as pl

from seatrial.model.metrics import Area, Metric, flat_name, split_flat_name
from seatrial.report.content import AreaSummary, CriterionRow, Headline
from seatrial.report.render import text
from seatrial.report.wording import VERDICTS, case_detail
from seatrial.runs.closed_run import Run
from seatrial.runs.counters_table import CHECK

_MOST_HEADLINES = 5
_JUDGED = ("fail", "not shown", "undecided", "pass")
_WORST_PART = {"node": "worst node", "leaf": "worst leaf or way"}
_MANY = 10  # ratio from which a margin is a multiple of the limit, not a percentage


def with_areas(
    rows: Iterable[CriterionRow], run: Run, nodes: int
) -> list[CriterionRow]:
    """Add the area to each criterion; the machine has `nodes` nodes.

    The first that is known decides: metric, place, the other criteria of the check (for
    a criterion without a metric), the most nodes of its cases.
    """
    table = (
        run.columns("check", "metric", "size_bytes", "source", "node")
        .group_by("check", "metric", "size_bytes")
        .agg(pl.col("source", "node").is_not_null().any())
        .collect(engine="streaming")
    )
    places: dict[tuple[str, str], Area] = {
        (check, flat_name(metric, size)): "links" if pairs else "nodes"
        for check, metric, size, pairs, alone in table.iter_rows()
        if pairs or alone
    }
    metrics = run.metrics
    known = [(row, _area(row, places, metrics)) for row in rows]
    of_check = {row.check: area for row, area in known if area and row.check}
    widths: dict[str, int] = {}
    for case in run.cases:
        widths[case.check] = max(widths.get(case.check, 0), len(case.nodes))

    def other(row: CriterionRow) -> str:
        if row.worst.kind in ("replay", "ledger"):
            return ""
        if row.check in of_check and not row.metric:
            return of_check[row.check]
        width = widths.get(row.check, 0)
        return "nodes" if width == 1 else "links" if width == 2 < nodes else "machine"

    return [replace(row, area=area or other(row)) for row, area in known]


def _area(
    row: CriterionRow,
    places: Mapping[tuple[str, str], Area],
    metrics: Mapping[str, Metric],
) -> Area | None:
    """Return the area by metric or place; None if neither has one."""
    if row.worst.kind in ("inventory", "declared"):
        return "links" if row.worst.check == CHECK else "nodes"
    if row.worst.kind == "fabric":
        return "links"
    if not row.metric:
        return None
    try:
        stated = split_flat_name(row.metric, metrics)[0].area
    except ValueError:  # a metric of foreign output
        stated = None
    return stated or places.get((row.check, row.metric))


def area_summaries(rows: Sequence[CriterionRow]) -> tuple[AreaSummary, ...]:
    """Return each area with judged criteria: their counts and its headline numbers."""
    areas: dict[str, list[CriterionRow]] = {area: [] for area in get_args(Area)}
    for row in rows:
        if row.area in areas and row.verdict in _JUDGED:
            areas[row.area].append(row)
    order = _JUDGED.index
    return tuple(
        AreaSummary(
            area,
            dict(Counter(sorted((row.verdict for row in own), key=order))),
            _headlines(own),
        )
        for area, own in areas.items()
        if own
    )


def _headlines(rows: Sequence[CriterionRow]) -> tuple[Headline, ...]:
    """Choose the numbers with the least margin, different metrics before sizes."""
    numbers = [row for row in rows if row.estimate and row.limit]
    first: dict[str, CriterionRow] = {}
    ordered = sorted(numbers, key=_urgency)
    for row in ordered:
        sized = row.worst.size_bytes is not None
        first.setdefault(row.metric.rpartition("_")[0] if sized else row.metric, row)
    chosen = [*first.values()]
    chosen += [row for row in ordered if row not in chosen]
    return tuple(map(_headline, chosen[:_MOST_HEADLINES]))


def _urgency(row: CriterionRow) -> tuple[int, bool, bool, float]:
    """Sort key: verdict, limits before sameness, then the least margin.

    Values equal to their limit (0 errors of at most 0) come last.
    """
    margin = margin_of(row)
    exact = row.verdict == "pass" and not margin
    sameness = row.worst.kind == "sameness"
    return (VERDICTS.index(row.verdict), exact, sameness, margin or 0.0)


def shared_bound(row: CriterionRow) -> float | None:
    """Return the confidence bound of the worst place of a shared finding, else None.

    The value of a shared finding is the median of its places.
    """
    bound = row.worst.lower if row.worst.direction == "higher" else row.worst.upper
    return bound if row.shared else None


def margin_of(row: CriterionRow) -> float | None:
    """Return the distance of the worst place to its limit: share, > 0 is better."""
    worst, bound = row.worst, shared_bound(row)
    value = worst.value if bound is None else bound
    if value is None or not worst.limit:
        return None
    beyond = (value - worst.limit) / abs(worst.limit)
    return -beyond if worst.direction == "lower" else beyond


def margin_words(margin: float | None) -> str:
    """Format a margin: '+12.3 %', '-40.1 %', '24.6 x limit'; '' if not known."""
    if margin is None:
        return ""
    if abs(margin) >= _MANY:
        return f"{text.exact(float(f'{abs(margin) + 1:.3g}'))} x limit"
    sign = "+" if margin > 0 else ""
    return f"{sign}{text.measured(100 * margin, 100, digits=3)} %"


def _headline(row: CriterionRow) -> Headline:
    worst, bound = row.worst, shared_bound(row)
    value = row.estimate
    if bound is not None:
        sign = "≥" if worst.direction == "higher" else "≤"
        number = text.measured(bound, worst.limit)
        value = f"{sign} {text.quantity(number, worst.unit)}"
    case = case_detail(worst.check, worst.case)
    return Headline(
        verdict=row.verdict,
        metric=row.metric,
        where=", ".join(filter(None, (worst.check, case, worst.environment))),
        place=_worst_of(row) if row.shared else worst.place,
        value=value,
        limit=row.limit,
        margin=margin_words(margin_of(row)),
    )


def _worst_of(row: CriterionRow) -> str:
    """Name the worst of places that share a finding.

    `row` counts the measured pairs; a finding may be on nodes or leafs, by their pairs.
    """
    return _WORST_PART.get(row.worst.kind, f"worst of {text.exact(row.places)}")
