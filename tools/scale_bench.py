"""Measure a campaign on the scale lab: the driver, Slurm's controller, run and report.

Slurm is real; the programs are those of a model machine with known faults, so that the
verdict is known, too. Alone: `python tools/scale_bench.py NODES [CAMPAIGN]`.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import overhead_speed

from seatrial import paths
from seatrial.model.manifest import read_manifest
from seatrial.runs.closed_run import read_cases
from seatrial.system.lab import cluster
from seatrial.system.playbooks import playbook

LAB_HOME = Path("/var/lib/seatrial-lab")
SYSTEM, HEAD, USER = "scale-lab", "mhead", "seatrial"
REQUESTS_A_SECOND = 5
"""Declared limit of the mean rate of requests to slurmctld: docs/campaigns.md."""
_REQUESTS = re.compile(rf"^\s+{USER}\s+\(.*count:(\d+)", re.MULTILINE)
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True)
class ScaleLab:
    """The lab with some number of nodes; nodes of a third and of the end are slow."""

    nodes: int
    campaign: str = "smoke"

    @property
    def slow(self) -> list[str]:
        """The slow nodes."""
        return [f"n{self.nodes // 3:04}", f"n{self.nodes:04}"]

    def up(self) -> None:
        """Start and provision it."""
        os.environ["LAB_SCALE"] = str(self.nodes)
        cluster.down(LAB_HOME)
        slow = [{"node": n, "factor": 1.25, "area": "network"} for n in self.slow]
        truth = {"seed": 1, "nodes": f"n[0001-{self.nodes:04}]"}
        truth |= {"faults": {"slow_nodes": slow}}
        log = paths.home() / "build" / "log" / "bench-scale.log"
        for name in ("lab", "cluster"):
            playbook(paths.home(), SYSTEM, name, log)
        options = json.dumps({"standins_truth": truth})
        playbook(paths.home(), SYSTEM, "site", log, "-e", options)

    def ssh(self, command: str) -> str:
        """Return what a command prints on the head."""
        config = cluster.ssh_config(LAB_HOME)
        done = subprocess.run(
            ["ssh", "-F", config, HEAD, command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def requests(self) -> int:
        """Return the requests of the suite's user to slurmctld since its start."""
        found = _REQUESTS.search(self.ssh("sdiag"))
        return int(found[1]) if found else 0

    def driver_mib(self, run_id: str) -> float:
        """Return the peak memory of the driver of an open run; 0 without one."""
        lock = f"seatrial/results/{SYSTEM}/{run_id}.open/driver.lock"
        script = f"import json; print(json.load(open({lock!r}))['pid'])"
        pid = f"$(python3 -c {shlex.quote(script)})"
        found = _PEAK.search(self.ssh(f"cat /proc/{pid}/status"))
        return int(found[1]) / 1024 if found else 0.0


def rows(lab: ScaleLab) -> Iterator[tuple[str, str, str]]:
    """Run the campaign and its report; yield rows: what, measured, target."""
    what = f"{lab.campaign} on {lab.nodes:,} model nodes"
    started = time.monotonic()
    lab.up()
    yield f"lab of {lab.nodes:,} nodes", _seconds(started), ""
    with tempfile.TemporaryDirectory() as folder:
        before, started, peak = lab.requests(), time.monotonic(), 0.0
        command = ["run", SYSTEM, "--campaign", lab.campaign, "--run-id", "bench"]
        process = _start(folder, *command, "--no-judge", output=subprocess.DEVNULL)
        while process.poll() is None:
            peak = max(peak, lab.driver_mib("bench"))
            time.sleep(5)
        wall = time.monotonic() - started
        yield what, f"{wall:.0f} s, status {process.returncode}", ""
        yield "its driver", f"{peak:.0f} MiB", "<= 1024 MiB"
        requests = lab.requests() - before
        yield (
            "its requests to slurmctld (sdiag, by user)",
            f"{requests:,}, {requests / wall:.1f} a second",
            f"<= {REQUESTS_A_SECOND} a second",
        )
        yield from _overhead(Path(folder, SYSTEM, "bench"), wall)
        yield from _results(folder, lab)
    cluster.down(LAB_HOME)


def _overhead(run: Path, wall: float) -> Iterator[tuple[str, str, str]]:
    """Compare the time without a program with real durations, scaled to the nodes."""
    cases = read_cases(run)
    idle = wall - overhead_speed.measuring_s(cases)
    campaign = str(read_manifest(run)["campaign"])
    with tempfile.TemporaryDirectory() as empty:
        command = ["plan", SYSTEM, "--campaign", campaign, "--format", "json"]
        planned = json.loads(_said(empty, *command))["cost"]["checks"]
    ran = {case.check for case in cases if case.result != "skip"}
    real = sum(c["jobs"] * c["seconds"] for c in planned if c["check"] in ran)
    yield (
        "overhead over typical durations of real programs",
        f"{idle:.0f} s of {real:.0f} s: {100 * idle / real:.0f} %",
        "<= 10 %",
    )
    yield "overhead, for each case", f"{idle / len(cases):.1f} s", ""


def _results(folder: str, lab: ScaleLab) -> Iterator[tuple[str, str, str]]:
    """Judge and report the run: sizes, and the faults that are found."""
    run, out = f"{SYSTEM}/bench", Path(folder, "report")
    started = time.monotonic()
    judged: dict[str, Any] = json.loads(_said(folder, "judge", run, "--format", "json"))
    yield "its judgement", _seconds(started), ""
    started = time.monotonic()
    _said(folder, "report", run, "--out", str(out))
    size = _mib(out)
    yield "its report", f"{_seconds(started)}, {size:.1f} MiB", ""
    yield "its run folder", f"{_mib(Path(folder, SYSTEM, 'bench')):.1f} MiB", ""
    found, planted = {*judged["convicted"]}, {*lab.slow}
    answer = f"found {len(found & planted)}, missed {len(planted - found)}"
    answer += f", wrongly convicted {len(found - planted)}"
    yield f"slow nodes {', '.join(lab.slow)}", answer, f"found {len(planted)}"


def _start(
    results: str, *arguments: str, output: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["seatrial", *arguments],
        env=os.environ | {"SEATRIAL_RESULTS": results},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _said(results: str, *arguments: str) -> str:
    return _start(results, *arguments).communicate()[0]


def _seconds(started: float) -> str:
    return f"{time.monotonic() - started:.0f} s"


def _mib(folder: Path) -> float:
    files = (file for file in folder.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files) / (1 << 20)


if __name__ == "__main__":
    for row in rows(ScaleLab(int(sys.argv[1]), *sys.argv[2:3])):
        print(*row, sep=" | ", flush=True)
