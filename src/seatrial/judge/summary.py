"""A judgement on the terminal: verdict and causes for people, tables for programs."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from seatrial.console import Terminal
from seatrial.errors import Exit
from seatrial.judge.findings import Finding, Judgement
from seatrial.model.csv_text import csv_text
from seatrial.model.units import rounded
from seatrial.runs.raw_output import NO_MEASUREMENT

EXIT_OF = {"pass": Exit.PASS, "fail": Exit.FAILED, "undecided": Exit.UNDECIDED}
"""Exit status of a verdict."""

_COLOURS = {"pass": "green", "fail": "red", "undecided": "yellow", "skipped": "dim"}
_ORDER = ("fail", "undecided", "skipped", "pass")
_MOST_ROWS = 30
_MOST_SUSPECTS = 12
_MOST_CHANGES = 10
_MOST_NAMES = 4
_HEADINGS = (
    "verdict",
    "case",
    "environment",
    "metric",
    "place",
    "value",
    "limit",
    "reason",
)
_REASON_WIDTH, _UNLIMITED = 40, 10_000
_DATA_DIGITS = 12

Parts = list[str | tuple[str, str]]


def print_summary(
    judgement: Judgement, path: str, console: Terminal, *, causes: bool = True
) -> None:
    """Print verdict, counts, nodes, the findings that do not pass, and the path."""
    if judgement.replay:
        console.print_line((NO_MEASUREMENT, "bold"))
    console.print_line(
        (judgement.verdict.upper(), f"bold {_COLOURS[judgement.verdict]}"),
        f"  {judgement.system}, campaign {judgement.campaign}: {_counts(judgement)}",
    )
    if judgement.convicted:
        console.print_line("failing nodes: ", (", ".join(judgement.convicted), "bold"))
    for node in judgement.nodes:
        if node.state != "present":
            name = (node.name, "bold")
            console.print_line(f"{node.state} node: ", name, f": {node.reason}")
    places = _undecided_places(judgement.findings)
    if places:
        console.print_line("look at: ", (_few(places, _MOST_SUSPECTS), "bold"))
    if judgement.worth_a_look:
        others = _few(judgement.worth_a_look, _MOST_SUSPECTS)
        console.print_line(f"worth a look, not judged: {others}")
    for finding in judgement.findings:
        if finding.kind == "start":
            console.print_line((finding.reason, "yellow"))
    for change in judgement.changed[:_MOST_CHANGES]:
        console.print_line((f"criteria: {change}", "yellow"))
    if judgement.uncovered:
        console.print_line(
            "criteria of checks that this campaign does not run: "
            f"{len(judgement.uncovered)}"
        )
    if causes:
        _print_causes(judgement.findings, console)
    console.print_whole(f"digest: {judgement.digest}")
    console.print_whole(f"run: {path}")


def print_findings(findings: Sequence[Finding], console: Terminal) -> None:
    """Print findings, equal ones once: a table, or lines if that would cut words."""
    groups = _folded(findings, across_cases=False)
    table = _table(groups)
    unlimited = console.options.update(max_width=_UNLIMITED)
    needed = console.measure(table, options=unlimited).minimum
    if not console.is_terminal:
        console.width = max(console.width, needed)
    if needed <= console.width:
        console.print(table)
        return
    for group in groups:
        console.print_line(*_line(group))


def _print_causes(findings: Sequence[Finding], console: Terminal) -> None:
    """Print the findings that fail, then those that are undecided, equal ones once."""
    groups = _folded(
        [
            finding
            for verdict in ("fail", "undecided")
            for finding in findings
            if finding.verdict == verdict
        ],
        across_cases=True,
    )
    for group in groups[:_MOST_ROWS]:
        console.print_line(*_line(group))
    if len(groups) > _MOST_ROWS:
        console.print_line(
            f"... and {len(groups) - _MOST_ROWS} more, see `seatrial judge`"
        )


def _folded(findings: Iterable[Finding], *, across_cases: bool) -> list[list[Finding]]:
    """Group findings that differ in place and value only, or also in their case."""
    groups: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        key: tuple[object, ...] = (finding.verdict, finding.reason, finding.flags)
        if not across_cases:
            key += (_subject(finding), finding.limit)
        groups[key].append(finding)
    return list(groups.values())


def _undecided_places(findings: Iterable[Finding]) -> list[str]:
    """Return the places that an undecided finding singles out, each once.

    It does so if its value misses the limit, or if other places of the metric pass.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        key = (finding.kind, finding.criterion, _subject(finding))
        groups[key].append(finding)
    return list(
        dict.fromkeys(
            finding.place
            for group in groups.values()
            for finding in group
            if finding.verdict == "undecided"
            and finding.place
            and (_misses(finding) or any(x.verdict == "pass" for x in group))
        )
    )


