"""The catalogue: questions, metrics and requirements of all checks."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.checks.experiments import EXPERIMENTS
from seatrial.checks.listing import UNDEFINED, describe_checks
from seatrial.checks.sources import own_metrics
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.model.csv_text import csv_text
from seatrial.model.metrics import METRICS, Metric, split_flat_name
from seatrial.runs.closed_run import closed_runs, read_cases

_STATED = ("question", "tool", "experiments", "typical_s", "judged", "tags")
_EARLIER_RUNS = 10


@dataclass(frozen=True)
class Entry:
    """One check, as its class describes it; `metrics` are judged, by flat names.

    `extent` lists the nodes that its cases take: `one node`, `two nodes`, `one class`.
    `needs` are features of system and MPI stack, `cases` counts the choices of its
    parameters, or, on a system, those times classes and stacks that can run it.
    `typical_s` is the time of a case, from `recorded` cases, or stated if that is 0.
    """

    check: str
    question: str
    tool: str
    metrics: Mapping[str, Metric]
    extent: tuple[str, ...]
    needs: tuple[str, ...]
    cases: int
    typical_s: float
    recorded: int
    experiments: tuple[str, ...]
    tags: tuple[str, ...]
    file: str


def catalogue(checks: Path, home: Path) -> list[Entry]:
    """List all checks by name.

    Raises SeatrialError if a check cannot be loaded or lacks a required entry.
    """
    described: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for case in describe_checks(checks, home):
        described[case["@class"]].append(case)
    known = METRICS | own_metrics(checks)
    problems = [
        f"{cases[0]['@file']}: {name}: {problem}"
        for name, cases in described.items()
        for problem in _problems(cases[0], known)
    ]
    if problems:
        raise SeatrialError(
            "every check states question (its docstring), tool, experiments, "
            "typical_s, judged and tags:\n  " + "\n  ".join(problems)
        )
    return [_entry(cases, checks, known) for _, cases in sorted(described.items())]


def on_system(
    entries: Iterable[Entry],
    cases: Sequence[ListedCase] | None,
    recorded: Mapping[str, Sequence[float]],
) -> list[Entry]:
    """Return entries with the number of cases on a system, and their durations.

    Without `cases`, their number stays that of the parameters.
    """
    counts = None if cases is None else Counter(case.check for case in cases)
    completed = []
    for entry in entries:
        if times := recorded.get(entry.check):
            typical = statistics.median(times)
            entry = replace(entry, typical_s=typical, recorded=len(times))
        if counts is not None:
            entry = replace(entry, cases=counts[entry.check])
        completed.append(entry)
    return completed


def recorded_times(results: Path, system: str) -> dict[str, list[float]]:
    """Return the seconds of all measured cases of a system's last runs, by check."""
    times: dict[str, list[float]] = defaultdict(list)
    for run in closed_runs(results, system)[-_EARLIER_RUNS:]:
        with suppress(SeatrialError):
            for case in read_cases(run):
                if case.result == "pass" and case.elapsed_s and not case.replay:
                    times[case.check].append(case.elapsed_s)
    return times


def format_catalogue(entries: Sequence[Entry], form: str) -> str:
    """Write the catalogue as `json`, `csv`, or `markdown` (as in docs/checks.md)."""
    if form == "json":
        plain = [{**vars(entry), "metrics": _metrics(entry)} for entry in entries]
        return json.dumps(plain, indent=1) + "\n"
    if form == "markdown":
        columns = ("check", "question", "tool", "nodes", "experiments")
        head = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        rows = [
            f"| `{entry.check}` | {entry.question} | {entry.tool} "
            f"| {', '.join(entry.extent)} | {', '.join(entry.experiments)} |"
            for entry in entries
        ]
        return "\n".join([*head, *rows, ""])
    return csv_text(list(Entry.__dataclass_fields__), map(_row, entries))


def _row(entry: Entry) -> dict[str, Any]:
    """Return a row of the CSV file, with lists as texts."""
    names = ("needs", "experiments", "tags")
    lists = {name: " ".join(getattr(entry, name)) for name in names}
    lists["extent"] = ", ".join(entry.extent)
    metrics = "; ".join(" ".join(metric.values()) for metric in _metrics(entry))
    return {**vars(entry), **lists, "metrics": metrics}


def _metrics(entry: Entry) -> list[dict[str, str]]:
    return [
        {"name": name, "unit": metric.unit, "direction": metric.direction}
        for name, metric in entry.metrics.items()
    ]


def metric_words(entry: Entry) -> str:
    """Format metrics with units and directions, each once: 'latency (us, lower)'."""
    metrics = dict.fromkeys(entry.metrics.values())
    return ", ".join(f"{m.name} ({m.unit}, {m.direction})" for m in metrics)


def _problems(check: dict[str, Any], known: Mapping[str, Metric]) -> list[str]:
    """List missing and wrong entries of a check."""
    missing = [
        name
        for name in _STATED
        if check.get(name) in (UNDEFINED, "", None)
        or (check[name] == [] and name != "experiments")
    ]
    if missing:
        return [f"{name} is missing" for name in missing]
    problems = [
        f"experiments: {number}: expected {min(EXPERIMENTS)} to {max(EXPERIMENTS)}"
        for number in check["experiments"]
        if number not in EXPERIMENTS
    ]
    if not check["question"].endswith("?"):
        problems.append(f"its docstring opens with {check['question']!r}: ask")
    for flat in check["judged"]:
        try:
            split_flat_name(flat, known)
        except ValueError as error:
            problems.append(f"judged: {error}")
    return problems


def _entry(
    cases: Sequence[dict[str, Any]], checks: Path, known: Mapping[str, Metric]
) -> Entry:
    """Build the entry of a check from its cases."""
    first = cases[0]
    judged = [flat for case in cases for flat in case["judged"]]
    needs = dict.fromkeys(need.lstrip("+") for case in cases for need in case["needs"])
    return Entry(
        check=first["@class"],
        question=first["question"],
        tool=first["tool"],
        metrics={flat: split_flat_name(flat, known)[0] for flat in judged},
        extent=tuple(sorted({case["extent"] for case in cases})),
        needs=tuple(needs),
        cases=len(cases),
        typical_s=float(first["typical_s"]),
        recorded=0,
        experiments=tuple(first["experiments"]),
        tags=tuple(sorted(first["tags"])),
        file=str(Path(first["@file"]).resolve().relative_to(checks.resolve())),
    )
