"""osnoise on this machine: what it measures, and what it refuses."""

import json
import os
import subprocess
import sys

import pytest
from benchmark_builds import Build, run

from seatrial.parsers.osnoise import parse_osnoise

pytestmark = pytest.mark.any_mpi

QUICK = ("--time", "200", "--validate", "--json")
REAL_TIME = ("chrt", "--fifo")

_BURN = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
period_s, burn_s, end = *map(float, sys.argv[2:4]), time.monotonic() + 60
print("ready", flush=True)
at = time.monotonic()
while at < end and os.getppid() != 1:
    at += period_s
    time.sleep(max(0.0, at - time.monotonic()))
    until = time.monotonic() + burn_s
    while time.monotonic() < until:
        pass
"""
"""Burns CPU time on CPU argv[1], every argv[2] seconds for argv[3] seconds."""


def test_a_row_for_each_core(build: Build) -> None:
    done = build.run("osnoise", 1, *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    cpus = [row["cpu"] for row in rows]
    assert {*cpus} <= os.sched_getaffinity(0)
    assert cpus == sorted({*cpus})
    for row in rows:
        assert 0 <= row["lost_percent"] < 100
        assert 0 <= row["p50_us"] <= row["p99_9_us"] <= row["max_us"]
        assert row["detours"] <= row["n"]
        assert 20 < row["base_us"] < 500
        assert row["seconds"] >= 0.2
        assert row["validation"] == "pass"


def test_a_row_for_the_node_names_it_as_slurm_does(build: Build) -> None:
    options = (*QUICK, "--node", "--cpus", "0")
    done = build.run("osnoise", 1, *options, SLURMD_NODENAME="cn07")
    (row,) = parse_osnoise(done.stdout, ["cn07"])
    assert (row.cores, row.worst_cpu, row.p99_9_cpu, row.max_cpu) == (1, 0, 0, 0)
    assert row.lost_percent == row.worst_lost_percent


def test_only_allowed_cpus_are_measured(build: Build) -> None:
    program = str(build.bin / "osnoise")
    done = run("taskset", "-c", "0", program, *QUICK)
    assert [json.loads(line)["cpu"] for line in done.stdout.splitlines()] == [0]


def _chosen_cpu() -> int:
    return max(os.sched_getaffinity(0))


def test_planted_period_is_found(build: Build) -> None:
    """A process burns 1 ms every 10 ms on the core that is measured.

    Both run before all others, so that no other work on this machine counts.
    """
    cpu = _chosen_cpu()
    if run(*REAL_TIME, "1", "true").returncode:
        pytest.skip("no right to real-time priority")
    script = (sys.executable, "-c", _BURN, str(cpu), "0.01", "0.001")
    burner = subprocess.Popen(
        [*REAL_TIME, "2", *script], stdout=subprocess.PIPE, text=True
    )
    try:
        assert burner.stdout is not None
        assert burner.stdout.readline() == "ready\n"
        program = str(build.bin / "osnoise")
        options = ("--cpus", str(cpu), "--time", "900", "--json")
        done = run(*REAL_TIME, "1", program, *options)
    finally:
        burner.kill()
        burner.wait()
    (row,) = map(json.loads, done.stdout.splitlines())
    assert row["period_us"] == pytest.approx(10_000, rel=0.01)
    assert 6 < row["period_lost_percent"] <= row["lost_percent"]
