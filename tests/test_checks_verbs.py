"""The checks with perftest: their rails and options, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from fake_home import fake_program
from reframe_runs import CHECKS, HOME
from reframe_runs import record_of as record
from test_checks_osu import run, script, settings

from seatrial.checks.listing import describe_checks
from seatrial.report.published_overlay import overlay

REPLAY = Path(__file__).parent / "data" / "replay"
WRITE = ("-n", "VerbsLatency%operation=write", "-p", "openmpi")
BANDWIDTH = ("-n", "VerbsBandwidth", "-p", "openmpi")
SHORT = (
    *("-S", "VerbsLatency.iterations=50", "-S", "VerbsLatency.warmup=5"),
    *("-S", "VerbsLatency.sizes=8,4096", "-S", "VerbsBandwidth.qps=1,2"),
    *("-S", "VerbsLatency.run_limit=20"),
)
RAILS = {"rails": ["mlx5_0:1", "mlx5_1:2"], "gid_indexes": {"mlx5_1:2": 3}}
SRUN = """
while :; do case $1 in -*) shift;; *) break;; esac; done
export SLURMD_NODENAME=localhost
SLURM_PROCID=1 "$@" & server=$!
SLURM_PROCID=0 "$@" || {
    kill $server; wait $server
    echo 'srun: error: cn01: task 0: Exited with exit code 1' >&2
    exit 1
}
wait $server || {
    echo 'srun: error: cn02: task 1: Exited with exit code 1' >&2
    exit 1
}
"""
"""Starts both ranks on this machine, and ends the server if the client fails."""


def with_rails(**changed: Any) -> dict[str, Any]:
    """Return settings with two rails, or others."""
    chosen = settings()
    chosen["systems"][0]["partitions"][0]["extras"] |= RAILS | changed
    return chosen


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    """Return a folder with an srun that starts ranks, and programs of perftest."""
    programs = tmp_path / "programs"
    fake_program(programs, "srun", SRUN)
    for name in ("ib_write_lat", "ib_write_bw"):
        fake_program(programs, name, f'exec {REPLAY}/perftest {name} "$@"')
    return programs


def commands(row: dict[str, Any]) -> list[str]:
    """Return the programs of all steps with their options."""
    lines = script(row).splitlines()
    return [line.partition(" -- ")[2] for line in lines if "perftest_pair" in line]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The case of write latencies over two rails."""
    return run(tmp_path_factory.mktemp("written"), with_rails(), *WRITE, *SHORT)


def test_each_rail_is_measured_with_its_device_port_and_gid(
    written: dict[str, Any],
) -> None:
    row = written
    assert row["result"] == "pass", row["fail_reason"]
    start = "ib_write_lat -s"
    assert commands(row) == [
        f"{start} 8 -n 56 -U -F -d mlx5_0 -i 1",
        f"{start} 4096 -n 56 -U -F -d mlx5_0 -i 1",
        f"{start} 8 -n 56 -U -F -d mlx5_1 -i 2 -x 3",
        f"{start} 4096 -n 56 -U -F -d mlx5_1 -i 2 -x 3",
    ]
    samples = record(row)["samples"]
    assert {(each["source"], each["destination"]) for each in samples} == {
        ("cn01", "cn02")
    }
    found = [(s["hca"], s["size_bytes"], s["statistic"], s["n"]) for s in samples]
    assert found == [
        (rail, size, statistic, 50)
        for rail in RAILS["rails"]
        for size in (8, 4096)
        for statistic in ("mean", "p50", "p99")
    ]


def test_first_samples_do_not_count(written: dict[str, Any]) -> None:
    """The stand-in's sample N is 1 + N / 200 us, from 0, for a message of 0 B."""
    mean = record(written)["samples"][0]["value"]
    assert mean == pytest.approx((1 + (5 + 54) / 2 / 200) * (1 + 8 / 4096), rel=1e-5)


def test_bandwidth_of_directions_queue_pairs_and_sizes(tmp_path: Path) -> None:
    row = run(
        tmp_path, with_rails(rails=["mlx5_0:1"], gid_indexes={}), *BANDWIDTH, *SHORT
    )
    assert row["result"] == "pass", row["fail_reason"]
    assert "ib_write_bw -b -t 64 -Q 1 -q 2 -n 3200 -s 65536 -F -d mlx5_0 -i 1" in (
        commands(row)
    )
    samples = record(row)["samples"]
    assert len(samples) == 2 * 2 * 6
    found = {
        (s["metric"], s["parameters"].get("qps")): s["value"]
        for s in samples
        if s["size_bytes"] == 65536
    }
    one_way = 984.62 * 2**20 / 1e6  # perftest's MB are MiB
    assert found["bw", None] == found["bw", 2] == pytest.approx(one_way)
    assert found["bibw", None] == pytest.approx(2 * one_way, rel=1e-4)
    assert {s["n"] for s in samples} == {6400}


