"""Common tests of the programs of fixed work, osnoise and fixedwork."""

import re
import subprocess
from pathlib import Path

import pytest
from benchmark_builds import Build

pytestmark = pytest.mark.any_mpi

PROGRAMS = ("fixedwork", "osnoise")
ON_ONE = {"fixedwork": (), "osnoise": ("--cpus", "0")}
"""Options for one row."""


@pytest.mark.parametrize(
    ("program", "column"), [("fixedwork", "Gflop/s"), ("osnoise", "Base(us)")]
)
def test_table_is_for_people(build: Build, program: str, column: str) -> None:
    done = build.run(program, 1, "--time", "50", *ON_ONE[program])
    lines = done.stdout.splitlines()
    assert re.match(rf"# Seatrial {program} \d+\.\d+\.\d+ \(", lines[0])
    assert lines[2].split()[:3] == ["#", "CPU", column]
    assert len(lines) == 4


@pytest.mark.parametrize("program", PROGRAMS)
def test_wrong_result_is_found(build: Build, program: str) -> None:
    options = ("--time", "200", "--validate", "--json", *ON_ONE[program])
    done = build.run(f"{program}_corrupt", 1, *options)
    assert done.returncode == 1
    assert re.fullmatch(
        rf"{program}: \S+: validation failed: 1 of \d+ quanta on CPU \d+ computed "
        r"another result\n",
        done.stderr,
    )
    assert '"validation": "fail"' in done.stdout


@pytest.mark.parametrize(
    ("program", "options", "error"),
    [
        *(
            (program, options, error)
            for program in PROGRAMS
            for options, error in (
                ("--bogus", r"unknown argument '--bogus' \(see --help\)"),
                ("--cpus 0,x", "--cpus: '0,x' is not a list of CPUs such as 0,2,8-15"),
                ("--cpus 1-0", "--cpus: '1-0' is not a list of CPUs"),
                ("--cpus 4095", "CPU 4095: pthread_setaffinity_np: Invalid argument"),
                ("--time 0", "--time: '0' is not an integer from"),
            )
        ),
        ("fixedwork", "--threads 0", "--threads: '0' is not an integer from"),
        ("fixedwork", "-i0", "--iterations: '0' is not an integer from"),
        ("osnoise", "--quantum 1", "--quantum: '1' is not an integer from 60 to 10000"),
        ("osnoise", "--odds 1", "--odds: '1' is not an integer from 10 to"),
    ],
)
def test_refusals(build: Build, program: str, options: str, error: str) -> None:
    done = build.run(program, 1, *options.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(rf"{program}: \S+: {error}", done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("program", "default"), [("fixedwork", "10000"), ("osnoise", "1000000")]
)
def test_help(build: Build, program: str, default: str) -> None:
    text = build.run(program, 1, "--help").stdout
    assert text.startswith(f"Usage: {program} [options]\n\n")
    assert f"(default {default})" in text


@pytest.mark.parametrize("program", PROGRAMS)
def test_full_disk_is_an_error(build: Build, program: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [str(build.bin / program), "--time", "10"]
        assert subprocess.run(command, stdout=full).returncode == 1
