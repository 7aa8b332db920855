"""Measure time and memory of a sweep over all pairs of a large machine.

The output of `pairsweep` on a model machine is written as a recording. The driver, and
ReFrame below it, replay it: parse, record, collect and close. The other commands then
read the run. Each runs as a process of its own.

    python tools/pairs_memory.py [NODES [RAILS [REPEATS]]]    # by default 1024 2 1
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.table import Table

HOME = Path(__file__).resolve().parents[1]
SYSTEM, RUN = "model", "20260101T000000Z-sweep"
TARGET_MIB = 1024
_PLANTED = 3
"""Factor by which the slow node is slow."""
_CRITERIA = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: model, clause: none}
criteria:
  - check: PairSweep
    model: lognormal
    limits: {latency_8B: 3 us, bw_1MiB: 9000 MB/s}
  - check: PairSweep
    model: every
    limits: {pairs_answered: 99 %}
"""
_STARTED = 1767225600.0


@dataclass(frozen=True)
class Machine:
    """A model machine: every node has a rank on each rail; node 7 is slow."""

    nodes: int = 1024
    rails: int = 2
    repeats: int = 1

    @property
    def names(self) -> list[str]:
        """The names of the nodes."""
        return [f"cn{number:04}" for number in range(1, self.nodes + 1)]

    @property
    def rail_names(self) -> list[str]:
        """The names of the rails."""
        return [f"mlx5_{number}" for number in range(self.rails)]

    @property
    def pairs(self) -> int:
        """The pairs of all rails."""
        return self.nodes * (self.nodes - 1) // 2 * self.rails

    def output(self, repeat: int = 1) -> Iterator[str]:
        """Yield the lines of `pairsweep`; a pair of the slow node is tested again."""
        dice = np.random.default_rng(repeat)
        yield json.dumps(self._start(started(repeat))) + "\n"
        again = ""
        for number in range(1, self.nodes):
            time_s = started(repeat) + 0.3 * number
            for rail, hca in enumerate(self.rail_names):
                lines = self._round(number, time_s + 0.1 * rail, rail, hca, dice)
                again = again or lines[0].replace('"sweep"', '"quiet"', 1)
                yield from lines
        yield again
        end: dict[str, Any] = {"type": "end", "measured": self.pairs}
        end |= {"suspects": 1, "retested": 1, "rounds_made": self.nodes - 1}
        end |= {"round_overhead_p50_us": 90.5, "elapsed_s": 300.25}
        yield json.dumps(end) + "\n"

    def _start(self, start_time: float) -> dict[str, Any]:
        return {
            **{"type": "run", "program": "pairsweep", "version": "0.1.0"},
            **{"commit": "model", "mpi": "model of MPI", "nodes": self.nodes},
            **{"np": self.nodes * self.rails, "rounds": self.nodes - 1},
            **{"rails": ",".join(self.rail_names), "rail_variable": "UCX_NET_DEVICES"},
            **{"seed": 1, "latency_bytes": 8, "bandwidth_bytes": 1 << 20},
            **{"iterations": 1000, "warmup": 20, "window": 4, "windows": 10},
            **{"time_ms": 100, "suspect_percent": 20, "pairs": self.pairs},
            **{"resumed": 0, "start_time": start_time},
        }

    def _round(
        self,
        number: int,
        time_s: float,
        rail: int,
        hca: str,
        dice: np.random.Generator,
    ) -> list[str]:
        """Return the rows of a round of the tournament (circle method) on a rail."""
        names, half = self.names, self.nodes // 2
        ring = np.roll(np.arange(1, self.nodes), number)
        seats = np.concatenate([[0], ring])
        ends = list(zip(seats[:half], seats[: half - 1 : -1], strict=True))
        noise = np.exp(dice.normal(0, 0.02, (half, 6)))
        rows = []
        for (a, b), (p50, p99, there, back, spread, low) in zip(
            ends, noise, strict=True
        ):
            slow = _PLANTED if 6 in (a, b) else 1
            latency = 1.9 * p50 * slow
            start = time_s + spread / 1e3
            rows.append(
                '{"type": "pair", "mode": "sweep", "status": "ok", '
                f'"source": "{names[a]}", "destination": "{names[b]}", '
                f'"hca": "{hca}", "rail": {rail}, "round": {number}, '
                f'"at_once": {half}, "start_time": {start:.15g}, '
                f'"start_spread_us": {3 * spread:.6g}, '
                f'"latency_min_us": {latency * min(low, 1) / 1.2:.15g}, '
                f'"latency_p50_us": {latency:.15g}, '
                f'"latency_p99_us": {latency * (1 + p99):.15g}, '
                f'"latency_max_us": {latency * (3 + p99):.15g}, '
                f'"latency_n": 1000, "bw_mb_per_s": {12000 * there / slow:.15g}, '
                f'"bw_back_mb_per_s": {12000 * back / slow:.15g}, "bw_n": 10, '
                '"validation": "pass"}\n'
            )
        return rows


