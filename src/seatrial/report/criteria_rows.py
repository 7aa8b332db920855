"""The criteria of a report: one row each, over all cases and places."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from seatrial.judge.findings import Finding, Judgement
from seatrial.model.csv_text import csv_text
from seatrial.model.metrics import flat_name
from seatrial.model.places import PLACE
from seatrial.report.areas import with_areas
from seatrial.report.content import Content, CriterionRow
from seatrial.report.render import text
from seatrial.report.render.text import few
from seatrial.report.wording import (
    VERDICTS,
    badness,
    case_detail,
    interval_words,
    limit_words,
    urgency,
)
from seatrial.runs.closed_run import Run

_DELIVERED, _REPLAY = "Delivered nodes are present", "The numbers were measured"
_MAX_WHERE = 4
_MAX_NAMED = 6
Where = tuple[str, str, str, str]
"""Check, case, environment, flat metric."""


@dataclass(frozen=True)
class _Measured:
    """Places and allocations of one metric in one case."""

    places: int
    allocations: int


def criterion_rows(run: Run, judgement: Judgement) -> tuple[CriterionRow, ...]:
    """Return a row per criterion, failing ones first.

    Delivered nodes, cases that must run and metrics without a limit have rows, too.
    """
    measured = _measured(run)
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in judgement.findings:
        groups.setdefault(_key(finding), []).append(finding)
    plain = [_row(findings, measured) for findings in groups.values()]
    rows = with_areas(plain, run, len(judgement.nodes))
    return tuple(sorted(rows, key=lambda row: VERDICTS.index(row.verdict)))


def _key(finding: Finding) -> tuple[str, ...]:
    """Return what a finding is about; findings with the same key share a row."""
    if finding.criterion:
        return ("criterion", finding.criterion)
    if finding.kind in ("inventory", "replay"):
        return (finding.kind,)
    if finding.kind == "start":
        return (finding.kind, finding.environment)
    if finding.kind == "case":
        return ("case", finding.check, finding.case, finding.environment)
    return ("metric", finding.check, finding.metric)


def _row(findings: Sequence[Finding], measured: dict[Where, _Measured]) -> CriterionRow:
    worst = min(findings, key=lambda each: (*urgency(each), -badness(each)))
    wheres = {_where(finding) for finding in findings}
    here = measured.get(_where(worst))
    shared = here is not None and not worst.place and here.places > 1
    estimate = ""
    if worst.value is not None:
        number = text.measured(worst.value, worst.limit)
        estimate = text.quantity(number, worst.unit)
        if worst.kind == "sameness":
            estimate += " times the typical"
        elif shared:
            estimate += ", median of the places"
    return CriterionRow(
        name=_name(worst),
        check=worst.check,
        metric=worst.metric,
        where=_applied(findings),
        kind=worst.reference_kind or worst.kind,
        clause=worst.reference_source,
        limit=limit_words(worst),
        estimate=estimate,
        interval=interval_words(worst),
        allocations=here.allocations if here and shared else worst.n,
        places=sum(measured[where].places for where in wheres if where in measured),
        verdict=worst.verdict,
        reason=_reason(worst, findings),
        scatter=worst.spread,
        worst=worst,
        shared=shared and worst.value is not None,
    )


def _name(finding: Finding) -> str:
    if finding.kind == "inventory":
        return _DELIVERED
    if finding.kind == "replay":
        return _REPLAY
    if finding.kind == "start":
        return f"{finding.environment} starts"
    if finding.criterion:
        return finding.criterion
    if finding.kind == "case":
        return f"{finding.case} runs and verifies"
    return f"{finding.check} {finding.metric}"


def _applied(findings: Iterable[Finding]) -> str:
    """Name the cases and environments that a criterion was applied to."""
    cases = dict.fromkeys(
        " ".join(
            filter(
                None, (case_detail(finding.check, finding.case), finding.environment)
            )
        )
        for finding in findings
    )
    return ", ".join(few(filter(None, cases), _MAX_WHERE))


def _reason(worst: Finding, findings: Sequence[Finding]) -> str:
    """Return the worst place's reason and the count of others of its verdict."""
    others = sum(finding.verdict == worst.verdict for finding in findings) - 1
    place = f"{worst.place}: " if worst.place else ""
    more = "" if worst.verdict == "pass" or not others else f"; and {others} more"
    return f"{place}{worst.reason}{more}"


def _where(finding: Finding) -> Where:
    return (finding.check, finding.case, finding.environment, finding.metric)


def _measured(run: Run) -> dict[Where, _Measured]:
    """Count places and allocations of every metric of every case."""
    keys = ("check", "case", "environment", "metric", "size_bytes")
    place = pl.struct(PLACE)
    table = (
        run.columns(*keys, *PLACE, "job_id", "session")
        .group_by(keys)
        .agg(
            places=place.n_unique(),
            allocations=pl.coalesce("job_id", "session").n_unique(),
        )
    )
    return {
        (check, case, environment, flat_name(metric, size)): _Measured(places, jobs)
        for check, case, environment, metric, size, places, jobs in table.iter_rows()
    }


def counts(rows: Iterable[CriterionRow]) -> dict[str, int]:
    """Count rows by verdict, in the order of `VERDICTS`."""
    verdicts = Counter(row.verdict for row in rows)
    return {verdict: verdicts[verdict] for verdict in VERDICTS}


def needs(judgement: Judgement, rows: Iterable[CriterionRow]) -> tuple[str, ...]:
    """Describe what would decide the undecided criteria, grouped by need."""
    more: dict[tuple[str, ...], int] = {}
    for finding in judgement.findings:
        if finding.verdict == "undecided" and finding.more:
            key = _key(finding)
            more[key] = max(more.get(key, 0), finding.more)
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict == "undecided":
            need = _need(more.get(_key(row.worst), 0), row.reason)
            groups.setdefault(need, []).append(row.name)
    return tuple(
        f"{need}: {', '.join(few(names, _MAX_NAMED))}"
        for need, names in sorted(groups.items(), key=lambda group: -len(group[1]))
    )


def _need(more: int, reason: str) -> str:
    """Return the allocations that the worst place needs; else the reason."""
    return f"about {more} more allocation{'s' * (more > 1)} each" if more else reason


_OF_ROW = (
    "name",
    "verdict",
    "check",
    "metric",
    "where",
    "kind",
    "clause",
    "allocations",
    "places",
    "reason",
    "scatter",
)
_OF_WORST = ("place", "direction", "limit", "value", "lower", "upper", "unit", "more")


def criteria_csv(content: Content) -> str:
    """Write a row per criterion; `value` to `more` are of the worst place."""
    return csv_text(
        (*_OF_ROW, *_OF_WORST),
        (
            {
                **{name: getattr(row, name) for name in _OF_ROW},
                **{name: getattr(row.worst, name) for name in _OF_WORST},
            }
            for row in content.criteria
        ),
    )
