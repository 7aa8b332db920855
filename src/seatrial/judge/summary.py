"""A judgement on the terminal: verdict and causes for people, tables for programs."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from seatrial.console import Terminal
from seatrial.errors import Exit
from seatrial.judge.findings import Finding, Judgement
from seatrial.judge.other_campaigns import words_elsewhere
from seatrial.model.csv_text import csv_text
from seatrial.model.units import rounded
from seatrial.runs.raw_output import NO_MEASUREMENT

_COLOURS = {
    "pass": "green",
    "pass with waivers": "cyan",
    "fail": "red",
    "not shown": "magenta",
    "undecided": "yellow",
    "skipped": "dim",
}
_ORDER = ("fail", "not shown", "undecided", "skipped", "pass")
_MOST_ROWS = 30
_MOST_SUSPECTS = 12
_MOST_CHANGES = 10
_MOST_NAMES = 4
_REASON_WIDTH, _UNLIMITED = 40, 10_000
_DATA_DIGITS = 12

Parts = list[str | tuple[str, str]]


def exit_of(judgement: Judgement) -> Exit:
    """Return the exit status: what is not shown fails where the seller bears it."""
    if judgement.verdict == "not shown":
        return Exit.FAILED if judgement.bears == "seller" else Exit.UNDECIDED
    statuses = {"fail": Exit.FAILED, "undecided": Exit.UNDECIDED}
    return statuses.get(judgement.verdict, Exit.PASS)


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
    if words := words_elsewhere(judgement.findings):
        console.print_line(f"not judged: {words}")
    if judgement.convicted:
        console.print_line("failing nodes: ", (", ".join(judgement.convicted), "bold"))
    for node in judgement.nodes:
        if node.state != "present":
            name = (node.name, "bold")
            console.print_line(f"{node.state} node: ", name, f": {node.reason}")
    for party in ("seller", "buyer"):
        if places := _not_shown(judgement, party):
            names = (_few(places, _MOST_SUSPECTS), f"bold {_COLOURS['not shown']}")
            console.print_line("not shown: ", names, f"; the {party} bears that")
    if places := _undecided_places(judgement.findings):
        console.print_line("look at: ", (_few(places, _MOST_SUSPECTS), "bold"))
    if judgement.worth_a_look:
        others = _few(judgement.worth_a_look, _MOST_SUSPECTS)
        console.print_line(f"worth a look, not judged: {others}")
    notes = [f.reason for f in judgement.findings if f.kind == "start"]
    notes += [f"criteria: {change}" for change in judgement.changed[:_MOST_CHANGES]]
    notes += [f"reason, signed: {reason}" for reason in judgement.reasons]
    notes += [f"waiver, signed: {waiver}" for waiver in judgement.waivers]
    notes += (*judgement.spoiled, *judgement.repeats, *judgement.history)
    for note in notes:
        console.print_line((note, "yellow"))
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
    """Print findings, equal ones once: a table, or lines if a table cuts words."""
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
    """Print the findings that do not pass, the worst first, equal ones once."""
    causes = [f for f in findings if f.verdict not in ("pass", "skipped")]
    causes.sort(key=lambda finding: _ORDER.index(finding.verdict))
    groups = _folded(causes, across_cases=True)
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


def _not_shown(judgement: Judgement, party: str) -> list[str]:
    """Return the places, or cases, whose "not shown" a party bears, without failing."""
    failing = judgement.failing
    return [
        *dict.fromkeys(
            finding.place or _subject(finding)
            for finding in judgement.findings
            if (finding.verdict, finding.bears) == ("not shown", party)
            and not failing & {finding.place, finding.node}
        )
    ]


def _undecided_places(findings: Iterable[Finding]) -> list[str]:
    """Return the undecided places that miss the limit, or others of the metric pass."""
    groups: dict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        key = (finding.kind, finding.criterion, _subject(finding))
        groups[key].append(finding)
    places: dict[str, None] = {}
    for group in groups.values():
        others_pass = any(finding.verdict == "pass" for finding in group)
        places |= {
            finding.place: None
            for finding in group
            if finding.verdict == "undecided" and (others_pass or _misses(finding))
        }
    return [*filter(None, places)]


def _misses(finding: Finding) -> bool:
    """Return True if the value is on the wrong side of its limit."""
    if finding.value is None or finding.limit is None:
        return False
    sign = -1 if finding.direction == "lower" else 1
    return sign * finding.value < sign * finding.limit


def _subject(finding: Finding) -> str:
    parts = (finding.case or finding.kind, finding.environment, finding.metric)
    return " ".join(filter(None, parts))


def _line(group: Sequence[Finding]) -> Parts:
    """Format equal findings as one line: subject, value, limit and reason."""
    first = group[0]
    subjects = list(dict.fromkeys(map(_subject, group)))
    line: Parts = [(f"{first.verdict:9} ", _COLOURS[first.verdict])]
    line.append(_few(subjects, _MOST_NAMES))
    if places := _places(group):
        line.append((f" at {places}", "bold"))
    if len(group) > 1:
        line.append(f" ({len(group)} findings)")
    limit = f"limit {_limit(first)}" if first.limit is not None else ""
    if value := _value(group):
        line.append(f": {value} ({limit})" if limit else f": {value}")
    elif first.accepted is not None:
        line.append(f": {limit}")
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
    for heading in rows[0]:
        cells = [heading, *(row[heading] for row in rows)]
        whole = heading not in ("place", "reason")
        words = cells if whole else [word for cell in cells for word in cell.split()]
        least = _REASON_WIDTH if heading == "reason" else 0
        table.add_column(
            heading,
            justify="right" if heading in ("value", "limit") else "left",
            no_wrap=whole,
            min_width=max(least, *map(cell_len, words)),
        )
    for row in rows:
        verdict, *cells = row.values()
        table.add_row(Text(verdict, _COLOURS[verdict]), *cells)
    return table


def _row(group: Sequence[Finding]) -> dict[str, str]:
    """Return the cells of equal findings by heading."""
    first = group[0]
    count = f"{len(group)}: " if len(group) > 1 else ""
    return {
        "verdict": first.verdict,
        "case": first.case or first.kind,
        "environment": first.environment,
        "metric": first.metric,
        "place": count + _places(group),
        "value": _value(group),
        "limit": _limit(first),
        "reason": first.reason,
    }


def format_findings(judgement: Judgement, form: str) -> str:
    """Format a judgement as `json` (all of it, with its digest) or `csv` (findings)."""
    if form == "json":
        of_all = {"bears": judgement.bears, "digest": judgement.digest}
        content = asdict(replace(judgement, phases=None)) | of_all
        del content["phases"]  # the findings on them say it all
        for name in ("located", "waivers"):
            if not content[name]:
                del content[name]
        return json.dumps(content, indent=1) + "\n"
    columns = [field.name for field in fields(Finding)]
    rows = (
        {name: _datum(getattr(f, name)) for name in columns} for f in judgement.findings
    )
    return csv_text(columns, rows)


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
    limit = _quantity(finding.limit, finding.unit)
    if finding.accepted is not None:
        return f"≥ {_quantity(finding.accepted, finding.unit)}, rejected ≤ {limit}"
    sign = {"higher": "≥ ", "lower": "≤ "}.get(finding.direction, "")
    return sign + limit
