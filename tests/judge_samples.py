"""Constructed runs for tests of the judge: one check, four nodes."""

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from criteria_samples import criteria, criterion

from seatrial.criteria.criteria import Criterion
from seatrial.judge.judge import Finding, Judgement, judge
from seatrial.model.cases import Case
from seatrial.model.metrics import METRICS, flat_name
from seatrial.model.records import Measurement, as_dict
from seatrial.runs.closed_run import KEPT_CRITERIA, Run
from seatrial.runs.measurement_table import SCHEMA

LIMIT = criterion()
LATENCY = criterion("latency_8B", 100.0)
NODES = ("cn01", "cn02", "cn03", "cn04")
CASE = Case(
    session="pairs-1",
    repeat=1,
    check="ImbRing",
    case="ImbRing",
    partition="lab:batch",
    environment="intelmpi",
    parameters={},
    result="pass",
    nodes=NODES,
    declared=("bw_4MiB",),
)


def sample(
    case: Case,
    value: float,
    *,
    metric: str = "bw",
    size: int | None = 4 << 20,
    pair: str = "",
    node: str | None = None,
    socket: int | None = None,
    statistic: str = "mean",
) -> Measurement:
    source, _, destination = pair.partition(" ")
    return Measurement(
        run="r",
        session=case.session,
        block=case.session.rpartition("-")[0],
        repeat=case.repeat,
        system="lab",
        partition=case.partition,
        environment=case.environment,
        check=case.check,
        case=case.case,
        parameters=json.dumps(case.parameters),
        job_id=f"{case.session}-{case.attempt}",
        nodes=" ".join(case.nodes),
        node=node,
        socket=socket,
        source=source or None,
        destination=destination or None,
        hca=None,
        round=None,
        metric=metric,
        size_bytes=size,
        statistic=statistic,
        n=1,
        value=value,
        unit=METRICS[metric].unit,
        direction=METRICS[metric].direction,
        start_time=0.0,
        attempt=case.attempt,
    )


def make_run(
    cases: Sequence[Case],
    rows: Sequence[Measurement],
    absent: str = "",
    nodes: Sequence[str] = NODES,
) -> Run:
    manifest = {
        "run": "r",
        "system": "lab",
        "campaign": "smoke",
        "nodes": [
            {
                "name": name,
                "facts": {},
                "state": "absent" if name == absent else "present",
                "reason": "down" if name == absent else "",
            }
            for name in nodes
        ],
    }
    cases = [
        replace(case, nodes=tuple(name for name in nodes if name != absent))
        for case in cases
    ]
    frame = pl.DataFrame([as_dict(row) for row in rows], schema=SCHEMA)
    return Run(Path("r"), manifest, tuple(cases), frame.lazy())


def frozen(run: Run, *optional: Criterion) -> Run:
    """Return a run that kept these criteria as optional."""
    entries = [
        {
            "check": rule.check,
            "name": rule.name,
            "limits": {rule.metric: f"{rule.limit} {rule.unit}"},
            "optional": True,
        }
        for rule in optional
    ]
    content = {
        "schema": 1,
        "risks": {"seller": 0.05, "buyer": 0.05},
        "defaults": {"kind": "promised", "document": "contract", "clause": "3.1"},
        "criteria": entries,
    }
    kept = {**run.kept, KEPT_CRITERIA: json.dumps(content).encode()}
    return replace(run, kept=kept)


def judged(run: Run, *limits: Criterion) -> Judgement:
    return judge(run, criteria(*limits))


def repeats(count: int) -> list[Case]:
    return [replace(CASE, session=f"pairs-{i}", repeat=i) for i in range(1, count + 1)]


def found(judgement: Judgement, kind: str) -> list[Finding]:
    return [finding for finding in judgement.findings if finding.kind == kind]


def values_run(
    *values: float, metric: str = "bw", size: int | None = 4 << 20, **more: Any
) -> Run:
    """Build a run that took these values, one in each repeat, all of one place."""
    cases = repeats(len(values))
    flat = flat_name(metric, size)
    cases = [replace(case, declared=(flat,)) for case in cases]
    rows = [
        sample(case, value, metric=metric, size=size, **more)
        for case, value in zip(cases, values, strict=True)
    ]
    return make_run(cases, rows)


def places_run(levels: dict[str, float], scatter: Sequence[float], **more: Any) -> Run:
    """Build a run in which each place ('cn01', 'cn01 cn02') scatters about a level.

    `scatter` is what each allocation does to all; a place adds 0.2 % of its own.
    """
    noise = random.Random(1)
    cases = repeats(len(scatter))
    rows = [
        sample(
            case,
            level * factor * math.exp(noise.gauss(0.0, 0.002)),
            pair=place if " " in place else "",
            node=None if " " in place else place,
        )
        for case, factor in zip(cases, scatter, strict=True)
        for place, level in levels.items()
    ]
    return make_run(cases, rows, **more)


def with_statements(run: Run, folder: Path, **checks: dict[str, Any]) -> Run:
    """Write a report of ReFrame in which checks state facts of themselves."""
    report = folder / "raw" / "nodes-1" / "report.json"
    report.parent.mkdir(parents=True)
    cases = [{"display_name": f"{name} %k=1", **own} for name, own in checks.items()]
    report.write_text(json.dumps({"runs": [{"testcases": cases}]}))
    return replace(run, path=folder)
