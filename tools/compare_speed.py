"""Measure the speed of a comparison of two runs of 100,000 measurements, from files."""

import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from rich.table import Table

from seatrial.model.cases import Case
from seatrial.model.records import as_dict
from seatrial.runs.measurement_table import SCHEMA

REPEATS, CASES, SIZES = 5, 500, 20
MEASUREMENTS = 2 * REPEATS * CASES * SIZES
TARGET = "<= 5 s"

_WEIGHTS = """\
schema: 1
margin: 0.02
groups:
  - {name: small, weight: 1, numbers: [{check: ImbSendrecv, where: {ppn: 0}}]}
  - {name: rest, weight: 2, numbers: [{check: ImbCollective}]}
"""


def table() -> Table:
    """Measure, and return the results as a table."""
    rows = Table("compare", "measured", "target")
    with tempfile.TemporaryDirectory() as folder:
        runs = [make_run(Path(folder), seed) for seed in (1, 2)]
        weights = Path(folder) / "bakeoff.yaml"
        weights.write_text(_WEIGHTS)
        command = [sys.executable, "-c", "from seatrial.cli import main; main()"]
        command += ["compare", *map(str, runs), "--weights", str(weights)]
        started = time.monotonic()
        done = subprocess.run(
            [*command, "--format", "json"], check=True, capture_output=True, text=True
        )
        spent = time.monotonic() - started
    numbers = len(json.loads(done.stdout)["numbers"])
    rows.add_row(
        f"2 runs, {MEASUREMENTS:,} measurements, {numbers:,} paired numbers, "
        "whole command",
        f"{spent:.1f} s",
        TARGET,
    )
    return rows


def make_run(folder: Path, seed: int) -> Path:
    """Close a run of two checks in many cases, all sizes, several repeats."""
    run, system = "20260101T000000Z-bakeoff", f"vendor{seed}"
    path = folder / system / run
    path.mkdir(parents=True)
    cases = [
        _case(repeat, number, system)
        for repeat in range(1, REPEATS + 1)
        for number in range(CASES)
    ]
    _numbers(cases, run, system, seed).write_parquet(path / "measurements.parquet")
    rows = [as_dict(case) for case in cases]
    (path / "cases.json").write_text(json.dumps(rows), encoding="utf-8")
    manifest = {
        "schema": 2,
        "run": run,
        "system": system,
        "campaign": "bakeoff",
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T01:00:00+00:00",
        "nodes": [{"name": "cn01", "facts": {}, "state": "present", "reason": ""}],
        "checksums": {
            name: hashlib.sha256((path / name).read_bytes()).hexdigest()
            for name in ("measurements.parquet", "cases.json")
        },
    }
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return path


def _numbers(cases: list[Case], run: str, system: str, seed: int) -> pl.DataFrame:
    """Draw a number of every size for each case."""
    generator = np.random.default_rng(seed)
    case_of = np.repeat(np.arange(len(cases)), SIZES)
    sizes = np.tile(1 << np.arange(SIZES), len(cases))
    noise = np.exp(0.02 * generator.standard_normal(sizes.size))
    columns: dict[str, list[str | None] | list[str] | list[int]] = {
        "session": [case.session for case in cases],
        "check": [case.check for case in cases],
        "case": [case.case for case in cases],
        "parameters": [json.dumps(case.parameters) for case in cases],
        "job_id": [case.job_id for case in cases],
        "repeat": [case.repeat for case in cases],
    }
    constants = {
        "run": run,
        "block": "all",
        "system": system,
        "partition": f"{system}:batch",
        "environment": "openmpi",
        "nodes": "cn01 cn02",
        "metric": "latency",
        "statistic": "mean",
        "n": 1000,
        "unit": "us",
        "direction": "lower",
        "replay": False,
        "attempt": 1,
        "start_time": 0.0,
    }
    frame = pl.DataFrame(
        {name: pl.Series(values).gather(case_of) for name, values in columns.items()}
    ).with_columns(size_bytes=pl.Series(sizes), value=pl.Series(noise * sizes))
    missing = dict.fromkeys(name for name in SCHEMA if name not in frame.columns)
    return frame.with_columns(
        pl.lit(value).alias(name) for name, value in (missing | constants).items()
    ).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def _case(repeat: int, number: int, system: str) -> Case:
    check = "ImbSendrecv" if number % 2 else "ImbCollective"
    return Case(
        session=f"all-{repeat}",
        repeat=repeat,
        check=check,
        case=f"{check} %ppn={number // 2}",
        partition=f"{system}:batch",
        environment="openmpi",
        parameters={"ppn": number // 2},
        result="pass",
        job_id=f"{repeat}-{number}",
        nodes=("cn01", "cn02"),
    )


if __name__ == "__main__":
    from rich.console import Console

    Console().print(table())
