"""congestion as a program; test_benchmarks.py has what all programs share."""

import re
from statistics import median

import pytest
from benchmark_builds import Build

from seatrial.parsers.congestion import CongestionRow, parse_congestion

SHORT = ["--iterations=5", "--warmup=1", "--windows=2", "--window=2", "--rings=2"]


def measure(
    build: Build, np: int, *options: str, program: str = "congestion"
) -> list[CongestionRow]:
    done = build.run(program, np, "--pretend-ppn=1", "--json", *options)
    assert done.returncode == 0, done.stderr
    return parse_congestion(done.stdout)


def test_json_of_gpcnet_s_mixture_is_read_back(build: Build) -> None:
    """All four kinds, on two nodes each, with verified contents."""
    rows = measure(build, 10, *SHORT, "--validate", "--seed=7")
    for row in rows:
        assert (row.nodes, row.victim_nodes, row.aggressor_nodes) == (10, 2, 8)
        assert (row.aggressors, row.seed, row.validation) == ("mixed", 7, "pass")
        assert row.isolated_n == row.congested_n
    assert [row.isolated_n for row in rows] == [20, 8, 20]


@pytest.mark.any_mpi
def test_aggressors_disturb_and_idle_nodes_do_not(build: Build) -> None:
    """Medians of runs in turn: a run on a busy machine says little by itself."""
    options = ["--rings=3", "--iterations=100", "--warmup=20"]
    impacts: dict[str, list[float]] = {"none": [], "alltoall": []}
    for _ in range(5):
        for kind, found in impacts.items():
            rows = measure(build, 8, *options, f"--aggressors={kind}")
            logs = [row.impact_mean for row in rows if row.victim != "bw"]
            found.append(median(logs))
    idle, loaded = (median(found) for found in impacts.values())
    assert 1 / 4 < idle < 4
    assert loaded > 2
    assert loaded > 2 * idle


@pytest.mark.any_mpi
def test_every_kind_of_aggressor_loads_the_network(build: Build) -> None:
    for kind in ("alltoall", "incast", "put", "get"):
        options = [f"--aggressors={kind}", "--sizes=64:64"]
        (row, *_) = measure(build, 5, *SHORT, *options)
        assert (row.victim_nodes, row.aggressor_nodes) == (2, 3)
        assert row.aggressor_mb_per_s > 0
        assert row.aggressor_bytes == 64


def test_corruption_exits_1(build: Build) -> None:
    options = ["--pretend-ppn=1", "--json", "--validate", "--aggressors=none", *SHORT]
    done = build.run("congestion_corrupt", 4, *options)
    assert done.returncode == 1
    assert '"validation": "fail"' in done.stdout.splitlines()[-1]
    assert re.search(r"rank \d on \S+: validation failed: 8 bytes", done.stderr)


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("np", "options", "error"),
    [
        (9, ["--pretend-ppn=1"], "found 9 nodes: these aggressors take 8 nodes"),
        (
            3,
            ["--pretend-ppn=1", "-a", "incast"],
            "found 3 nodes: these aggressors take",
        ),
        (4, ["-a", "incast"], "found 1 node: these aggressors take 2 nodes or more"),
        (7, ["--pretend-ppn=2", "-a", "get"], "found from 1 to 2 ranks on a node"),
        (4, ["--aggressors=all"], "--aggressors: 'all' is none of: alltoall, incast"),
    ],
)
def test_bad_input_exits_2(
    build: Build, np: int, options: list[str], error: str
) -> None:
    done = build.run("congestion", np, *options)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = (line for line in done.stderr.splitlines() if "congestion: " in line)
    assert re.match(rf"congestion: rank 0 on \S+: {error}", line), line