def started(repeat: int) -> float:
    """Return when a repeat starts, UTC seconds: one every hour."""
    return _STARTED + 3600 * (repeat - 1)


def write_home(folder: Path, machine: Machine) -> Path:
    """Write a home with the machine as a system, and its recorded sweeps."""
    for name in ("reframe-checks/checks", "reports"):
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(HOME / name)
    nodes = [{"name": name, "facts": {"cpus": 64}} for name in machine.names]
    system = {
        **{"schema": 1, "system": SYSTEM, "description": "model machine"},
        **{"demonstration": True, "login": "head", "nodes": nodes},
        "software": {"slurm": "25.05", "stacks": [{"name": "openmpi"}]},
        "suite": {"version": "0.1.0", "git_commit": "model", "dirty": False},
    }
    partition = {
        **{"name": "batch", "scheduler": "local", "launcher": "local"},
        **{"environs": ["openmpi"], "features": ["slurm"]},
        "processor": {"num_cpus": 64, "num_cpus_per_core": 1},
        "extras": {"nodes": machine.names, "rails": machine.rail_names},
    }
    settings = {
        "systems": [{"name": SYSTEM, "hostnames": [".*"], "partitions": [partition]}],
        "environments": [
            {
                "name": "openmpi",
                "features": ["mpi", "pairsweep"],
                "extras": {"srun_mpi": "pmix", "rail_variable": "UCX_NET_DEVICES"},
            }
        ],
    }
    references = folder / "reference-data" / SYSTEM
    for file, text in {
        folder / "etc" / SYSTEM / "system.json": json.dumps(system),
        folder / "etc" / SYSTEM / "settings.yaml": json.dumps(settings),
        folder / "inventories" / SYSTEM / "hosts.yml": "{}",
        folder / "reframe-checks" / "campaigns" / "sweep.yaml": (
            "blocks: [{name: pairs, checks: [PairSweep]}]\n"
        ),
        references / "criteria.yaml": _CRITERIA,
    }.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for repeat in range(1, machine.repeats + 1):
        case = folder / "recorded" / f"pairs-{repeat}" / "PairSweep"
        _record(case, machine, repeat)
    return folder


def _record(case: Path, machine: Machine, repeat: int) -> None:
    """Write the recording of a repeat."""
    record = {
        **{"check": "PairSweep", "environment": "openmpi", "parameters": {}},
        **{"num_nodes": machine.nodes, "whole_class": True, "job_id": str(6 + repeat)},
    }
    job = [f"nodes={' '.join(machine.names)}", f"start={started(repeat)}"]
    job += [f"end={started(repeat) + 400}", "status=0", ""]
    case.mkdir(parents=True)
    for name, text in {
        "seatrial.json": json.dumps(record),
        "seatrial.job": "\n".join(job),
        "rfm_job.out": "",
        "rfm_job.err": "",
    }.items():
        (case / name).write_text(text, encoding="utf-8")
    with (case / "pairsweep.jsonl").open("w", encoding="utf-8") as stream:
        stream.writelines(machine.output(repeat))


