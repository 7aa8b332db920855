"""Measure the speed of a decision about a year of nights of a large machine.

In a process of its own; its memory is measured.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rich.table import Table

from seatrial.calibration.simulate.nights import NightMachine, Nights
from seatrial.history.decide import decide
from seatrial.history.records import Metric, Visits
from seatrial.history.rules import Rules

NIGHTS = 365
UPDATED = 200
"""The night of an update of all nodes, which costs nothing."""

TARGET = "<= 10 s, <= 1024 MiB"


def table() -> Table:
    """Measure, and return the results as a table."""
    rows = Table("nights", "measured", "target")
    machine = NightMachine("ar1")
    command = [sys.executable, str(Path(__file__))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    rows.add_row(
        f"{NIGHTS} nights, {machine.nodes:,} nodes x {machine.metrics} metrics, "
        f"each node every {machine.every} nights",
        f"{answer['decide_s']:.1f} s, {answer['memory_mib']:.0f} MiB at most "
        f"({answer['visits_mib']:.0f} before), {answer['alarms']} alarms",
        TARGET,
    )
    return rows


def visits_of(machine: NightMachine, seed: int) -> Visits:
    """Return the nights of a simulated machine."""
    nights = Nights(machine, np.random.default_rng(seed))
    size = (NIGHTS, machine.nodes)
    values = np.full((*size, machine.metrics), np.nan)
    configurations = np.full(size, -1)
    for night in range(NIGHTS):
        nodes = nights.chosen(np.zeros(0, dtype=np.int64))
        values[night, nodes] = nights.measured(night, nodes)
        configurations[night, nodes] = int(night >= UPDATED)
    return Visits(
        nights=np.datetime64("2026-01-01") + np.arange(NIGHTS),
        runs=tuple(f"run{night}" for night in range(NIGHTS)),
        nodes=tuple(f"cn{node:04}" for node in range(machine.nodes)),
        classes=("cpu",) * machine.nodes,
        metrics=tuple(
            Metric("Check", f"case{i}", "gnu", "cpu", "bw", "median", "GB/s", True)
            for i in range(machine.metrics)
        ),
        values=values,
        configurations=configurations,
        configured=({"firmware": "1"}, {"firmware": "2"}),
        repaired=np.zeros(size, dtype=bool),
    )


def measure() -> None:
    """Draw the nights and decide; print time and memory as JSON."""
    visits = visits_of(NightMachine("ar1"), 1)
    before = _peak_mib()
    started = time.monotonic()
    decision = decide(visits, Rules())
    answer = {
        "decide_s": time.monotonic() - started,
        "memory_mib": _peak_mib(),
        "visits_mib": before,
        "alarms": len(decision.alarms),
    }
    print(json.dumps(answer))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    measure()
