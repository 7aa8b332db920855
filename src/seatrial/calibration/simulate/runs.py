"""Convert a drawn machine to a closed run in memory and the criteria for it."""

from pathlib import Path

import numpy as np
import polars as pl

from seatrial.calibration.simulate.draw import Drawn
from seatrial.calibration.simulate.machine import Machine
from seatrial.calibration.simulate.scenarios import Model
from seatrial.criteria.criteria import Criteria, Criterion, Risks
from seatrial.model.cases import Case
from seatrial.model.metrics import METRICS, flat_name
from seatrial.runs.closed_run import Run
from seatrial.runs.measurement_table import SCHEMA

RISKS = Risks(seller=0.05, buyer=0.05, discovery=0.1)
"""The declared risks."""

_BW_LIMIT, _LATENCY_LIMIT = 10_000.0, 2.0  # MB/s, us
_PAIR_SIZES = {"bw": 1 << 20, "latency": 8}
_STARTED, _JOB_S = 1_790_000_000.0, 60.0


def run_of(drawn: Drawn) -> Run:
    """Build a run of a drawn machine: a session and a job for every allocation."""
    machine = drawn.machine
    layers, places, repeats = drawn.values.shape
    cases = tuple(_case(machine, repeat) for repeat in range(1, repeats + 1))
    rows = np.repeat(np.arange(repeats), places)
    jobs = {
        name: pl.Series(
            name, [getattr(case, name) for case in cases], dtype=SCHEMA[name]
        ).gather(rows)
        for name in ("session", "repeat", "job_id", "start_time")
    }
    table = pl.concat(
        [_layer(drawn, layer).with_columns(**jobs) for layer in range(layers)]
    )
    constant = {
        "run": "simulated",
        "block": "simulated",
        "system": "simulated",
        "partition": cases[0].partition,
        "environment": cases[0].environment,
        "check": cases[0].check,
        "case": cases[0].case,
        "parameters": "{}",
        "statistic": "mean",
        "n": 1,
        "replay": False,
        "attempt": 1,
    }
    absent = ("nodes", "socket", "hca", "round")
    literals = [
        pl.lit(constant.get(name), SCHEMA[name]).alias(name)
        for name in (*constant, *absent)
    ]
    return Run(
        Path("simulated"),
        _manifest(machine),
        cases,
        table.with_columns(literals).select(SCHEMA.keys()).lazy(),
    )


def criteria_for(
    machine: Machine,
    model: Model = "any",
    *,
    risks: Risks = RISKS,
    zone: float = 0.1,
) -> Criteria:
    """Return criteria with the true limit of every metric of a machine."""
    same = machine.kind == "sameness"
    criteria = []
    for metric, size in _metrics(machine):
        limit = _LATENCY_LIMIT if metric == "latency" else _BW_LIMIT
        criteria.append(
            Criterion(
                name=f"{_check(machine)} {flat_name(metric, size)}",
                check=_check(machine),
                where={},
                metric=flat_name(metric, size),
                unit=METRICS[metric].unit,
                direction=METRICS[metric].direction,
                statistic=None,
                kind="sameness" if same else "promised",
                limit=None if same else limit,
                tolerance=machine.tolerance if same else None,
                model=model,
                zone=zone,
                risks=risks,
                cap=max(machine.repeats, 100),
                bears="buyer",
                source="simulated",
                fingerprint={},
            )
        )
    return Criteria(risks=risks, criteria=tuple(criteria), sha256="")


def _metrics(machine: Machine) -> list[tuple[str, int]]:
    if machine.kind != "pairs":
        return [("bw", 1 << power) for power in range(machine.metrics)]
    return list(_PAIR_SIZES.items())[: machine.metrics]


def _check(machine: Machine) -> str:
    return "PairSweep" if machine.kind == "pairs" else "Simulated"


def _layer(drawn: Drawn, layer: int) -> pl.DataFrame:
    """Return the numbers of a layer with their places, by allocation."""
    machine = drawn.machine
    repeats = drawn.values.shape[2]
    numbers = drawn.values[layer].T.ravel()
    metric, size = "bw", 1 << layer
    node = source = destination = pl.Series([None], dtype=pl.String)
    if machine.kind == "pairs":
        metric = ("bw", "bw", "latency")[layer]
        size = _PAIR_SIZES[metric]
        names = pl.Series(machine.names)
        back = layer == 1
        source = pl.concat([names.gather(drawn.ends[:, int(back)])] * repeats)
        destination = pl.concat([names.gather(drawn.ends[:, 1 - back])] * repeats)
    elif machine.names:
        node = pl.concat([pl.Series(machine.names)] * repeats)
    lower = METRICS[metric].direction == "lower"
    values = _LATENCY_LIMIT / numbers if lower else _BW_LIMIT * numbers
    columns = {"node": node, "source": source, "destination": destination}
    return pl.DataFrame({"value": values}).with_columns(
        *(
            pl.lit(series if len(series) > 1 else None, pl.String).alias(name)
            for name, series in columns.items()
        ),
        metric=pl.lit(metric),
        size_bytes=pl.lit(size, pl.Int64),
        unit=pl.lit(METRICS[metric].unit),
        direction=pl.lit(METRICS[metric].direction),
    )


def _case(machine: Machine, repeat: int) -> Case:
    check = _check(machine)
    return Case(
        session=f"simulated-{repeat}",
        repeat=repeat,
        check=check,
        case=check,
        partition="simulated:batch",
        environment="simulated",
        parameters={},
        result="pass",
        job_id=str(1000 + repeat),
        nodes=machine.names,
        start_time=_STARTED + _JOB_S * repeat,
        elapsed_s=_JOB_S,
    )


def _manifest(machine: Machine) -> dict[str, object]:
    names = machine.names or ("cn00001",)
    return {
        "schema": 2,
        "run": "simulated",
        "system": "simulated",
        "campaign": "simulated",
        "nodes": [
            {"name": name, "facts": {}, "state": "present", "reason": ""}
            for name in names
        ],
        "checksums": {},
    }
