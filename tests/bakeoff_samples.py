"""Runs for bake-offs: two vendors' machines whose truth is known."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from closed_runs import close_run
from reframe_runs import HOME

from seatrial.compare.pairing import Floats, Paired
from seatrial.compare.records import Key
from seatrial.compare.sides import Entrant, of_run
from seatrial.criteria.keys import ANY
from seatrial.criteria.published import Published, load_published
from seatrial.criteria.weights import Weights
from seatrial.model.cases import Case, parameters_text
from seatrial.model.metrics import METRICS, split_flat_name
from seatrial.model.records import Measurement, as_dict
from seatrial.paths import published_dir
from seatrial.runs.closed_run import Run
from seatrial.runs.measurement_table import SCHEMA

WEIGHTS = """\
schema: 1
margin: 0.02
groups:
  - name: latency
    weight: 1
    numbers:
      - {check: OsuLatency, metrics: [latency]}
  - name: programs
    weight: 3
    numbers:
      - {check: LammpsRhodo, metrics: [loop_time]}
"""
SHA256 = hashlib.sha256(WEIGHTS.encode()).hexdigest()

LEVELS = {
    "OsuLatency": {"latency_8B": 2.0, "latency_64KiB": 20.0},
    "OsuBandwidth": {"bw_4MiB": 12000.0},
    "LammpsRhodo": {"loop_time": 30.0},
}
NODES = ("cn01", "cn02")


def case(check: str, repeat: int, **more: Any) -> Case:
    """Build a case of a check that passed."""
    given: dict[str, Any] = {
        "session": f"all-{repeat}",
        "repeat": repeat,
        "check": check,
        "case": check,
        "partition": "acme:batch",
        "environment": "openmpi",
        "parameters": {},
        "result": "pass",
        "nodes": NODES,
        "job_id": f"{check}-{repeat}",
    }
    return Case(**(given | more))


def number(case: Case, flat: str, value: float, **more: Any) -> Measurement:
    """Build a number of the whole allocation of a case."""
    metric, size = split_flat_name(flat)
    given: dict[str, Any] = {
        "run": "r",
        "session": case.session,
        "block": "all",
        "repeat": case.repeat,
        "system": "acme",
        "partition": case.partition,
        "environment": case.environment,
        "check": case.check,
        "case": case.case,
        "parameters": parameters_text(case.parameters),
        "job_id": case.job_id,
        "nodes": " ".join(case.nodes),
        **dict.fromkeys(("node", "socket", "source", "destination", "hca", "round")),
        "metric": metric.name,
        "size_bytes": size,
        "statistic": "mean",
        "n": 1,
        "value": value,
        "unit": metric.unit,
        "direction": metric.direction,
        "start_time": 0.0,
    }
    return Measurement(**(given | more))


def vendor(
    better: float = 1.0,
    *,
    repeats: int = 6,
    scatter: float = 0.01,
    seed: int = 1,
    levels: Mapping[str, Mapping[str, float]] = LEVELS,
) -> tuple[list[Case], list[Measurement]]:
    """Draw the cases and numbers of a machine that is so much better than `levels`."""
    generator = np.random.default_rng(seed)
    cases, rows = [], []
    for repeat in range(1, repeats + 1):
        luck = scatter * generator.standard_normal()
        for check, numbers in levels.items():
            one = case(check, repeat)
            cases.append(one)
            for flat, level in numbers.items():
                own = luck + scatter * generator.standard_normal()
                sign = 1 if split_flat_name(flat)[0].direction == "higher" else -1
                value = level * (better * float(np.exp(own))) ** sign
                rows.append(number(one, flat, value))
    return cases, rows


def run_of(
    cases: Sequence[Case],
    rows: Sequence[Measurement],
    system: str = "acme",
    **manifest: Any,
) -> Run:
    """Build a run in memory."""
    described = {
        "run": f"20260101T000000Z-{system}",
        "system": system,
        "campaign": "bakeoff",
        "started": "2026-01-01T00:00:00+00:00",
        "nodes": [{"name": name, "state": "present"} for name in NODES],
        "weights": {"name": "bakeoff", "sha256": SHA256},
    }
    frame = pl.DataFrame([as_dict(row) for row in rows], schema=SCHEMA)
    return Run(Path(system), {**described, **manifest}, tuple(cases), frame.lazy())


def entrant(name: str, run: Run, environment: str = "", **side: Any) -> Entrant:
    """Build a side of a run."""
    found = of_run(run, environment)
    return dataclasses.replace(
        found, side=dataclasses.replace(found.side, name=name, **side)
    )


def weights_of(folder: Path, text: str = WEIGHTS) -> Weights:
    """Read weights that are written down in a folder."""
    file = folder / "bakeoff.yaml"
    file.write_text(text)
    return Weights.load(file, known=ANY)


def close_vendor(
    results: Path, system: str, better: float = 1.0, /, *, seed: int = 1, **more: Any
) -> Path:
    """Close the run of a vendor, which kept `WEIGHTS`."""
    cases, rows = vendor(better, seed=seed)
    given: dict[str, Any] = {
        "rows": rows,
        "cases": cases,
        "weights": {"name": "bakeoff", "sha256": SHA256},
        "kept": {"system/weights.yaml": WEIGHTS},
    }
    return close_run(results, "20260101T000000Z-bakeoff", system, **(given | more))


def drawn(
    repeats: Sequence[Floats], checks: Sequence[str] = (), metric: str = "latency"
) -> Paired:
    """Pair arrays (numbers, repeats) of logarithms, one of each side."""
    count = len(repeats[0])
    names = checks or [f"Check{n}" for n in range(count)]
    keys = [Key(name, "", "", "", None, metric, None) for name in names]
    present = [(~np.isnan(each)).sum(axis=1) for each in repeats]
    return Paired(
        keys,
        [METRICS[metric].unit] * count,
        [METRICS[metric].direction] * count,
        [{}] * count,
        means=np.stack([np.nanmean(each, axis=1) for each in repeats], axis=1),
        counts=np.stack(present, axis=1),
        repeats=list(repeats),
    )


Rows = tuple[list[Case], list[Measurement]]


def side(name: str, better: float = 1.0, seed: int = 1, **more: Any) -> Entrant:
    return entrant(name, run_of(*vendor(better, seed=seed), name), **more)


def of(name: str, values: dict[str, list[float]], **more: Any) -> Entrant:
    """Build a side of one check, `Osu`; a list has a number of each repeat."""
    return entrant(name, run_of(*numbers_of(values, **more), name))


def numbers_of(values: dict[str, list[float]], check: str = "Osu", **more: Any) -> Rows:
    repeats = range(1, 1 + max(map(len, values.values())))
    cases = [case(check, repeat, **more) for repeat in repeats]
    rows = [
        number(one, flat, value)
        for flat, each in values.items()
        for one, value in zip(cases, each, strict=False)
    ]
    return cases, rows


def published() -> Published:
    """Read what the papers published."""
    return load_published(published_dir(HOME))
