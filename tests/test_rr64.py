"""rr64 as a program; test_benchmarks.py has what all programs share."""

import json
import re

import pytest
from benchmark_builds import Build

from seatrial.parsers.rr64 import RegionsRow, parse_rr64

SHORT = ["--iterations=20", "--warmup=2", "--windows=4", "--json"]


def measure(build: Build, *options: str) -> list[RegionsRow]:
    done = build.run("rr64", 2, *SHORT, *options)
    assert done.returncode == 0, done.stderr
    return parse_rr64(done.stdout)


def test_json_is_read_back(build: Build) -> None:
    rows = measure(build, "--validate", "--sizes=0:4", "--regions=3", "--window=5")
    assert [row.size_bytes for row in rows] == [0, 2, 4]
    for row in rows:
        assert (row.nodes, row.regions, row.window, row.windows) == (1, 3, 5, 4)
        assert (row.n, row.one_n, row.bw_n, row.bw_one_n) == (20, 20, 4, 4)
        assert row.validation == "pass"


def test_default_is_64_regions(build: Build) -> None:
    (row,) = measure(build, "--sizes=8:8")
    assert row.regions == 64


def test_corruption_exits_1_and_ends_the_run(build: Build) -> None:
    done = build.run("rr64_corrupt", 2, *SHORT, "--validate", "--sizes=0:8")
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = [(row["size_bytes"], row["validation"]) for row in rows]
    assert found == [(0, "pass"), (2, "fail")]
    assert re.search(r"rank \d on \S+: validation failed: 2 bytes, byte 1", done.stderr)


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("np", "options", "error"),
    [
        (3, [], "3 processes: a pair takes exactly 2"),
        (2, ["--regions=0"], "--regions: '0' is not an integer from 1 to"),
        (2, ["-m", "1:1073741824"], r"the ranks of this node need \d+ MiB of memory"),
    ],
)
def test_bad_input_exits_2(
    build: Build, np: int, options: list[str], error: str
) -> None:
    done = build.run("rr64", np, *options)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = (line for line in done.stderr.splitlines() if "rr64: " in line)
    assert re.match(rf"rr64: rank 0 on \S+: {error}", line), line
