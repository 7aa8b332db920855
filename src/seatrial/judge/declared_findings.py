"""Findings on settings: as declared or not, and the same at start and end of a run."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from seatrial.criteria.declared import DeclaredCriterion
from seatrial.criteria.port_limits import PortLimit
from seatrial.criteria.recorded import Recorded
from seatrial.judge.findings import NOT_MEASURED, Finding
from seatrial.judge.port_findings import port_findings, selected_rows
from seatrial.model.units import counted
from seatrial.runs.closed_run import Run
from seatrial.runs.settings_table import is_stable, told

_FAILS = ("absent", "drift", "pending")
_RULED = (*_FAILS, "unknown")
_PLACE = ("node", "subject", "key")


def declared_findings(
    runs: Sequence[Run], criteria: Sequence[Recorded]
) -> list[Finding]:
    """Hold the settings at start and end of all runs, and their ports, to the criteria.

    Drift, what the next boot changes, and HCAs that are absent fail. A declared value
    that is unknown is undecided, and so is a node whose settings changed in a run.
    """
    tables = [run.settings for run in runs if run.settings is not None]
    findings = [finding for table in tables for finding in _changed(table)]
    for criterion in criteria:
        if isinstance(criterion, PortLimit):
            findings += port_findings(runs, criterion)
            continue
        if not isinstance(criterion, DeclaredCriterion) or criterion.kind != "declared":
            continue
        subject = Finding("declared", "Settings").held_to_declaration(criterion)
        selected = [selected_rows(told(table), criterion.where) for table in tables]
        findings += _judged(
            subject, criterion, selected, whole=len(tables) == len(runs)
        )
    return findings


def _judged(
    subject: Finding,
    criterion: DeclaredCriterion,
    tables: Sequence[pl.DataFrame],
    *,
    whole: bool,
) -> Iterator[Finding]:
    """Yield a finding for each setting of a node that does not pass, or one for all."""
    rows = pl.concat(tables) if tables else pl.DataFrame()
    declared = rows.filter(pl.col("declared").is_not_null()) if tables else rows
    if not whole or declared.is_empty():
        why = "none of its settings is declared" if whole else "the run has no settings"
        yield subject.judged(
            "skipped" if criterion.optional else "undecided", f"{NOT_MEASURED}: {why}"
        )
        return
    fails, unsure = list(_FAILS), pl.col("verdict") == "unknown"
    wrong = rows.filter(
        pl.col("verdict").is_in(fails) | (unsure & pl.col("declared").is_not_null())
    )
    ranked = wrong.with_columns(
        rank=pl.col("verdict").replace_strict(
            {name: rank for rank, name in enumerate(_RULED)}, return_dtype=pl.Int64
        )
    ).sort(["rank", "moment"], descending=[False, True])
    for row in ranked.unique(_PLACE, keep="first", maintain_order=True).iter_rows(
        named=True
    ):
        place = replace(
            subject, place=row["node"], metric=f"{row['subject']} {row['key']}"
        )
        unsure = row["verdict"] == "unknown"
        yield place.judged("undecided" if unsure else "fail", _words(row), n=1)
    if wrong.is_empty():
        nodes, settings = (declared.n_unique(of) for of in (["node"], [*_PLACE]))
        odd = rows.filter(pl.col("verdict") == "odd").unique(_PLACE)
        note = "; not like their class: " + _odd(odd) if odd.height else ""
        settings_of = f"{counted(settings, 'declared setting')} of "
        are = "is" if settings == 1 else "are"
        reason = f"{settings_of}{counted(nodes, 'node')} {are} as declared{note}"
        yield subject.judged("pass", reason, n=nodes)


def _words(row: dict[str, str | None]) -> str:
    """Format the fault of a setting."""
    declared = f"declared {row['declared']}" if row["declared"] else "not declared"
    if row["verdict"] == "unknown":
        return f"{declared}, unknown: {row['reason']}"
    if row["verdict"] == "absent":
        return f"absent: {row['reason'] or 'the driver lacks it'}"
    after = f", after the next boot {row['pending']}" if row["pending"] else ""
    where = f" ({row['reason']})" if row["reason"] else ""
    return f"{row['verdict']}: {declared}, found {row['actual']}{after}{where}"


def _odd(rows: pl.DataFrame) -> str:
    """Return the keys of odd settings, each with its number of nodes."""
    counts = rows.group_by("subject", "key").agg(pl.len()).sort("subject", "key")
    named = [
        f"{subject} {key} on {count}" for subject, key, count in counts.iter_rows()
    ]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    return ", ".join(named[:3]) + more


def _changed(table: pl.DataFrame) -> Iterator[Finding]:
    """Yield a finding for each setting that changed between start and end."""
    known = table.drop_nulls("actual").select("moment", *_PLACE, "actual")
    start, end = (
        known.filter(moment=moment).drop("moment") for moment in ("start", "end")
    )
    both = start.join(end, on=_PLACE, suffix="_after")
    changed = both.filter(pl.col("actual") != pl.col("actual_after")).sort(_PLACE)
    for node, subject, key, before, after in changed.iter_rows():
        if is_stable(subject, key):
            yield Finding(
                "declared",
                "Settings",
                metric=f"{subject} {key}",
                place=node,
                verdict="undecided",
                reason=f"changed during the run, from {before} to {after}: its numbers "
                "are of two configurations",
            )
