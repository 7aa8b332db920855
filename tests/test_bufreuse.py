"""The program bufreuse: what it measures, and how it refuses bad input."""

import json
import re

import pytest
from benchmark_builds import Build

from seatrial.parsers.bufreuse import ReuseRow, median_ratio, parse_bufreuse

SHORT = ["--buffers=32", "--iterations=64", "--warmup=2", "--validate", "--json"]


def measure(build: Build, *options: str) -> list[ReuseRow]:
    done = build.run("bufreuse", 2, *SHORT, *options)
    assert done.returncode == 0, done.stderr
    return parse_bufreuse(done.stdout)


def test_json_is_read_back(build: Build) -> None:
    rows = measure(build, "--sizes=2:8", "--eager-limit=4")
    found = [(row.size_bytes, row.protocol, row.reuse_percent) for row in rows]
    assert found == [
        (size, protocol, share)
        for size, protocol in ((2, "eager"), (4, "eager"), (8, "rendezvous"))
        for share in (100, 75, 50, 25, 0)
    ]
    assert {(row.buffers, row.n, row.validation) for row in rows} == {(32, 64, "pass")}
    assert {row.ratio for row in rows if row.reuse_percent == 100} == {1}
    assert median_ratio(rows, "rendezvous") == rows[-1].ratio


def test_share_of_new_buffers_is_met(build: Build) -> None:
    """Of 64 messages those that are no re-use take new buffers, while there are."""
    rows = measure(build, "--sizes=8:8", "--buffers=1024", "--reuse=100,75,50,25,0")
    used = {row.reuse_percent: row.buffers_used for row in rows}
    assert used[100] == 1
    assert used[0] == 64
    for share in (25, 50, 75):
        assert abs(used[share] - 64 * (100 - share) / 100) <= 1


def test_every_buffer_has_its_turn_by_default(build: Build) -> None:
    done = build.run("bufreuse", 2, "--sizes=8:8", "--reuse=0", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = parse_bufreuse(done.stdout)
    assert (row.buffers, row.buffers_used, row.n) == (1024, 1024, 1024)


def test_caches_are_swept_with_more_than_the_largest(build: Build) -> None:
    (row,) = measure(build, "--sizes=8:8", "--reuse=0")
    assert row.swept_bytes >= 2 << 20


@pytest.mark.any_mpi
def test_shares_are_sorted_and_taken_once(build: Build) -> None:
    rows = measure(build, "--sizes=8:8", "--reuse=0,33,100,33")
    assert [row.reuse_percent for row in rows] == [100, 33, 0]


@pytest.mark.any_mpi
def test_time_limits_the_iterations(build: Build) -> None:
    (row,) = measure(
        build, "--sizes=8:8", "--reuse=0", "--iterations=1000000", "--time=20"
    )
    assert 1 <= row.n < 1000000


@pytest.mark.any_mpi
def test_table_ends_with_the_medians(build: Build) -> None:
    options = [option for option in SHORT if option != "--json"]
    done = build.run("bufreuse", 2, *options, "--sizes=4096:16384", "--reuse=0,100")
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-2:]
    for line, protocol in zip(last, ("eager", "rendezvous"), strict=True):
        assert re.fullmatch(
            rf"# median ratio without re-use, {protocol}: \d+\.\d\d", line
        )


@pytest.mark.any_mpi
def test_few_iterations_are_said(build: Build) -> None:
    options = ["--buffers=32", "--iterations=31", "--sizes=8:8", "--reuse=0"]
    done = build.run("bufreuse", 2, *options)
    assert done.returncode == 0, done.stderr
    assert "# fewer iterations than buffers: not all have a turn\n" in done.stdout


def test_corruption_exits_1(build: Build) -> None:
    done = build.run("bufreuse_corrupt", 2, *SHORT, "--sizes=0:8", "--reuse=100,0")
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = [(row["size_bytes"], row["validation"]) for row in rows]
    assert found == [(0, "pass"), (0, "pass"), (2, "fail")]
    assert "validation failed: 2 bytes, byte 1, sent by rank" in done.stderr


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("np", "options", "error"),
    [
        (1, [], "1 process: a pair takes exactly 2"),
        (3, [], "3 processes: a pair takes exactly 2"),
        (1, ["--buffers=0"], "--buffers: '0' is not an integer from 1 to 65536"),
        (1, ["--reuse=101"], "--reuse: '101' is neither all nor a list of percentages"),
        (1, ["--reuse=50,"], "--reuse: '50,' is neither all nor a list"),
        (1, ["--reuse=-1"], "--reuse: '-1' is neither all nor a list"),
        (1, ["--reuse=0;50"], "--reuse: '0;50' is neither all nor a list"),
        (2, ["--max-size=1073741824"], r" MiB: choose a smaller size"),
    ],
)
def test_bad_input_exits_2(
    build: Build, np: int, options: list[str], error: str
) -> None:
    done = build.run("bufreuse", np, *options)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("bufreuse")]
    assert len(lines) == 1
    assert re.match(r"bufreuse: rank 0 on \S+: ", lines[0])
    assert error in lines[0]
