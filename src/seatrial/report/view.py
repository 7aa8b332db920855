"""What the page shows, drawn from a run and its judgement: orders, groups, sums."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from seatrial.judge import Finding, Judgement
from seatrial.metrics import METRICS
from seatrial.records import Case
from seatrial.report import text
from seatrial.results import Run

VERDICTS = ("fail", "undecided", "skipped", "pass")
"""Verdicts in the order of a table: what needs a look comes first."""

MAX_FINDINGS = 500
MAX_CASES = 300
"""Rows of one table; the rest is counted on the page and is in junit.xml."""

MAX_NAMES = 12
"""Names in one list at the top of the page; the rest is counted there."""


@dataclass(frozen=True)
class FindingRow:
    """A finding with its limit and its confidence bounds in words."""

    finding: Finding
    detail: str
    limit: str
    ratio: str
    interval: str


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
    """Where limits come from, and how many findings rest on it."""

    kind: str
    source: str
    metrics: str
    findings: int


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Count the findings of each verdict, in the order of `VERDICTS`."""
    found = Counter[str](finding.verdict for finding in findings)
    return {verdict: found[verdict] for verdict in VERDICTS}


def finding_rows(judgement: Judgement) -> list[FindingRow]:
    """Give the findings for the table, failing ones first, causes before effects."""
    findings = sorted(judgement.findings, key=_urgency)
    return [
        FindingRow(
            finding=finding,
            detail=case_detail(finding.check, finding.case),
            limit=limit_words(finding),
            ratio=text.ratio(finding.value, finding.limit),
            interval=interval_words(finding),
        )
        for finding in findings[:MAX_FINDINGS]
    ]


def _urgency(finding: Finding) -> tuple[int, bool]:
    """Sort key: what is wrong with a node stands before all the pairs it spoils."""
    wrong = finding.verdict in ("fail", "undecided")
    return VERDICTS.index(finding.verdict), wrong and finding.kind == "limit"


def case_detail(check: str, case: str) -> str:
    """Give what a case's name adds to its check's: the parameters."""
    return case.removeprefix(check).strip(" %_")


def limit_words(finding: Finding) -> str:
    """Say what a finding was held to: 'at least 60 MB/s'; '' if to nothing."""
    if finding.limit is None:
        return ""
    words = "at most" if finding.direction == "lower" else "at least"
    return f"{words} {text.quantity(text.exact(finding.limit), finding.unit)}"


def interval_words(finding: Finding) -> str:
    """Give the confidence bounds of a level: '1,000 to 1,200'; '' if there are none."""
    if finding.lower is None or finding.upper is None:
        return ""
    ends = (finding.lower, finding.upper)
    return " to ".join(text.measured(end, finding.limit) for end in ends)


def causes(judgement: Judgement) -> list[tuple[str, list[str]]]:
    """Name each convicted node with the limits that it missed."""
    found: dict[str, list[str]] = {name: [] for name in judgement.convicted}
    for finding in judgement.findings:
        if finding.verdict == "fail" and finding.node in found:
            said = f"{finding.check}, {finding.environment}: {finding.metric}"
            if finding.value is not None:
                value = text.measured(finding.value, finding.limit)
                value = text.quantity(value, finding.unit)
                said += f" is {value}, {limit_words(finding)} is required"
            found[finding.node].append(f"{said} ({finding.reason})")
    reasons = {node.name: node.reason for node in judgement.nodes}
    return [
        (name, few(said, 4) or [reasons.get(name, "")]) for name, said in found.items()
    ]


def methods(run: Run) -> list[Method]:
    """Tell for each check and metric which statistic of how many repetitions."""
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


def few(names: Iterable[str], most: int = 12) -> list[str]:
    """Shorten a list of names: the first ones, then 'and 3 more'."""
    names = list(names)
    more = len(names) - most
    return [*names[:most], f"and {more} more"] if more > 0 else names


def cases_by_result(cases: Sequence[Case], result: str) -> list[Case]:
    """Give the cases of one result, at most `MAX_CASES`, in their order."""
    return [case for case in cases if case.result == result][:MAX_CASES]
