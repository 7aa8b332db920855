"""affinity as a program: what it sees of bindings that tests make."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from benchmark_builds import ROOT, Build, Completed, run

from seatrial.checks.placed_threads import Shape, violations
from seatrial.parsers.affinity import Affinity, parse_affinity, parse_ready

CPUS = sorted(os.sched_getaffinity(0))
BOUND = {"OMP_PLACES": "cores", "OMP_PROC_BIND": "close"}
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="it takes two CPUs")


def ranks(build: Build, *programs: str, **variables: str) -> Affinity:
    """Start one rank for each prefix of a command, as one program."""
    words: list[str] = []
    for prefix in programs:
        words += [":"] if words else []
        words += ["-n", "1", *prefix.split()]
        words += [str(build.bin / "affinity"), "--json", "--time=100"]
    free = ["--bind-to", "none"]
    environment = {"LD_PRELOAD": str(build.bin / "libmpich_yield.so")}
    if build.mpi == "openmpi":
        environment = {}
    done = run(f"mpiexec.{build.mpi}", *free, *words, **environment, **variables)
    assert done.returncode == 0, done.stderr
    return parse_affinity(done.stdout)


def faults(seen: Affinity, ranks: int, threads: int) -> list[str]:
    return [str(found) for found in violations(seen, Shape(ranks, threads, True))]


@two_cpus
def test_bound_ranks_and_threads_are_in_place(build: Build) -> None:
    first, second, *_ = CPUS
    pinned = [f"taskset -c {cpu}" for cpu in (first, second)]
    seen = ranks(build, *pinned, OMP_NUM_THREADS="1", **BOUND)
    assert [row.seen for row in seen.threads] == [str(first), str(second)]
    assert faults(seen, 2, 1) == []
    both = ranks(build, f"taskset -c {first},{second}", OMP_NUM_THREADS="2", **BOUND)
    assert {row.allowed for row in both.threads} == {str(first), str(second)}
    assert faults(both, 1, 2) == []


@two_cpus
def test_two_ranks_on_one_core_are_found(build: Build) -> None:
    first = CPUS[0]
    seen = ranks(build, *2 * [f"taskset -c {first}"], OMP_NUM_THREADS="1", **BOUND)
    (fault,) = faults(seen, 2, 1)
    assert re.fullmatch(
        rf"\S+: rank 1: expected no core of rank 0 \(it has that of CPU {first}\), "
        rf"seen CPUs {first}",
        fault,
    )


@two_cpus
def test_threads_without_places_are_found(build: Build) -> None:
    first, second, *_ = CPUS
    seen = ranks(build, f"taskset -c {first},{second}", OMP_NUM_THREADS="2")
    found = faults(seen, 1, 2)
    assert len(found) == 2
    assert re.match(r"\S+: rank 0 thread 0: expected one core of CPUs ", found[0])


@two_cpus
def test_rank_with_too_few_cores_is_found(build: Build) -> None:
    seen = ranks(build, f"taskset -c {CPUS[0]}", OMP_NUM_THREADS="2", **BOUND)
    assert any(
        "rank 0: expected 2 cores, seen CPUs" in text for text in faults(seen, 1, 2)
    )


def test_ready_is_between_start_and_end(build: Build) -> None:
    begin = time.time()
    done = build.run("affinity", 3, "--ready", "--json")
    assert begin < parse_ready(done.stdout, 3).ready_s < time.time()


def test_table_has_one_header(build: Build) -> None:
    done = build.run("affinity", 2, "--time=10", OMP_NUM_THREADS="1")
    heads = [line for line in done.stdout.splitlines() if line.startswith("# Node")]
    assert (done.returncode, len(heads)) == (0, 1)


@pytest.mark.any_mpi
def test_help_version_and_bad_options(build: Build) -> None:
    def start(np: int, *options: str) -> Completed:
        return build.run("affinity", np, *options)

    assert start(2, "--help").stdout.count("Usage: affinity [options]") == 1
    assert re.fullmatch(r"affinity \d\.\d\.\d \(.*\)\n", start(2, "--version").stdout)
    done = start(2, "--time=0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "affinity: rank 0 on " in done.stderr
    assert "--time: '0' is not an integer from 1 to 600000 (see --help)" in done.stderr
    with Path("/dev/full").open("w") as full:
        command = [str(build.bin / "affinity"), "--time=1"]
        assert subprocess.run(command, stdout=full, cwd=ROOT).returncode == 1
