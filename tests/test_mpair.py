"""mpair as a program; test_benchmarks.py has what all programs share."""

import json
import re

import pytest
from benchmark_builds import Build

from seatrial.parsers.mpair import MpairRow, parse_mpair

SHORT = ["--iterations=20", "--warmup=2", "--windows=4", "--window=8", "--json"]
SIZES = [0, 2, 4, 8]


def measure(build: Build, np: int, *options: str) -> list[MpairRow]:
    done = build.run("mpair", np, *SHORT, *options)
    assert done.returncode == 0, done.stderr
    return parse_mpair(done.stdout)


def test_json_is_read_back(build: Build) -> None:
    rows = measure(build, 4, "--pretend-ppn=2", "--validate", "--sizes=0:8")
    found = [(row.mode, row.sync, row.pairs, row.size_bytes) for row in rows]
    assert found == [
        (mode, sync, pairs, size)
        for mode, sync in [
            ("latency", "start"),
            ("bw", "start"),
            ("bibw", "start"),
            ("rate", "each"),
        ]
        for pairs in [1, 2]
        for size in SIZES
    ]
    for row in rows:
        assert row.n == row.pairs * (20 if row.mode == "latency" else 4)
        assert (row.window, row.windows, row.validation) == (8, 4, "pass")
        assert re.sub(r".*/", "", f"{row.source} {row.destination}") == "1"
        assert row.source.endswith("/0")
        assert 0 < row.clock_us < 10


@pytest.mark.parametrize("mode", ["bw", "bibw", "rate"])
def test_bandwidth_is_all_bytes_over_the_mean_time(build: Build, mode: str) -> None:
    """OSU's formula; a message rate is the bandwidth over the size."""
    rows = measure(build, 6, "--intra", "--sizes=1024:2048", "--mode", mode)
    assert [row.pairs for row in rows] == [1, 1, 2, 2, 3, 3]
    for row in rows:
        messages = (2 if mode == "bibw" else 1) * row.pairs * row.window
        assert row.mb_per_s == pytest.approx(messages * row.size_bytes / row.mean_us)
        assert row.msg_per_s == pytest.approx(messages / row.mean_us * 1e6)


def test_one_pair_is_its_own_aggregate(build: Build) -> None:
    rows = measure(build, 4, "--intra", "--pairs=1", "--sizes=8:8")
    assert [row.pairs for row in rows] == [1, 1, 1, 1]
    for row in rows:
        assert row.slowest_us == pytest.approx(row.mean_us)
        assert row.start_spread_us == 0


def test_pairs_begin_together_at_each_operation(build: Build) -> None:
    options = ["--intra", "--mode=latency", "--sizes=8:8", "--time=1000"]
    rows = measure(build, 4, *options, "--sync=each")
    assert [(row.sync, row.pairs, row.n) for row in rows] == [
        ("each", 1, 20),
        ("each", 2, 40),
    ]


@pytest.mark.any_mpi
def test_time_limits_the_operations(build: Build) -> None:
    options = ["--intra", "--sizes=8:8", "-i", "1000000", "--windows", "1000000"]
    for row in measure(build, 2, *options, "--time=20"):
        assert 1 <= row.n < 1000000


def test_corruption_exits_1_and_ends_the_run(build: Build) -> None:
    options = ["--intra", "--validate", "--sizes=0:8", "--mode=latency"]
    done = build.run("mpair_corrupt", 4, *SHORT, *options)
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = [(row["pairs"], row["size_bytes"], row["validation"]) for row in rows]
    assert found == [(1, 0, "pass"), (1, 2, "fail")]
    assert re.search(r"rank \d on \S+: validation failed: 2 bytes, byte 1", done.stderr)


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("np", "options", "error"),
    [
        (4, [], r"found all ranks \(np 4\) on \S+: start as many on each of two"),
        (4, ["--intra", "--pretend-ppn=2"], "found ranks on 2 nodes: --intra"),
        (4, ["--pretend-ppn=1"], "found 4 ranks on 4 nodes: pairs take two nodes"),
        (4, ["--pretend-ppn=3"], r"found 3 ranks on \S+/0 and 1 on \S+/1: pairs take"),
        (3, ["--intra"], r"found 3 ranks on \S+: pairs within a node take an even"),
        (4, ["--intra", "--pairs=3"], "--pairs: asked for 1 to 3 pairs, there is room"),
        (4, ["--intra", "--pairs=3:0"], "--pairs: asked for 3 to 2 pairs, there is"),
        (2, ["--pairs=0:1"], "--pairs: from 0 to 1 is not a span of pairs"),
        (2, ["--mode=multi"], "--mode: 'multi' is none of: latency, bw, bibw, rate,"),
    ],
)
def test_bad_input_exits_2(
    build: Build, np: int, options: list[str], error: str
) -> None:
    done = build.run("mpair", np, *options)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = (line for line in done.stderr.splitlines() if "mpair: " in line)
    assert re.match(rf"mpair: rank 0 on \S+: {error}", line), line
