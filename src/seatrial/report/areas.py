"""Headline numbers of page one, by area: nodes, links, the whole machine, programs.

A metric's area is stated in `METRICS`, or follows from the place where it was measured:
a node, a pair of nodes, or the whole allocation.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import get_args

import polars as pl

from seatrial.model.metrics import METRICS, Area, flat_name, split_flat_name
from seatrial.report.content import AreaSummary, CriterionRow, Headline
from seatrial.report.render import text
from seatrial.report.wording import VERDICTS, case_detail
from seatrial.runs.closed_run import Run

MOST_HEADLINES = 5
"""Headline numbers of an area."""

AREAS: tuple[Area, ...] = get_args(Area)
_JUDGED = ("fail", "undecided", "pass")
_MANY = 10
"""Ratio from which a margin is a multiple of the limit, not a percentage."""


def with_areas(
    rows: Iterable[CriterionRow], run: Run, nodes: int
) -> list[CriterionRow]:
    """Add the area to each criterion; the machine has `nodes` nodes.

    Metric or place give the area. A criterion without any number is in the area of its
    check's other criteria; any other one follows from the most nodes of its cases.
    """
    places = _places(run)
    known = [(row, _area(row, places)) for row in rows]
    of_check = {row.check: area for row, area in known if area and row.check}
    widths: dict[str, int] = {}
    for case in run.cases:
        widths[case.check] = max(widths.get(case.check, 0), len(case.nodes))

    def other(row: CriterionRow) -> str:
        if row.worst.kind == "replay":
            return ""
        if row.check in of_check and not row.metric:
            return of_check[row.check]
        width = widths.get(row.check, 0)
        return "nodes" if width == 1 else "links" if width == 2 < nodes else "machine"

    return [replace(row, area=area or other(row)) for row, area in known]


def _places(run: Run) -> dict[tuple[str, str], Area]:
    """Return 'links' or 'nodes' by check and flat metric measured at such places."""
    table = (
        run.columns("check", "metric", "size_bytes", "source", "node")
        .group_by("check", "metric", "size_bytes")
        .agg(pl.col("source", "node").is_not_null().any())
    )
    return {
        (check, flat_name(metric, size)): "links" if pairs else "nodes"
        for check, metric, size, pairs, nodes in table.iter_rows()
        if pairs or nodes
    }


def _area(row: CriterionRow, places: dict[tuple[str, str], Area]) -> Area | None:
    """Return the area by metric or place; None if neither has one."""
    if row.worst.kind == "inventory":
        return "nodes"
    if not row.metric:
        return None
    try:
        stated = split_flat_name(row.metric)[0].area
    except ValueError:  # a metric of foreign output
        stated = None
    return stated or places.get((row.check, row.metric))


def area_summaries(rows: Sequence[CriterionRow]) -> tuple[AreaSummary, ...]:
    """Return each area with judged criteria: their counts and its headline numbers."""
    summaries = []
    for area in AREAS:
        own = [row for row in rows if row.area == area and row.verdict in _JUDGED]
        if own:
            verdicts = Counter(row.verdict for row in own)
            counts = {
                verdict: verdicts[verdict] for verdict in _JUDGED if verdicts[verdict]
            }
            summaries.append(AreaSummary(area, counts, _headlines(own)))
    return tuple(summaries)


def _headlines(rows: Sequence[CriterionRow]) -> tuple[Headline, ...]:
    """Choose the numbers with the least margin, different metrics before sizes."""
    numbers = [row for row in rows if row.worst.value is not None and row.limit]
    ordered = sorted(numbers, key=_urgency)
    first: dict[str, CriterionRow] = {}
    for row in ordered:
        first.setdefault(_plain_metric(row.metric), row)
    chosen = [*first.values()]
    chosen += [row for row in ordered if row not in chosen]
    return tuple(_headline(row) for row in chosen[:MOST_HEADLINES])


def _urgency(row: CriterionRow) -> tuple[int, bool, bool, float]:
    """Sort key: verdict, limits before sameness, then the least margin.

    Values equal to their limit (0 errors of at most 0) come last.
    """
    margin = margin_of(row)
    exact = row.verdict == "pass" and not margin
    sameness = row.worst.kind == "sameness"
    return (VERDICTS.index(row.verdict), exact, sameness, margin or 0.0)


def _plain_metric(flat: str) -> str:
    name = flat.rpartition("_")[0]
    return name if flat not in METRICS and name in METRICS else flat


def shared_bound(row: CriterionRow) -> float | None:
    """Return the confidence bound of the worst place where many share a finding.

    Such a finding has the median of the places as its value.
    """
    worst = row.worst
    if not row.shared:
        return None
    return worst.lower if worst.direction == "higher" else worst.upper


def margin_of(row: CriterionRow) -> float | None:
    """Return by what share of its limit the worst place is better; None: not known."""
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
        place=f"worst of {text.exact(row.places)}" if row.shared else worst.place,
        value=value,
        limit=row.limit,
        margin=margin_words(margin_of(row)),
    )
