"""halo2d as a program; test_benchmarks.py has what all programs share."""

import json
import re

import pytest
from benchmark_builds import Build

from seatrial.parsers.halo2d import parse_halo2d

PROTOCOLS = ["sendrecv", "irecv_isend", "persistent", "neighbor_alltoall", "put_fence"]
SHORT = ["--iterations=5", "--warmup=1", "--repetitions=2"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_json_is_read_back(build: Build, protocol: str) -> None:
    options = [*SHORT, "--validate", "--protocol", protocol, "-m", "2:8"]
    done = build.run("halo2d", 2, *options, "--json")
    assert done.returncode == 0, done.stderr
    rows = parse_halo2d(done.stdout)
    assert [row.size_bytes for row in rows] == [16, 32, 64]
    assert {row.protocol for row in rows} == {protocol}
    assert {(row.np, row.px, row.py) for row in rows} == {(2, 1, 2)}
    assert {(row.n, row.validation) for row in rows} == {(10, "pass")}
    assert rows[0].mpi.replace(" ", "").lower().startswith(build.mpi)


def test_grid_is_as_square_as_it_can_be(build: Build) -> None:
    for np, px, py in [(3, 1, 3), (6, 2, 3)]:
        done = build.run("halo2d", np, *SHORT, "--json", "-m", "0")
        (row,) = parse_halo2d(done.stdout)
        assert (row.np, row.px, row.py) == (np, px, py)


@pytest.mark.any_mpi
def test_time_per_size_limits_the_iterations(build: Build) -> None:
    options = ["-m", "2:2", "-i", "1000000", "-x", "1000000", "--repetitions", "2"]
    done = build.run("halo2d", 2, *options, "--time", "20", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = parse_halo2d(done.stdout)
    assert 2 <= row.n < 1000000


@pytest.mark.any_mpi
def test_stdout_is_data_only(build: Build) -> None:
    done = build.run("halo2d", 2, *SHORT, "--json", "--max-size=2")
    assert [json.loads(line)["row"] for line in done.stdout.splitlines()] == [1, 2]


@pytest.mark.parametrize("np", [2, 4, 6])
def test_graph_is_made_from_a_communicator_without_topology(
    build: Build, np: int
) -> None:
    """benchmarks/tests/mpi_shim.c refuses all others, as Open MPI 5.0 should."""
    preload = {"LD_PRELOAD": f"{build.bin / 'libmpi_shim.so'}"}
    options = [*SHORT, "--validate", "--protocol", "neighbor_alltoall", "-m", "1:4"]
    done = build.run("halo2d", np, *options, "--json", **preload)
    assert done.returncode == 0, done.stderr
    rows = parse_halo2d(done.stdout)
    assert [(row.n, row.validation) for row in rows] == [(10, "pass")] * 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_corruption_exits_1(build: Build, protocol: str) -> None:
    options = [*SHORT, "--validate", "--json", "--protocol", protocol]
    done = build.run("halo2d_corrupt", 3, *options)
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["validation"] for row in rows] == ["pass", "fail"]
    assert re.search(
        r"halo2d_corrupt: rank 2 on \S+: validation failed: N 2, step 9, row 3, "
        r"column 3, sent by rank 0: expected \d+, found \d+\.\d+",
        done.stderr,
    )


@pytest.mark.any_mpi
def test_help_shows_the_defaults_of_a_run(build: Build) -> None:
    done = build.run("halo2d", 1, "--help")
    found = dict(re.findall(r"--([a-z-]+) .*\(default (\S+)\)", done.stdout))
    assert found == {
        "protocol": "sendrecv",
        "sizes": "0:1024",
        "min-size": "0",
        "max-size": "1024",
        "iterations": "1000",
        "warmup": "200",
        "repetitions": "5",
        "time": "0",
    }
    assert ": " + ", ".join(PROTOCOLS) + " (default" in done.stdout
    row = parse_halo2d(build.run("halo2d", 2, "--json", "-m", "0").stdout)[0]
    for name in ("protocol", "iterations", "warmup", "repetitions"):
        assert str(getattr(row, name)) == found[name]


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--protocol", "rdma"], "--protocol: 'rdma' is none of: sendrecv, irecv_i"),
        (["-m", "16777217"], "--sizes: '16777217' is not [MIN:]MAX, integers from 0"),
        (["-m", "16777216"], " MiB: choose a smaller size"),
    ],
)
def test_bad_input_exits_2(build: Build, options: list[str], error: str) -> None:
    done = build.run("halo2d", 2, *options)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = (line for line in done.stderr.splitlines() if "halo2d: " in line)
    assert line.startswith("halo2d: rank 0 on ")
    assert error in line
