"""The criteria of a report: one row each, over all cases and places."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from seatrial.judge.findings import Finding, Judgement
from seatrial.judge.row_numbers import numbered
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
from seatrial.runs.row_parts import Blocks, batches_in_blocks

_MAX_WHERE, _MAX_NAMED = 4, 6

_Where = tuple[str, str, str, str]
"""Check, case, environment, flat metric."""

_Measured = dict[_Where, tuple[int, int]]
"""Numbers of places and of allocations."""


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
    """Return the name of a finding's row, then the other parts of the row's key."""
    if finding.criterion:
        return (finding.criterion, "criterion")
    if finding.kind == "inventory":
        return ("Delivered nodes are present",)
    if finding.kind == "declared":
        return ("Settings stay the same during the run",)
    if finding.kind == "ledger":
        return ("The ledger lists every run",)
    if finding.kind == "replay":
        return ("The numbers were measured",)
    if finding.kind == "start":
        return (f"{finding.environment} starts", "start")
    if finding.kind == "case":
        name = f"{finding.case} runs and verifies"
        return (name, "case", finding.check, finding.environment)
    return (f"{finding.check} {finding.metric}", "metric", finding.check)


def _row(findings: Sequence[Finding], measured: _Measured) -> CriterionRow:
    worst = min(findings, key=lambda finding: (*urgency(finding), -badness(finding)))
    wheres = {_where(finding) for finding in findings}
    places, allocations = measured.get(_where(worst), (0, 0))
    shared = not worst.place and places > 1
    estimate = ""
    if worst.value is not None:
        number = text.measured(worst.value, worst.limit)
        estimate = text.quantity(number, worst.unit)
        if worst.kind == "sameness":
            estimate += " times the typical"
        elif shared:
            estimate += ", median of the places"
    elif worst.accepted is not None and worst.lower is not None:
        bound = text.measured(worst.lower, worst.limit)
        estimate = f"≥ {text.quantity(bound, worst.unit)}"
    return CriterionRow(
        name=_key(worst)[0],
        check=worst.check,
        metric=worst.metric,
        where=_applied(findings),
        kind=worst.reference_kind or worst.kind,
        clause=worst.reference_source,
        limit=limit_words(worst),
        estimate=estimate,
        interval=interval_words(worst),
        allocations=allocations if shared else worst.n,
        places=sum(measured[where][0] for where in wheres if where in measured),
        verdict=worst.verdict,
        reason=_reason(worst, findings),
        scatter=worst.spread,
        worst=worst,
        shared=shared and worst.value is not None,
    )


def _applied(findings: Iterable[Finding]) -> str:
    """Name the cases and environments that a criterion was applied to."""
    words = dict.fromkeys(
        f"{case_detail(finding.check, finding.case)} {finding.environment}".strip()
        for finding in findings
    )
    return ", ".join(few(filter(None, words), _MAX_WHERE))


def _reason(worst: Finding, findings: Sequence[Finding]) -> str:
    """Return the worst place's reason and the count of others with its verdict."""
    others = sum(finding.verdict == worst.verdict for finding in findings) - 1
    place = f"{worst.place}: " if worst.place else ""
    more = "" if worst.verdict == "pass" or not others else f"; and {others} more"
    return f"{place}{worst.reason}{more}"


def _where(finding: Finding) -> _Where:
    return (finding.check, finding.case, finding.environment, finding.metric)


def _measured(run: Run) -> _Measured:
    """Count places and allocations of every metric of every case."""
    keys = ("check", "case", "environment", "metric", "size_bytes")
    rows = run.columns(*keys, *PLACE, "job_id", "session")
    rows = rows.with_columns(job=pl.coalesce("job_id", "session"))
    measured: _Measured = {}
    for blocks in batches_in_blocks(rows, *keys):
        places, jobs = (
            {
                (*of, flat_name(metric, size)): count
                for *of, metric, size, count in _distinct(blocks, keys, what)
            }
            for what in (PLACE, ("job",))
        )
        measured |= {key: (count, jobs[key]) for key, count in places.items()}
    return measured


def _distinct(
    blocks: Blocks, keys: Sequence[str], what: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Count the distinct values of columns, by keys; there may be millions."""
    values = numbered(blocks, (*keys, *what))[1]
    return values.group_by(keys).len().rows()


def counts(rows: Iterable[CriterionRow]) -> dict[str, int]:
    """Count rows by verdict, in the order of `VERDICTS`."""
    verdicts = Counter(row.verdict for row in rows)
    return {verdict: verdicts[verdict] for verdict in VERDICTS}


def needs(judgement: Judgement, rows: Iterable[CriterionRow]) -> tuple[str, ...]:
    """Describe the data that the undecided criteria need, grouped by need."""
    more: dict[tuple[str, ...], int] = {}
    for finding in judgement.findings:
        if finding.verdict == "undecided" and finding.more:
            key = _key(finding)
            more[key] = max(more.get(key, 0), finding.more)
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict == "undecided":
            jobs = more.get(_key(row.worst), 0)
            need = f"about {jobs} more allocation{'s' * (jobs > 1)} each"
            groups.setdefault(need if jobs else row.reason, []).append(row.name)
    return tuple(
        f"{need}: {', '.join(few(names, _MAX_NAMED))}"
        for need, names in sorted(groups.items(), key=lambda group: -len(group[1]))
    )


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
    """Write a row per criterion; `place` to `more` are of the worst place."""
    columns = (*_OF_ROW, *_OF_WORST)
    return csv_text(
        columns,
        (
            {
                name: getattr(row if name in _OF_ROW else row.worst, name)
                for name in columns
            }
            for row in content.criteria
        ),
    )
