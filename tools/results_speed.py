"""Measure the speed of queries and verification, and the size of runs.

Runs are made as the driver closes them: a sweep over pairs of nodes, with several
sizes, metrics and statistics, and a line of raw output for every number.
"""

import gzip
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table

from seatrial.model.cases import Case
from seatrial.runs.closed_run import closed_runs, read_manifests
from seatrial.runs.measurement_table import SCHEMA
from seatrial.runs.open_run import RunFolder
from seatrial.runs.query import database, execute, fetch
from seatrial.runs.seal import verify

RUNS, ROWS, TURNS = 100, 100_000, 3
SYSTEM = "bench"
NODES = [f"cn{number:03}" for number in range(64)]
METRICS = {"latency": ("us", "lower"), "bw": ("MB/s", "higher")}
SIZES = [1 << power for power in range(0, 23, 2)]
STATISTICS = ("p50", "p99")
QUESTION = (
    "SELECT run, count(*), median(value) FROM measurements "
    "WHERE metric = 'latency' AND size_bytes = 4096 AND statistic = 'p50' GROUP BY run"
)


def table() -> Table:
    """Measure, and return the results as a table."""
    rows = Table("runs", "measured", "target")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        numbers = measurements()
        for number in range(RUNS):
            make_run(results, number, numbers)
        what = f"of {RUNS * ROWS / 1e6:.0f} million rows in {RUNS} runs"
        whole = _best(lambda: _command(results, "query", "--sql", QUESTION))
        alone = _best(lambda: ask(results))
        rows.add_row(
            f"query of one metric {what}",
            f"{whole:.2f} s ({alone:.2f} s without the start of Python)",
            "<= 1 s",
        )
        filters = ("--metric", "latency", "--size", "4KiB", "--node", "cn007")
        some = _best(lambda: _command(results, "query", *filters, "--format", "csv"))
        rows.add_row(f"numbers of one node, filtered out {what}", f"{some:.2f} s", "")
        path = closed_runs(results)[0]
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        rows.add_row(
            f"folder of a run of {ROWS:,} numbers, with its raw output",
            f"{size / 1e6:.1f} MB",
            "<= 10 MB",
        )
        rows.add_row(
            "verify of that", f"{_best(lambda: verify(path)) * 1e3:.0f} ms", ""
        )
    return rows


def ask(results: Path) -> list[tuple[Any, ...]]:
    """Query one metric of all runs."""
    connection = database(read_manifests(closed_runs(results)))
    return fetch(execute(connection, QUESTION)[1], RUNS)


def make_run(results: Path, number: int, numbers: pl.DataFrame) -> Path:
    """Close a run of a sweep over pairs of nodes, with other values than the last."""
    started = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    run = f"{started:%Y%m%dT%H%M%SZ}-bench"
    folder = RunFolder(results, SYSTEM, run)
    folder.create()
    numbers = numbers.with_columns(
        pl.lit(run).alias("run"),
        pl.col("value").shuffle(number),
        pl.col("start_time") + started.timestamp(),
    )
    raw = folder.path / "raw" / "pairs-1" / "sweep.jsonl.gz"
    raw.parent.mkdir(parents=True)
    told = numbers.select("source", "destination", "size_bytes", "statistic", "value")
    raw.write_bytes(gzip.compress(told.write_ndjson().encode(), mtime=0))
    manifest = {
        "schema": 2,
        "run": run,
        "system": SYSTEM,
        "campaign": "bench",
        "started": started.isoformat(),
        "ended": (started + timedelta(hours=1)).isoformat(),
        "nodes": [{"name": name, "facts": {}} for name in NODES],
    }
    case = Case("pairs-1", 1, "Sweep", "Sweep", "bench:all", "openmpi", {}, "pass")
    return folder.close(manifest, [case], [numbers])


def measurements() -> pl.DataFrame:
    """Build the numbers of a sweep: of each pair, metric, size and statistic."""
    dice = random.Random(1)
    pairs = permutations(NODES, 2)
    each = islice(product(pairs, METRICS, SIZES, STATISTICS), ROWS)
    same = {
        **{"session": "pairs-1", "block": "pairs", "repeat": 1, "system": SYSTEM},
        **{"partition": "bench:all", "environment": "openmpi", "check": "Sweep"},
        **{"case": "Sweep", "parameters": "{}", "job_id": "4711", "hca": "mlx5_0"},
        **{"nodes": " ".join(NODES), "n": 1000, "replay": False, "attempt": 1},
    }
    rows = [
        {
            **same,
            **{"source": source, "destination": destination, "round": row // 3000},
            **{"metric": metric, "unit": METRICS[metric][0], "size_bytes": size},
            **{"direction": METRICS[metric][1], "statistic": statistic},
            **{"value": dice.lognormvariate(2, 0.3), "start_time": row / 30},
        }
        for row, ((source, destination), metric, size, statistic) in enumerate(each)
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _command(results: Path, *arguments: str) -> None:
    program = Path(sys.executable).parent / "seatrial"
    subprocess.run(
        [program, *arguments],
        env={"SEATRIAL_RESULTS": str(results), "PATH": ""},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def _best(action: Callable[[], object]) -> float:
    """Return the wall time in seconds of the fastest of some turns."""
    taken = []
    for _ in range(TURNS):
        started = time.monotonic()
        action()
        taken.append(time.monotonic() - started)
    return min(taken)
