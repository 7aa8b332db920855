"""Words and orders that the chapters of a report share."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from seatrial.judge.judge import Finding
from seatrial.model.metrics import METRICS
from seatrial.report.render import text
from seatrial.report.render.text import few
from seatrial.runs.closed_run import Run

VERDICTS = ("fail", "undecided", "pass", "skipped")
"""Verdicts in the order of a table: what needs a look comes first."""

MAX_CASES = 300
"""Rows of a table of cases; the rest is counted there, and is in cases.json."""


@dataclass(frozen=True)
class Method:
    """How the numbers of one metric were obtained."""

    check: str
    metric: str
    unit: str
    direction: str
    meaning: str
    statistics: str
    repetitions: str
    samples: int


@dataclass(frozen=True)
class Source:
    """A source of limits, and how many findings rest on it."""

    kind: str
    source: str
    metrics: str
    findings: int


def urgency(finding: Finding) -> tuple[int, bool]:
    """Sort key: what is wrong with a node stands before all the pairs it spoils."""
    wrong = finding.verdict in ("fail", "undecided")
    return VERDICTS.index(finding.verdict), wrong and finding.kind == "limit"


def badness(finding: Finding) -> float:
    """Return the ratio of a value to its limit, signed: the larger, the worse."""
    if finding.value is None or not finding.limit:
        return 0.0
    ratio = finding.value / finding.limit
    return ratio if finding.direction == "lower" else -ratio


def case_detail(check: str, case: str) -> str:
    """Return the parameters in a case's name."""
    return case.removeprefix(check).strip(" %_")


def limit_words(finding: Finding) -> str:
    """Format the limit of a finding: 'at least 60 MB/s'; '' if there is none."""
    if finding.limit is None:
        return ""
    words = "at most" if finding.direction == "lower" else "at least"
    return f"{words} {text.quantity(text.exact(finding.limit), finding.unit)}"


def interval_words(finding: Finding) -> str:
    """Format confidence bounds: '1,000 to 1,200'; '' if there are none."""
    if finding.lower is None or finding.upper is None:
        return ""
    ends = (finding.lower, finding.upper)
    return " to ".join(text.measured(end, finding.limit) for end in ends)


def methods(run: Run) -> list[Method]:
    """List the statistic and the repetitions of each check and metric."""
    table = (
        run.measurements.group_by("check", "metric", maintain_order=True)
        .agg(
            pl.col("unit", "direction").first(),
            pl.col("statistic").unique().sort(),
            pl.col("n").min().alias("fewest"),
            pl.col("n").max().alias("most"),
            pl.len().alias("samples"),
        )
        .sort("check", "metric")
    )
    return [
        Method(
            check=row["check"],
            metric=row["metric"],
            unit=row["unit"],
            direction=row["direction"],
            meaning=METRICS[row["metric"]].meaning if row["metric"] in METRICS else "",
            statistics=", ".join(row["statistic"]),
            repetitions=_range(row["fewest"], row["most"]),
            samples=row["samples"],
        )
        for row in table.iter_rows(named=True)
    ]


def _range(low: int, high: int) -> str:
    return (
        text.exact(low) if low == high else f"{text.exact(low)} to {text.exact(high)}"
    )


def sources(findings: Iterable[Finding]) -> list[Source]:
    """List where the limits come from: kind and document."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.reference_kind or finding.reference_source:
            key = (finding.reference_kind, finding.reference_source)
            found.setdefault(key, []).append(finding)
    return [
        Source(
            kind,
            source,
            ", ".join(few(dict.fromkeys(f"{f.check} {f.metric}" for f in rows))),
            len(rows),
        )
        for (kind, source), rows in sorted(found.items())
    ]
