"""The catalogue: what every check asks, measures and needs, in its own words."""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.checks.experiments import EXPERIMENTS
from seatrial.checks.listing import UNDEFINED, describe_checks
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.model.csv_text import csv_text
from seatrial.model.metrics import Direction, split_flat_name
from seatrial.runs.closed_run import closed_runs, read_cases

_STATED = ("question", "tool", "experiments", "typical_s", "judged", "tags")
_EARLIER_RUNS = 10


@dataclass(frozen=True)
class CatalogueMetric:
    """A judged metric by its flat name; `direction` says which values are better."""

    name: str
    unit: str
    direction: Direction


@dataclass(frozen=True)
class Entry:
    """What a check states of itself.

    `needs` are features of system and MPI stack, `cases` counts the choices of its
    parameters, or, on a system, those times partitions and stacks that can run it.
    `typical_s` is the time of a case, from `recorded` cases, or stated if that is 0.
    """

    check: str
    question: str
    tool: str
    metrics: tuple[CatalogueMetric, ...]
    needs: tuple[str, ...]
    cases: int
    typical_s: float
    recorded: int
    experiments: tuple[str, ...]
    tags: tuple[str, ...]
    file: str


def catalogue(checks: Path, home: Path) -> list[Entry]:
    """List all checks by name.

    Raises SeatrialError if a check cannot be loaded or leaves something unsaid.
    """
    described: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in describe_checks(checks, home):
        file = Path(each["@file"]).resolve().relative_to(checks.resolve())
        described[str(file), each["@class"]].append(each)
    problems = [
        f"{checks / file}: {name}: {problem}"
        for (file, name), cases in described.items()
        for problem in _problems(cases[0])
    ]
    if problems:
        raise SeatrialError(
            "every check states question (its docstring), tool, experiments, "
            "typical_s, judged and tags:\n  " + "\n  ".join(problems)
        )
    entries = (_entry(name, file, cases) for (file, name), cases in described.items())
    return sorted(entries, key=lambda entry: entry.check)


def on_system(
    entries: Iterable[Entry],
    cases: Sequence[ListedCase] | None,
    recorded: Mapping[str, Sequence[float]],
) -> list[Entry]:
    """Add the number of cases of each check on a system, and how long they took.

    Without `cases`, their number stays that of the parameters.
    """
    found = []
    for entry in entries:
        times = recorded.get(entry.check, ())
        if times:
            typical = statistics.median(times)
            entry = replace(entry, typical_s=typical, recorded=len(times))
        if cases is not None:
            own = sum(case.check == entry.check for case in cases)
            entry = replace(entry, cases=own)
        found.append(entry)
    return found


def recorded_times(results: Path, system: str) -> dict[str, list[float]]:
    """Return the seconds of every measured case of a system's last runs, by check."""
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
        return json.dumps([asdict(entry) for entry in entries], indent=1) + "\n"
    if form == "markdown":
        return _markdown(entries)
    return csv_text(list(Entry.__dataclass_fields__), map(_row, entries))


def _row(entry: Entry) -> dict[str, Any]:
    """Return an entry with each of its lists as one text."""
    row = asdict(entry)
    lists = {key: " ".join(row[key]) for key in ("needs", "experiments", "tags")}
    metrics = "; ".join(f"{m.name} {m.unit} {m.direction}" for m in entry.metrics)
    return {**row, **lists, "metrics": metrics}


def metric_words(entry: Entry) -> str:
    """Name metrics with units and directions, each once: 'latency (us, lower)'."""
    said = {}
    for metric in entry.metrics:
        plain, _ = split_flat_name(metric.name)
        said[plain.name] = f"{plain.name} ({plain.unit}, {plain.direction})"
    return ", ".join(said.values())


def _problems(check: dict[str, Any]) -> list[str]:
    """List what a check does not state, or states wrongly."""
    unsaid = [
        name
        for name in _STATED
        if check.get(name, UNDEFINED) in (UNDEFINED, "", None)
        or (check[name] == [] and name != "experiments")
    ]
    if unsaid:
        return [f"{name} is missing" for name in unsaid]
    problems = []
    unknown = [number for number in check["experiments"] if number not in EXPERIMENTS]
    if unknown:
        known = f"{min(EXPERIMENTS)} to {max(EXPERIMENTS)}"
        problems.append(f"experiments: {', '.join(unknown)}: expected {known}")
    if not check["question"].endswith("?"):
        problems.append(f"its docstring opens with {check['question']!r}: ask")
    for flat in check["judged"]:
        try:
            split_flat_name(flat)
        except ValueError as error:
            problems.append(f"judged: {error}")
    return problems


def _entry(name: str, file: str, cases: Sequence[dict[str, Any]]) -> Entry:
    metrics = _once(flat for case in cases for flat in case["judged"])
    needs = _once(need.lstrip("+") for case in cases for need in case["needs"])
    first = cases[0]
    return Entry(
        check=name,
        question=first["question"],
        tool=first["tool"],
        metrics=tuple(
            CatalogueMetric(flat, metric.unit, metric.direction)
            for flat in metrics
            for metric, _ in [split_flat_name(flat)]
        ),
        needs=needs,
        cases=len(cases),
        typical_s=float(first["typical_s"]),
        recorded=0,
        experiments=tuple(first["experiments"]),
        tags=tuple(sorted(first["tags"])),
        file=file,
    )


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _markdown(entries: Iterable[Entry]) -> str:
    rows = [
        f"| `{entry.check}` | {entry.question} | {entry.tool} "
        f"| {', '.join(entry.experiments)} |"
        for entry in entries
    ]
    head = ["| check | question | tool | experiments |", "|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"
