"""osnoise on this machine: what it measures, and what it refuses."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

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
    # Or a part of it, or what it has in common with the kernel's tick of 4 ms: 20 ms.
    periods = [10_000 * factor for factor in (1, 1 / 5, 1 / 4, 1 / 3, 1 / 2, 2)]
    assert any(row["period_us"] == pytest.approx(p, rel=0.01) for p in periods)
    assert row["period_lost_percent"] == pytest.approx(10, abs=4)
    assert row["lost_percent"] >= row["period_lost_percent"]


def test_table_is_for_people(build: Build) -> None:
    done = build.run("osnoise", 1, "--time", "50", "--cpus", "0")
    lines = done.stdout.splitlines()
    assert re.match(r"# Seatrial osnoise \d+\.\d+\.\d+ \(", lines[0])
    assert lines[2].split()[:3] == ["#", "CPU", "Base(us)"]
    assert len(lines) == 4


def test_wrong_result_is_found(build: Build) -> None:
    done = build.run("osnoise_corrupt", 1, *QUICK, "--node", "--cpus", "0")
    assert done.returncode == 1
    assert re.fullmatch(
        r"osnoise: \S+: validation failed: 1 of \d+ quanta on CPU 0 computed another "
        r"result\n",
        done.stderr,
    )
    assert '"validation": "fail"' in done.stdout


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--bogus", r"unknown argument '--bogus' \(see --help\)"),
        ("--cpus 0,x", "--cpus: '0,x' is not a list of CPUs such as 0,2,8-15"),
        ("--cpus 4095", "CPU 4095: pthread_setaffinity_np: Invalid argument"),
        ("--quantum 1", "--quantum: '1' is not an integer from 60 to 10000"),
        ("--odds 1", "--odds: '1' is not an integer from 10 to"),
        ("--time 0", "--time: '0' is not an integer from"),
    ],
)
def test_refusals(build: Build, options: str, error: str) -> None:
    done = build.run("osnoise", 1, *options.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(rf"osnoise: \S+: {error}", done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help(build: Build) -> None:
    text = build.run("osnoise", 1, "--help").stdout
    assert text.startswith("Usage: osnoise [options]\n\n")
    assert "(default 1000000)" in text


def test_full_disk_is_an_error(build: Build) -> None:
    with Path("/dev/full").open("w") as full:
        command = [str(build.bin / "osnoise"), "--time", "10"]
        assert subprocess.run(command, stdout=full).returncode == 1