@dataclass
class Spent:
    """Wall time of a command, its status, and the peak memory of its processes.

    `peaks_mib` has the largest process of each kind: the command, and ReFrame below it.
    """

    wall_s: float = 0.0
    status: int = 0
    peaks_mib: dict[str, float] = field(default_factory=dict)


def watched(command: Sequence[str], environment: Mapping[str, str]) -> Spent:
    """Run a command, and look at the memory of it and its children."""
    spent, started = Spent(), time.monotonic()
    process = subprocess.Popen(
        command, env=dict(environment), stdout=subprocess.DEVNULL
    )
    while process.poll() is None:
        for kind, mib in _peaks(process.pid, "command"):
            spent.peaks_mib[kind] = max(mib, spent.peaks_mib.get(kind, 0.0))
        time.sleep(0.05)
    spent.wall_s, spent.status = time.monotonic() - started, process.returncode
    return spent


def _peaks(pid: int, kind: str) -> Iterator[tuple[str, float]]:
    """Yield kind and peak memory of a process and of its descendants."""
    proc = Path("/proc", str(pid))
    try:
        peak = re.search(r"VmHWM:\s+(\d+) kB", (proc / "status").read_text())
        if b"reframe" in (proc / "cmdline").read_bytes().partition(b"-C")[0]:
            kind = "reframe"
        tasks = [task / "children" for task in (proc / "task").iterdir()]
        children = [int(child) for task in tasks for child in task.read_text().split()]
    except OSError:
        return
    if peak:
        yield kind, int(peak[1]) / 1024
    for child in children:
        yield from _peaks(child, kind if kind == "reframe" else "other")


def commands(home: Path, repeats: int = 1) -> dict[str, list[str]]:
    """Return the arguments of `seatrial`, in the order that makes each possible."""
    results, out = home / "results", home / "out"
    run = str(results / SYSTEM / RUN)
    replay = ["--replay", str(home / "recorded"), "--results", str(results)]
    replay += ["--repeats", str(repeats)]
    question = "SELECT metric, count(*), median(value) FROM measurements GROUP BY 1"
    exported = {
        form: ["export", run, "--format", form, "--output", str(home / f"out.{form}")]
        for form in ("csv", "parquet", "openmetrics")
    }
    return {
        "run": ["run", SYSTEM, "--campaign", "sweep", "--run-id", RUN, *replay],
        "verify": ["verify", run],
        "judge": ["judge", run],
        "report": ["report", run, "--out", str(out)],
        "query": ["query", run, "--replays", "--sql", question],
        **{f"export {form}": command for form, command in exported.items()},
        "pack": ["pack", run, str(home / "run.seatrial.tar.xz")],
    }


def measured(folder: Path, machine: Machine, *only: str) -> Iterator[tuple[str, Spent]]:
    """Yield what each command took on the run of a machine."""
    home = write_home(folder, machine)
    environment = {**os.environ, "SEATRIAL_HOME": str(home)}
    program = str(Path(sys.executable).with_name("seatrial"))
    for name, arguments in commands(home, machine.repeats).items():
        if not only or name in only:
            yield name, watched([program, *arguments], environment)
            for exported in home.glob("out.*"):
                exported.unlink()  # of four repeats: 6 GB


def table(machine: Machine = Machine()) -> Table:
    """Measure, and return the results as a table."""
    rows = Table("sweep over all pairs", "measured", "target")
    with TemporaryDirectory() as folder:
        for name, spent in measured(Path(folder), machine):
            peaks = spent.peaks_mib.items()
            memory = ", ".join(f"{kind} {mib:.0f} MiB" for kind, mib in peaks)
            rows.add_row(
                f"{name}, {machine.pairs:,} pairs x 5 numbers x {machine.repeats}",
                f"{spent.wall_s:.1f} s, {memory}, status {spent.status}",
                f"<= {TARGET_MIB} MiB",
            )
    return rows


if __name__ == "__main__":
    from rich.console import Console

    Console().print(table(Machine(*map(int, sys.argv[1:]))))
