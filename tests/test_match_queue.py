"""The programs mq_unexp and mq_posted: what they measure, and how they refuse."""

import json
import re

import pytest
from benchmark_builds import Build

from seatrial.parsers.match_queue import QueueRow, parse_match_queue

SHORT = ["--iterations=50", "--warmup=5", "--validate", "--json"]
both_programs = pytest.mark.parametrize("program", ["mq_unexp", "mq_posted"])


def measure(build: Build, program: str, *options: str) -> list[QueueRow]:
    done = build.run(program, 2, *SHORT, *options)
    assert done.returncode == 0, done.stderr
    return parse_match_queue(done.stdout, program)


@both_programs
@pytest.mark.parametrize("tags", ["same", "ordered", "random"])
def test_json_is_read_back(build: Build, program: str, tags: str) -> None:
    rows = measure(
        build, program,
        f"--tags={tags}", "--sizes=0:2", "--depth=4:16", "--entry-size=100",
    )  # fmt: skip
    found = [(row.size_bytes, row.depth) for row in rows]
    assert found == [(size, depth) for size in (0, 2) for depth in (4, 8, 16)]
    assert {(row.tags, row.entry_bytes) for row in rows} == {(tags, 100)}
    assert {(row.n, row.validation) for row in rows} == {(50, "pass")}


@both_programs
def test_every_entry_costs_time(build: Build, program: str) -> None:
    """On one node, both MPIs walk their queues from one end to the other."""
    rows = measure(build, program, "--iterations=100")
    assert [row.depth for row in rows] == [0, *(2**k for k in range(1, 14))]
    assert rows[-1].slope_ns is not None
    assert rows[-1].slope_ns > 0
    assert rows[-1].p50_us > rows[0].p50_us + 2  # 8192 entries of over 0.25 ns each


@pytest.mark.any_mpi
@both_programs
def test_time_limits_the_iterations(build: Build, program: str) -> None:
    (row,) = measure(
        build, program,
        "--depth=8:8", "--iterations=1000000", "--warmup=1000", "--time=20",
    )  # fmt: skip
    assert 1 <= row.n < 1000000


@both_programs
def test_corruption_of_the_ping_pong_exits_1(build: Build, program: str) -> None:
    done = build.run(f"{program}_corrupt", 2, *SHORT, "--depth=4")
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["depth"], row["validation"]) for row in rows] == [(0, "fail")]
    assert "validation failed: 8 bytes, byte 4, sent by rank" in done.stderr


@both_programs
def test_corruption_of_an_entry_exits_1(build: Build, program: str) -> None:
    """The messages of the ping-pong are empty, so nothing of them can be damaged."""
    options = ["--depth=0:4", "--sizes=0:0", "--entry-size=3"]
    done = build.run(f"{program}_corrupt", 2, *SHORT, *options)
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = [(row["depth"], row["validation"]) for row in rows]
    assert found == [(0, "pass"), (2, "fail")]
    assert "validation failed: 3 bytes, byte 1, sent by rank" in done.stderr


@pytest.mark.any_mpi
@both_programs
@pytest.mark.parametrize(
    ("np", "options", "error"),
    [
        (1, [], "1 process: a pair takes exactly 2"),
        (3, [], "3 processes: a pair takes exactly 2"),
        (1, ["--depth=9:8"], "smallest depth 9 is above the largest, 8 (see --help)"),
        (1, ["--depth=16385"], "--depth: '16385' is not [MIN:]MAX, integers from 0"),
        (1, ["--tags=none"], "--tags: 'none' is none of: same, ordered, random"),
        (1, ["--entry-size=5000"], "--entry-size: '5000' is not an integer from 0"),
    ],
)
def test_bad_input_exits_2(
    build: Build, program: str, np: int, options: list[str], error: str
) -> None:
    done = build.run(program, np, *options)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith(program)]
    assert len(lines) == 1
    assert re.match(rf"{program}: rank 0 on \S+: ", lines[0])
    assert error in lines[0]
