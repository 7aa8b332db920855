"""balance as a program; test_benchmarks.py has what all programs share."""

import json
import re

import pytest
from benchmark_builds import Build

from seatrial.parsers.balance import BalanceRow, parse_balance

SHORT = ["--warmup=1", "--json"]
SLOW_MESSAGE_US = 20000
"""As benchmarks/tests/slow_network.c keeps a message between two nodes waiting."""


def measure(build: Build, program: str, np: int, *options: str) -> list[BalanceRow]:
    done = build.run(program, np, *SHORT, *options)
    assert done.returncode == 0, done.stderr
    return parse_balance(done.stdout)


def test_json_is_read_back(build: Build) -> None:
    options = ["--pretend-ppn=4", "--iterations=20", "--windows=3", "--window=8"]
    rows = measure(build, "balance", 8, *options, "--validate", "--sizes=0:8")
    assert [row.size_bytes for row in rows] == [0, 2, 4, 8]
    for row in rows:
        assert (row.pairs, row.np, row.validation) == (2, 8, "pass")
        assert (row.latency_n, row.bw_n, row.bibw_n, row.multi_bw_n) == (20, 3, 3, 6)
        assert (row.source[-2:], row.destination[-2:]) == ("/0", "/1")


def test_slow_network_is_out_of_balance(build: Build) -> None:
    """Every number between the nodes shows it, none of those within the first."""
    options = ["--pretend-ppn=2", "--iterations=3", "--windows=3", "--window=2"]
    (row,) = measure(build, "balance_slow", 4, *options, "--sizes=1024:1024")
    most_mb_per_s = row.size_bytes / SLOW_MESSAGE_US
    assert row.latency_between_us >= SLOW_MESSAGE_US > row.latency_within_us
    assert row.bw_between_mb_per_s <= most_mb_per_s < row.bw_within_mb_per_s
    assert row.bibw_between_mb_per_s <= 2 * most_mb_per_s < row.bibw_within_mb_per_s
    assert row.multi_bw_between_mb_per_s <= most_mb_per_s < row.multi_bw_within_mb_per_s
    ratios = [row.latency_ratio, row.bw_ratio, row.bibw_ratio, row.multi_bw_ratio]
    assert min(ratios) > 1


def test_corruption_exits_1_and_ends_the_run(build: Build) -> None:
    options = ["--pretend-ppn=2", "--iterations=5", "--windows=2", "--validate"]
    done = build.run("balance_corrupt", 4, *SHORT, *options, "--sizes=0:8")
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = [(row["size_bytes"], row["validation"]) for row in rows]
    assert found == [(0, "pass"), (2, "fail")]
    assert re.search(r"rank \d on \S+: validation failed: 2 bytes, byte 1", done.stderr)


@pytest.mark.any_mpi
@pytest.mark.parametrize(
    ("np", "options", "error"),
    [
        (4, [], "found 4 ranks on 1 node: pairs take two nodes"),
        (3, ["--pretend-ppn=1"], "found 3 ranks on 3 nodes: pairs take two nodes"),
        (3, ["--pretend-ppn=2"], r"found 2 ranks on \S+/0 and 1 on \S+/1: pairs"),
        (2, ["--pretend-ppn=1"], r"found 1 rank on \S+/0: pairs within a node take"),
        (6, ["--pretend-ppn=3"], r"found 3 ranks on \S+/0: pairs within a node take"),
    ],
)
def test_bad_placement_exits_2(
    build: Build, np: int, options: list[str], error: str
) -> None:
    done = build.run("balance", np, *options)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = (line for line in done.stderr.splitlines() if "balance: " in line)
    assert re.match(rf"balance: rank 0 on \S+: {error}", line), line
