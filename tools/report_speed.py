"""Measure the speed and the size of the report of a large machine.

Each run is made, judged and reported in a process of its own; its memory is measured.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.table import Table

from seatrial.calibration.simulate.draw import draw
from seatrial.calibration.simulate.machine import Machine
from seatrial.calibration.simulate.runs import criteria_for, run_of
from seatrial.judge.judge import judge
from seatrial.report import write_report

HOME = Path(__file__).resolve().parents[1]
_SOUND = Machine(nodes=10_000, metrics=20, repeats=5, slow_nodes=3, slow_level=0.7)
_TARGET = "<= 10 s, <= 5 MB"
MACHINES = {
    "10,000 nodes x 20 metrics x 5 repeats": (_SOUND, _TARGET),
    "the same of 1 repeat, all undecided": (replace(_SOUND, repeats=1), ""),
    "1,000 nodes x 20 metrics x 5 repeats": (replace(_SOUND, nodes=1000), ""),
    "1,000 nodes, 499,500 pairs x 1 repeat": (
        Machine(kind="pairs", nodes=1000, metrics=2, repeats=1, slow_nodes=1),
        "",
    ),
}


def table() -> Table:
    """Measure, and return the results as a table."""
    rows = Table("report", "measured", "target")
    for size, (_, target) in MACHINES.items():
        command = [sys.executable, str(Path(__file__)), size]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        answer = json.loads(done.stdout)
        sizes = ", ".join(f"{name} {mb:.1f}" for name, mb in answer["files"].items())
        rows.add_row(
            f"{size}, {answer['findings']} findings",
            f"{answer['report_s']:.1f} s, {sum(answer['files'].values()):.1f} MB "
            f"({sizes}), {answer['memory_mib']:.0f} MiB at most "
            f"({answer['judged_mib']:.0f} before)",
            target,
        )
    return rows


def measure(size: str) -> None:
    """Build, judge and report a run; print time and memory as JSON."""
    machine, _ = MACHINES[size]
    run = run_of(draw(machine, np.random.default_rng(1)))
    judgement = judge(run, criteria_for(machine, "lognormal"))
    before = _peak_mib()
    with TemporaryDirectory() as folder:
        started = time.monotonic()
        write_report(run, judgement, Path(folder), HOME)
        spent = time.monotonic() - started
        files = dict(_sizes(Path(folder)))
    answer = {
        "findings": len(judgement.findings),
        "report_s": spent,
        "files": files,
        "memory_mib": _peak_mib(),
        "judged_mib": before,
    }
    print(json.dumps(answer))


def _sizes(folder: Path) -> Iterator[tuple[str, float]]:
    """Return the size of each file of a report in MB."""
    for file in sorted(folder.iterdir()):
        yield file.name, file.stat().st_size / 1e6


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    measure(sys.argv[1])
