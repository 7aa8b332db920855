"""Closed runs of nodes that scatter in a known way."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from closed_runs import close_run
from judge_samples import CASE, sample

from seatrial.model.cases import Case
from seatrial.model.records import Measurement

NODES = tuple(f"cn{number:02}" for number in range(1, 9))


def node_run(
    results: Path,
    run_id: str,
    values: np.ndarray,
    system: str = "lab",
    *,
    case: Case = CASE,
    elapsed_s: float = 30.0,
    **manifest: Any,
) -> Path:
    """Close a run of an array (nodes, allocations) of bandwidths in MB/s."""
    names = NODES[: len(values)]
    case = replace(case, nodes=names, elapsed_s=elapsed_s)
    cases = [
        replace(case, session=f"pairs-{repeat}", repeat=repeat)
        for repeat in range(1, values.shape[1] + 1)
    ]
    rows: list[Measurement] = [
        sample(each, float(value), node=name)
        for each, column in zip(cases, values.T, strict=True)
        for name, value in zip(names, column, strict=True)
        if not np.isnan(value)
    ]
    described = {"nodes": present(names), **manifest}
    return close_run(results, run_id, system, rows=rows, cases=cases, **described)


def present(names: Sequence[str], kernel: str = "6.1.0") -> list[dict[str, Any]]:
    """Describe delivered nodes that were there, for a manifest."""
    facts = {"kernel": kernel}
    return [
        {"name": name, "facts": facts, "state": "present", "reason": ""}
        for name in names
    ]


def scattered(
    places: int,
    units: int,
    *,
    level: float = 100.0,
    place: float = 0.01,
    unit: float = 0.01,
    rest: float = 0.02,
    seed: int = 1,
) -> np.ndarray:
    """Draw lognormal values with these standard deviations of their logarithms."""
    rng = np.random.default_rng(seed)
    logs = (
        place * rng.standard_normal((places, 1))
        + unit * rng.standard_normal((1, units))
        + rest * rng.standard_normal((places, units))
    )
    values: np.ndarray = level * np.exp(logs)
    return values
