"""A judgement on the terminal: verdict and causes for people, tables for programs."""

import json
import sys
from collections import Counter
from dataclasses import asdict, fields
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seatrial.csv_text import csv_text
from seatrial.errors import Exit
from seatrial.judge import Finding, Judgement
from seatrial.recordings import NO_MEASUREMENT
from seatrial.units import rounded

EXIT_OF = {"pass": Exit.PASS, "fail": Exit.FAILED, "undecided": Exit.UNDECIDED}
"""Exit status of a verdict."""

_COLOURS = {"pass": "green", "fail": "red", "undecided": "yellow", "skipped": "dim"}
_ORDER = ("fail", "undecided", "skipped", "pass")
_MOST_ROWS = 30
_MOST_SUSPECTS = 12
_MOST_CHANGES = 10
_WIDE = 160


def stdout_console() -> Console:
    """Make the console for standard output; wide when nobody looks at it."""
    return Console(width=None if sys.stdout.isatty() else _WIDE)


def print_summary(
    judgement: Judgement, path: Path, console: Console, *, causes: bool = True
) -> None:
    """Print verdict, counts, suspects, the findings that do not pass, and the path."""
    if judgement.replay:
        console.print(f"[bold]{NO_MEASUREMENT}[/]", highlight=False)
    colour = _COLOURS[judgement.verdict]
    console.print(
        f"[bold {colour}]{judgement.verdict.upper()}[/]  {judgement.system}, "
        f"campaign {judgement.campaign}: {_counts(judgement)}",
        highlight=False,
    )
    if judgement.convicted:
        console.print(f"failing nodes: [bold]{', '.join(judgement.convicted)}[/]")
    if judgement.worth_a_look:
        others = _few(judgement.worth_a_look)
        console.print(f"worth a look, not judged: {others}", highlight=False)
    for finding in judgement.findings:
        if finding.kind == "start":
            console.print(Text(finding.reason, style="yellow"), soft_wrap=True)
    for change in judgement.changed[:_MOST_CHANGES]:
        console.print(Text(f"criteria: {change}", style="yellow"), soft_wrap=True)
    if judgement.uncovered:
        console.print(
            f"criteria of checks that this campaign does not run: "
            f"{len(judgement.uncovered)}",
            highlight=False,
        )
    telling = [
        finding
        for verdict in ("fail", "undecided")
        for finding in judgement.findings
        if finding.verdict == verdict and causes
    ]
    for finding in telling[:_MOST_ROWS]:
        console.print(_line(finding), soft_wrap=True)
    if len(telling) > _MOST_ROWS:
        console.print(f"... and {len(telling) - _MOST_ROWS} more, see `seatrial judge`")
    console.print(f"digest: {judgement.digest}", highlight=False, soft_wrap=True)
    console.print(f"run: {path}", markup=False, highlight=False, soft_wrap=True)


def _line(finding: Finding) -> Text:
    """Say in one line what a finding is about, its value, its limit and why."""
    what = [finding.case or finding.kind, finding.environment, finding.metric]
    text = Text(f"{finding.verdict:9} ", style=_COLOURS[finding.verdict])
    text.append(" ".join(filter(None, what)), style="default")
    if finding.place:
        text.append(f" at {finding.place}", style="default bold")
    if finding.value is not None:
        value = _quantity(finding.value, finding.unit)
        limit = f" (limit {_limit(finding)})" if finding.limit is not None else ""
        text.append(f": {value}{limit}", style="default")
    for flag in finding.flags:
        text.append(f" [{flag}]", style="yellow")
    return text.append(f": {finding.reason}", style="default")


def findings_table(findings: list[Finding] | tuple[Finding, ...]) -> Table:
    """Lay findings out as a table, one row each."""
    table = Table(box=None, pad_edge=False)
    for heading in ("verdict", "case", "environment", "metric", "place"):
        table.add_column(heading, overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("limit", justify="right", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for finding in findings:
        table.add_row(
            f"[{_COLOURS[finding.verdict]}]{finding.verdict}[/]",
            finding.case or finding.kind,
            finding.environment,
            finding.metric,
            finding.place,
            _quantity(finding.value, finding.unit),
            _limit(finding),
            finding.reason.replace("[", r"\["),
        )
    return table


def format_findings(judgement: Judgement, form: str) -> str:
    """Write a judgement as `json` (all of it, with its digest) or `csv` (findings)."""
    if form == "json":
        content = {**asdict(judgement), "digest": judgement.digest}
        return json.dumps(content, indent=1) + "\n"
    return csv_text(
        [field.name for field in fields(Finding)],
        (
            {**vars(finding), "flags": "; ".join(finding.flags)}
            for finding in judgement.findings
        ),
    )


def _few(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST_SUSPECTS
    return ", ".join(names[:_MOST_SUSPECTS]) + (f" and {more} more" if more > 0 else "")


def _counts(judgement: Judgement) -> str:
    counts = Counter(str(finding.verdict) for finding in judgement.findings)
    parts = [f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict]]
    return ", ".join(parts) or "no findings"


def _quantity(value: float | None, unit: str) -> str:
    return "" if value is None else f"{rounded(value)} {unit}".removesuffix(" 1")


def _limit(finding: Finding) -> str:
    if finding.limit is None:
        return ""
    sign = {"higher": "≥ ", "lower": "≤ "}.get(finding.direction, "")
    return sign + _quantity(finding.limit, finding.unit)