def test_class_without_rails_is_skipped(tmp_path: Path) -> None:
    row = run(tmp_path, with_rails(rails=[]), *WRITE)
    assert row["result"] == "skip"
    assert (
        "node_classes names no rails of the class batch: name dev"
        in (row["fail_reason"])
    )


def test_gid_index_of_an_unknown_rail_is_an_error(tmp_path: Path) -> None:
    row = run(tmp_path, with_rails(gid_indexes={"mlx5_2:1": 3}), *WRITE)
    assert row["result"] == "fail"
    assert (
        "gid_indexes of the class batch: mlx5_2:1: expected one of its rails ml"
        in (row["fail_reason"])
    )


@pytest.fixture(scope="module")
def repeats() -> dict[str, list[str]]:
    """The experiments of each check, which ReFrame describes in seconds."""
    described = describe_checks(CHECKS / "verbs", HOME)
    return {case["@class"]: case["experiments"] for case in described}


@pytest.mark.parametrize(
    ("check", "metric", "unit", "sizes", "expected"),
    [
        ("VerbsLatency", "send_latency", "us", (2, 8), {4.8, 6.9}),
        ("VerbsLatency", "write_latency", "us", (2, 8), {3.8, 4.8}),
        ("VerbsLatency", "read_latency", "us", (2, 8), {9.0, 12.4}),
        ("VerbsBandwidth", "bw", "MB/s", (64, 1 << 22), {972, 781}),
        ("VerbsBandwidth", "bibw", "MB/s", (64, 1 << 22), {1932, 946}),
    ],
)
def test_numbers_of_liu_2005_stand_beside_those_of_the_checks(
    repeats: dict[str, list[str]],
    check: str,
    metric: str,
    unit: str,
    sizes: tuple[int, ...],
    expected: set[float],
) -> None:
    points = overlay(HOME, repeats).points(check, metric, unit, sizes)
    liu = {p.value for p in points if p.system in ("mt25208-pcie", "mt23108-pcix")}
    assert liu == expected


def test_server_and_client_run_as_two_ranks(tmp_path: Path, ranks: Path) -> None:
    row = run(tmp_path, with_rails(), *WRITE, *SHORT, path=ranks)
    assert row["result"] == "pass", row["fail_reason"]
    assert len(record(row)["samples"]) == 12
    assert not list(Path(row["stagedir"]).glob("*.port"))


FAULTS = {
    "client-dies": "client ib_write_lat (mlx5_0:1) on localhost: exit status 1; Compl",
    "server-dies": "server ib_write_lat (mlx5_0:1) on localhost: exit status 1; Could",
    # Both sides have the same limit: either may be the first.
    "server-absent": " within 2 s",
    "hang": "ib_write_lat (mlx5_0:1) on localhost: no end within 2 s",
}


@pytest.mark.parametrize(
    "fault",
    [
        *("client-dies", "hang"),
        pytest.param("server-dies", marks=pytest.mark.slow),
        pytest.param("server-absent", marks=pytest.mark.slow),
    ],
)
def test_side_that_failed_is_the_reason(
    tmp_path: Path, ranks: Path, fault: str
) -> None:
    late = ("-S", "VerbsLatency.run_limit=2")
    row = run(
        *(tmp_path, with_rails(), *WRITE, *SHORT, *late),
        path=ranks,
        PERFTEST_FAULT=fault,
    )
    assert row["result"] == "fail"
    assert "perftest_pair: " in row["fail_reason"]
    assert FAULTS[fault] in row["fail_reason"]
    assert record(row)["samples"] == []


@pytest.mark.parametrize(
    ("fault", "case", "reason"),
    [
        ("inf", WRITE, "write_latency,8,mlx5_0:1: sample is inf, expected a positive"),
        ("-nan", BANDWIDTH, "bw,64,qps=1,mlx5_0:1: BW average is -nan, expected a num"),
        pytest.param(
            *("0.00", BANDWIDTH),
            "bw,64,qps=1,mlx5_0:1: BW average is 0.00, expected a pos",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_result_that_is_no_number_fails_with_the_reason(
    tmp_path: Path, fault: str, case: tuple[str, ...], reason: str
) -> None:
    one = ("-S", "VerbsBandwidth.qps=1")
    row = run(tmp_path, with_rails(), *case, *SHORT, *one, PERFTEST_FAULT=fault)
    assert row["result"] == "fail"
    assert reason in row["fail_reason"]
    assert record(row)["samples"] == []
