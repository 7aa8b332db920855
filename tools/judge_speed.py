"""Measure the speed of the judge on a large machine, and its errors on known ones.

Each run is made and judged in a process of its own; its memory is measured.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rich.table import Table

from seatrial.calibration.simulate.arithmetic import facts
from seatrial.calibration.simulate.draw import draw
from seatrial.calibration.simulate.machine import Machine
from seatrial.calibration.simulate.runs import criteria_for, run_of
from seatrial.calibration.simulate.scenarios import SCENARIOS
from seatrial.calibration.simulate.study import OURS, study
from seatrial.judge.judge import judge

MACHINES = {
    "10,000 nodes x 20 metrics x 5 repeats": (
        Machine(nodes=10_000, metrics=20, repeats=5, slow_nodes=3, slow_level=0.7),
        "<= 5 s, <= 1024 MiB",
    ),
    "1,000 nodes, 499,500 pairs x 1 repeat": (
        Machine(kind="pairs", nodes=1000, metrics=2, repeats=1, slow_nodes=1),
        "<= 10 s",
    ),
    "1,000 nodes, 499,500 pairs x 4 repeats": (
        Machine(kind="pairs", nodes=1000, metrics=2, repeats=4, slow_nodes=1),
        "<= 10 s",
    ),
}
TOLD = ("healthy", "borderline", "slow-node", "slow-link", "slow-node-link")
RUNS = 40


def table() -> Table:
    """Measure, and return the results as a table."""
    rows = Table("judge", "measured", "target")
    for size, (_, target) in MACHINES.items():
        command = [sys.executable, str(Path(__file__)), size]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        answer = json.loads(done.stdout)
        rows.add_row(
            f"{size}, {answer['rows'] / 1e6:.1f} million rows",
            f"{answer['judge_s']:.1f} s, {answer['memory_mib']:.0f} MiB at most "
            f"({answer['run_mib']:.0f} before), {answer['verdict']}",
            target,
        )
    results = study(Machine(), [SCENARIOS[name] for name in TOLD], runs=RUNS)
    for result in results:
        ours, fixed = result.tallies[OURS], result.tallies["5 %"]
        shares = [
            f"{name.replace('_', ' ')} {100 * rate.hits / rate.trials:.0f} %"
            for name in (
                "false_fail",
                "false_pass",
                "undecided",
                "found",
                "blamed_wrong",
            )
            if (rate := ours[name]).trials
        ]
        fails = fixed["fail"]
        rows.add_row(
            f"simulated {result.scenario.name}, {result.machine.shape}, n = {RUNS}",
            f"{', '.join(shares)}; a 5 % tolerance fails "
            f"{100 * fails.hits / fails.trials:.0f} %",
            "false fail, false pass <= 5 %",
        )
    for fact in facts():
        rows.add_row(
            fact.statement, f"{fact.measured:.0f}", f"{fact.expected:.0f} derived"
        )
    return rows


def measure(size: str) -> None:
    """Build and judge a run; print time and memory as JSON."""
    machine, _ = MACHINES[size]
    run = run_of(draw(machine, np.random.default_rng(1)))
    criteria = criteria_for(machine, "lognormal")
    before = _peak_mib()
    started = time.monotonic()
    judgement = judge(run, criteria)
    spent = time.monotonic() - started
    answer = {
        "rows": run.count,
        "judge_s": spent,
        "memory_mib": _peak_mib(),
        "run_mib": before,
        "verdict": judgement.verdict,
    }
    print(json.dumps(answer))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    measure(sys.argv[1])
