"""The program logp: what it measures, and how it refuses bad input."""

import json
import re

import pytest
from benchmark_builds import Build

from seatrial.parsers.logp import LogpRow, parse_logp

SHORT = ["--iterations=300", "--least=30", "--time=200", "--inserts=0", "--json"]


def measure(build: Build, *options: str) -> list[LogpRow]:
    done = build.run("logp", 2, *SHORT, *options)
    assert done.returncode == 0, done.stderr
    return parse_logp(done.stdout)


def test_json_is_read_back(build: Build) -> None:
    rows = measure(
        build,
        *("--validate", "--sizes=8:32", "--pretend-ppn=1", "--eps=100", "--least=40"),
        *("--send=send", "--receive=irecv", "--confidence=90"),
    )
    assert [row.size_bytes for row in rows] == [0, 8, 16, 32]
    for row in rows:
        assert (row.send, row.receive, row.nodes) == ("send", "irecv", 2)
        assert (row.eps_percent, row.confidence_percent) == (100, 90)
        assert (row.validation, row.inserted) == ("pass", "no")
        assert 2 <= row.or_n <= 300
        assert 0 < row.clock_us < 10


def test_narrow_interval_ends_the_sampling(build: Build) -> None:
    """With no time limit a wide goal is met early, an impossible one never."""
    options = ["--sizes=0:0", "--time=0", "--least=2", "--flood=100"]
    (wide,) = measure(build, *options, "--eps=100", "--iterations=100000")
    assert wide.precise == "yes"
    assert wide.rtt_n < 100000
    (narrow,) = measure(build, *options, "--eps=1", "--iterations=10")
    assert narrow.rtt_n <= 10


def test_delay_of_the_mirror_is_latency_and_no_overhead(build: Build) -> None:
    """RTT takes all of the delay, L half of it; os, or and g take none.

    A busy machine adds to any of them, so the best of three runs counts.
    """
    delay_us = 2000
    options = ["--sizes=8:8", "--time=0", "--iterations=30", "--flood=4096"]
    for _ in range(3):
        rows = measure(build, *options, f"--delay={delay_us}")
        assert [row.delay_us for row in rows] == [delay_us, delay_us]
        assert min(row.rtt_p50_us for row in rows) >= delay_us
        assert rows[0].l_us >= delay_us / 2 - rows[0].g_flood_us
        times = [(row.os_p50_us, row.or_p50_us, row.g_flood_us) for row in rows]
        if max(map(max, times)) < delay_us / 4:
            return
    pytest.fail(f"os, or, g: {times}")


def test_long_messages_take_longer(build: Build) -> None:
    empty, large = measure(build, "--sizes=4194304:4194304")
    assert large.rtt_p50_us > empty.rtt_p50_us
    assert large.g_p50_us > 10 * empty.g_p50_us
    assert large.g_flood_us > 10 * empty.g_flood_us


def test_sizes_are_inserted_where_values_jump(build: Build) -> None:
    """From 1 KiB to 4 MiB every transport goes from latency to bandwidth."""
    options = ["--sizes=1:1048576", "--inserts=3", "--time=20", "--flood=100"]
    rows = measure(build, *options)
    inserted = [row.size_bytes for row in rows if row.inserted == "yes"]
    assert len(inserted) <= 3
    assert all(size & (size - 1) for size in inserted)


@pytest.mark.any_mpi
def test_table_has_latency_and_all_rows(build: Build) -> None:
    options = ["-i", "20", "--sizes", "2:8", "--time", "50", "--inserts", "0"]
    done = build.run("logp", 2, *options)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^# \[ L: -?\d+\.\d{3} us \]$", done.stdout, re.MULTILINE)
    rows = [line.split() for line in done.stdout.splitlines() if line[0] != "#"]
    assert [row[0] for row in rows] == ["0", "2", "4", "8"]
    assert {row[-1] for row in rows} == {"off"}


def test_corruption_exits_1_and_ends_the_run(build: Build) -> None:
    done = build.run("logp_corrupt", 2, *SHORT, "--validate", "--sizes=8:32")
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = [(row["size_bytes"], row["rows"], row["validation"]) for row in rows]
    assert found == [(0, 2, "pass"), (8, 2, "fail")]
    assert re.search(r"rank 1 on \S+: validation failed: 8 bytes, byte 4", done.stderr)


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("np", "options", "error"),
    [
        (1, [], "1 process: LogP is measured between exactly 2"),
        (3, [], "3 processes: LogP is measured between exactly 2"),
        (2, ["-i", "1"], "--iterations 1: an interval takes at least 2 samples"),
        (2, ["--confidence=100"], "'100' is not an integer from 50 to 99"),
        (2, ["--send=ssend"], "--send: 'ssend' is none of: isend, send"),
    ],
)
def test_bad_input_exits_2(
    build: Build, np: int, options: list[str], error: str
) -> None:
    done = build.run("logp", np, *options)
    assert (done.returncode, done.stdout) == (2, "")
    lines = [line for line in done.stderr.splitlines() if line.startswith("logp: ")]
    assert len(lines) == 1
    assert lines[0].startswith("logp: rank 0 on ")
    assert error in lines[0]
