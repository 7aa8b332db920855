"""The data of closed runs that are judged together: cases, numbers and nodes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import polars as pl

from seatrial.errors import SeatrialError
from seatrial.judge.sampling import rows_of
from seatrial.model.cases import Case, CaseKey
from seatrial.runs.closed_run import Run
from seatrial.runs.row_parts import LoadBlocks, parts_in_blocks


def alike_in_time_order(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Sort runs by their start: their order on a command line means nothing.

    Raises SeatrialError if they cannot be judged together.
    """
    ordered = tuple(sorted(runs, key=start_time))
    _require_alike(ordered)
    return ordered


def start_time(run: Run) -> float:
    """Return when a run started, UTC seconds; 0 if its manifest does not say it."""
    text = run.manifest.get("started")
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _require_alike(runs: Sequence[Run]) -> None:
    """Raise SeatrialError if runs cannot be judged together."""
    first, *others = runs
    for run in others:
        for key in ("system", "campaign"):
            if run.manifest[key] != first.manifest[key]:
                raise SeatrialError(
                    f"{run.path}: {key} {run.manifest[key]!r}; expected "
                    f"{first.manifest[key]!r}, as in {first.path}: only runs of one "
                    "campaign on one system are judged together"
                )
    names = [run.manifest["run"] for run in runs]
    if len(set(names)) < len(names):
        raise SeatrialError(f"a run counts once; found {', '.join(names)}")


def is_replay(runs: Sequence[Run]) -> bool:
    """Return True if the runs replay recorded output.

    Raises SeatrialError if only some of their results are replayed.
    """
    marks = set()
    for run in runs:
        marks |= {bool(run.manifest.get("replay"))}
        marks |= {case.replay for case in run.cases}
        replay = run.columns("replay").unique().collect()["replay"]
        marks |= {bool(mark) for mark in replay}
    if len(marks) > 1:
        raise SeatrialError(
            f"{', '.join(str(run.path) for run in runs)}: some of the results are "
            "measured, others replayed from recorded output; expected one or the "
            "other; such a run is never judged"
        )
    return marks.pop()


def cases_of(runs: Sequence[Run]) -> dict[CaseKey, list[Case]]:
    """Group the cases of all runs; prefix the sessions of further runs by the run."""
    cases: dict[CaseKey, list[Case]] = defaultdict(list)
    for number, run in enumerate(runs):
        prefix = f"{run.manifest['run']}/" if number else ""
        for case in run.cases:
            cases[case.key].append(replace(case, session=prefix + case.session))
    return cases


def last_tries(tries: Sequence[Case]) -> list[Case]:
    """Return the last try of each session (numbers of every try count)."""
    return list({case.session: case for case in tries}.values())


def rows(runs: Sequence[Run]) -> pl.LazyFrame:
    """Return the numbers of all runs, in the order of the runs."""
    return pl.concat(map(rows_of, runs))


def by_case(table: pl.LazyFrame) -> dict[CaseKey, list[LoadBlocks]]:
    """Return the numbers by case, with a table for each metric and size."""
    by_case: dict[CaseKey, list[LoadBlocks]] = defaultdict(list)
    columns = (*CaseKey._fields, "metric", "size_bytes")
    for (*key, _, _), load in parts_in_blocks(table, *columns):
        by_case[CaseKey(*key)].append(load)
    return by_case


def delivered_nodes(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the delivered nodes; absence in one run is absence."""
    nodes: dict[str, dict[str, Any]] = {}
    for run in runs:
        for node in run.manifest["nodes"]:
            if nodes.setdefault(node["name"], node)["state"] == "present":
                nodes[node["name"]] = node
    return list(nodes.values())


def leafs_of(nodes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the leaf switch of each node that has one in its facts: 'leaf l3'."""
    known = {node["name"]: (node.get("facts") or {}).get("leaf") for node in nodes}
    return {name: f"leaf {leaf}" for name, leaf in known.items() if leaf}
