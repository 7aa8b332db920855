"""fixedwork on this machine: what it measures, and what it refuses."""

import pytest
from benchmark_builds import Build, run

from seatrial.parsers.fixedwork import parse_fixedwork

pytestmark = pytest.mark.any_mpi

QUICK = ("--time", "200", "--validate", "--json")


def test_needs_no_mpi(build: Build) -> None:
    assert "libmpi" not in run("ldd", build.bin / "fixedwork").stdout


def test_a_thread_is_bound_to_each_cpu(build: Build) -> None:
    done = build.run("fixedwork", 1, *QUICK, "--cpus", "1,0")
    if done.returncode and "pthread_setaffinity_np" in done.stderr:
        pytest.skip("no CPU 1")
    assert (done.returncode, done.stderr) == (0, "")
    rows = parse_fixedwork(done.stdout)
    assert [(row.cpu, row.bound, row.validation) for row in rows] == [
        (1, "yes", "pass"),
        (0, "yes", "pass"),
    ]
    assert all(row.seconds >= 0.2 for row in rows)
    assert all(0 < row.cpu_seconds <= row.seconds * 1.01 for row in rows)


def test_threads_without_cpus_are_bound_to_nothing(build: Build) -> None:
    rows = parse_fixedwork(build.run("fixedwork", 1, *QUICK, "--threads", "3").stdout)
    assert [row.bound for row in rows] == ["no"] * 3


def test_work_of_a_quantum_is_fixed(build: Build) -> None:
    """Ten times the iterations take about ten times as long, whatever the load."""
    fastest = []
    for iterations in ("20000", "200000"):
        options = (*QUICK, "--iterations", iterations)
        (row,) = parse_fixedwork(build.run("fixedwork", 1, *options).stdout)
        fastest.append(row.min_us)
    assert 5 < fastest[1] / fastest[0] < 20


def test_two_threads_on_one_cpu_share_it(build: Build) -> None:
    """Each has about half of the time, as under a quota of half a core."""
    program = str(build.bin / "fixedwork")
    options = ("--time", "1000", "--threads", "4", "--json")
    done = run("taskset", "-c", "0", program, *options)
    shares = [row.cpu_seconds / row.seconds for row in parse_fixedwork(done.stdout)]
    assert sum(shares) < 1.1
    assert len(shares) == 4