def _misses(finding: Finding) -> bool:
    """Return True if the value is on the wrong side of its limit."""
    if finding.value is None or finding.limit is None:
        return False
    if finding.direction == "lower":
        return finding.value > finding.limit
    return finding.value < finding.limit


def _subject(finding: Finding) -> str:
    parts = (finding.case or finding.kind, finding.environment, finding.metric)
    return " ".join(filter(None, parts))


def _line(group: Sequence[Finding]) -> Parts:
    """Format equal findings as one line: subject, value, limit and reason."""
    first = group[0]
    line: Parts = [(f"{first.verdict:9} ", _COLOURS[first.verdict])]
    subjects = list(dict.fromkeys(map(_subject, group)))
    line.append(_few(subjects, _MOST_NAMES))
    if places := _places(group):
        line.append((f" at {places}", "bold"))
    if len(group) > 1:
        line.append(f" ({len(group)} findings)")
    if value := _value(group):
        limit = f" (limit {_limit(first)})" if first.limit is not None else ""
        line.append(f": {value}{limit}")
    line += [(f" [{flag}]", "yellow") for flag in first.flags]
    return [*line, f": {first.reason}"]


def _value(group: Sequence[Finding]) -> str:
    """Format the value of equal findings, the worst if they differ; '' without."""
    first = group[0]
    values = {finding.value for finding in group if finding.value is not None}
    if not values or len({(x.unit, x.limit, x.direction) for x in group}) > 1:
        return ""
    worst = max(values) if first.direction == "lower" else min(values)
    return ("" if len(values) == 1 else "at worst ") + _quantity(worst, first.unit)


def _places(group: Sequence[Finding]) -> str:
    places = list(dict.fromkeys(finding.place for finding in group if finding.place))
    return _few(places, _MOST_NAMES)


def _table(groups: Sequence[Sequence[Finding]]) -> Table:
    """Format findings, equal ones in one row; no column is narrower than a word."""
    rows = [_row(group) for group in groups]
    table = Table(box=None, pad_edge=False)
    for heading, *cells in zip(_HEADINGS, *rows, strict=True):
        whole = heading not in ("place", "reason")
        words = cells if whole else [word for cell in cells for word in cell.split()]
        table.add_column(
            heading,
            justify="right" if heading in ("value", "limit") else "left",
            no_wrap=whole,
            min_width=max(
                _REASON_WIDTH if heading == "reason" else 0,
                *(cell_len(word) for word in (heading, *words)),
            ),
        )
    for verdict, *cells in rows:
        table.add_row(Text(verdict, _COLOURS[verdict]), *cells)
    return table


def _row(group: Sequence[Finding]) -> tuple[str, ...]:
    first = group[0]
    return (
        first.verdict,
        first.case or first.kind,
        first.environment,
        first.metric,
        _places(group) if len(group) == 1 else f"{len(group)}: {_places(group)}",
        _value(group),
        _limit(first),
        first.reason,
    )


def format_findings(judgement: Judgement, form: str) -> str:
    """Write a judgement as `json` (all of it, with its digest) or `csv` (findings)."""
    if form == "json":
        content = {**asdict(judgement), "digest": judgement.digest}
        return json.dumps(content, indent=1) + "\n"
    return csv_text(
        [field.name for field in fields(Finding)],
        (
            {key: _datum(value) for key, value in vars(finding).items()}
            for finding in judgement.findings
        ),
    )


def _datum(value: object) -> object:
    """Convert a value of a finding for CSV, without the noise of binary fractions."""
    if isinstance(value, tuple):
        return "; ".join(value)
    return float(f"{value:.{_DATA_DIGITS}g}") if isinstance(value, float) else value


def _few(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


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
