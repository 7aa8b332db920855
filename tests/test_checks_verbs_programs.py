"""The checks with our own programs of verbs, on outputs of soft-RoCE."""

from pathlib import Path
from typing import Any

import pytest
from reframe_runs import record_of as record
from test_checks_osu import run, run_cases, script, settings

PROGRAMS = [
    "mp_rdma_bw",
    "mp_rdma_lat",
    "mqp_lat",
    "mr_cost",
    "pairsweep_verbs",
    "winbw",
]
Rows = dict[str, dict[str, Any]]
SPANS = {
    "MultiPairVerbs": (8, 16),
    "WindowBandwidth": (4096, 16384),
    "Registration": (4096, 65536),
    "Connections": (8, 16),
}


def with_rails(*rails: str, **gid_indexes: int) -> dict[str, Any]:
    """Return settings with these rails, and with our programs of verbs."""
    chosen = settings()
    extras = chosen["systems"][0]["partitions"][0]["extras"]
    extras |= {"rails": [*rails], "gid_indexes": gid_indexes}
    for environment in chosen["environments"]:
        environment["features"] += PROGRAMS
    return chosen


def variables(check: str, **more: int) -> list[str]:
    """Return the options of ReFrame for a run as the recorded ones, of small sizes."""
    low, high = SPANS[check]
    values = {"min_size": low, "max_size": high, "iterations": 20, "warmup": 2}
    if check == "Connections":
        values["most_connections"] = 4
    judged = {
        "MultiPairVerbs": "write_latency_8B,read_latency_8B",
        "WindowBandwidth": "bw_64KiB",
        "Registration": "registration_time_4KiB",
        "Connections": "connection_latency_8B",
    }[check]
    found = ["-S", f"{check}.judged={judged}"]
    for name, value in (values | more).items():
        found += ["-S", f"{check}.{name}={value}"]
    return found


def go(folder: Path, check: str, *rails: str, **more: int) -> dict[str, Any]:
    name = f"{check}%processes=1" if check == "WindowBandwidth" else check
    chosen = with_rails(*(rails or ("rxe0:1",)))
    return run(folder, chosen, "-n", name, "-p", "openmpi", *variables(check, **more))


def go_all(folder: Path, **more: int) -> Rows:
    """Run every check on one rail; the rows by check."""
    options = [word for check in SPANS for word in variables(check, **more)]
    names = "MultiPairVerbs|WindowBandwidth%processes=1|Registration|Connections"
    rows = run_cases(
        folder, with_rails("rxe0:1"), "-n", names, "-p", "openmpi", *options
    )
    found = {row["display_name"].partition(" ")[0]: row for row in rows}
    assert found.keys() == SPANS.keys()
    return found


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Every check as recorded."""
    return go_all(tmp_path_factory.mktemp("recorded"))


def numbers(row: dict[str, Any], metric: str, **parameters: object) -> dict[int, float]:
    """Return values of a metric by size, of one rail, with exactly these parameters."""
    return {
        each["size_bytes"]: each["value"]
        for each in record(row)["samples"]
        if (each["metric"], each["parameters"]) == (metric, parameters)
    }


def test_pairs_of_all_cores_and_of_fewer(rows: Rows) -> None:
    row = rows["MultiPairVerbs"]
    assert row["result"] == "pass", row["fail_reason"]
    for metric in ("write_latency", "read_latency", "bw", "read_bw", "fairness"):
        assert numbers(row, metric).keys() == {8, 16}, metric
        assert numbers(row, metric, pairs=1).keys() == {8, 16}, metric
    assert numbers(row, "start_spread").keys() == {8, 16}
    assert not numbers(row, "start_spread", pairs=1)
    assert set(numbers(row, "fairness", pairs=1).values()) == {1.0}
    places = {(s["source"], s["destination"], s["hca"]) for s in record(row)["samples"]}
    assert places == {("cn01", "cn02", "rxe0:1")}


def test_uses_of_two_ports(tmp_path: Path) -> None:
    row = go(tmp_path, "WindowBandwidth", "rxe0:1", "rxe2:1")
    assert row["result"] == "fail"  # the second rail alone: recorded is the first
    assert "a run of rxe0:1, expected rxe2:1" in row["fail_reason"]
    steps = [line for line in script(row).splitlines() if " winbw " in line]
    assert [line.partition("--device ")[2].split()[0] for line in steps] == [
        "rxe0:1,rxe2:1",
        "rxe2:1",
    ]


def test_one_port(rows: Rows) -> None:
    row = rows["WindowBandwidth"]
    judged = "performance error: bw_64KiB: declared, but it could not be extracted"
    assert row["fail_reason"] == judged  # the recorded sizes end at 16 KiB
    assert (
        numbers(row, "bw").keys() == numbers(row, "bibw").keys() == {4096, 8192, 16384}
    )


def test_states_of_registered_memory(rows: Rows) -> None:
    row = rows["Registration"]
    assert row["result"] == "pass", row["fail_reason"]
    sizes = {1 << power for power in range(12, 17)}
    for state in ({}, {"state": "warm"}, {"state": "untouched"}):
        assert numbers(row, "registration_time", **state).keys() == sizes
        assert numbers(row, "deregistration_time", **state).keys() == sizes
    assert {s["node"] for s in record(row)["samples"]} == {"cn01"}
    slopes = [s for s in record(row)["samples"] if s["statistic"] == "slope"]
    assert len(slopes) == 3


def test_connections_by_number_and_mode(rows: Rows) -> None:
    row = rows["Connections"]
    assert row["result"] == "pass", row["fail_reason"]
    for metric in ("connection_latency", "bibw"):
        for parameters in ({}, {"connections": 2}, {"connections": 1, "mode": "send"}):
            assert numbers(row, metric, **parameters).keys() == {8, 16}


def sweep(folder: Path, indexes: dict[str, int], *options: str) -> dict[str, Any]:
    """Run the sweep over verbs of two nodes and two rails; return its case."""
    folder.mkdir(exist_ok=True)
    chosen = with_rails("rxe0:1", "rxe1:1", **indexes)
    two = ("-S", "VerbsPairSweep.num_nodes=2")
    return run(folder, chosen, "-n", "VerbsPairSweep", "-p", "openmpi", *two, *options)


def test_sweep_over_verbs_on_every_rail(tmp_path: Path) -> None:
    row = sweep(tmp_path, {"rxe0:1": 1, "rxe1:1": 1})
    assert row["result"] == "pass", row["fail_reason"]
    command = record(row)["command"]
    assert " --gid-index 1 " in command
    assert " --rails rxe0:1,rxe1:1" in command
    assert "--rail-variable" not in command
    directions = [("cn01", "cn02"), ("cn02", "cn01")]
    for metric, places in (("latency", directions[:1]), ("bw", directions)):
        found = [
            (s["source"], s["destination"], s["hca"])
            for s in record(row)["samples"]
            if s["metric"] == metric and s["statistic"] in ("p50", "mean")
        ]
        assert sorted(found) == sorted(
            (*place, rail) for place in places for rail in ("rxe0:1", "rxe1:1")
        )


def test_sweep_over_verbs_takes_one_gid_index_or_rdma_cm(tmp_path: Path) -> None:
    differ = {"rxe0:1": 1, "rxe1:1": 3}
    row = sweep(tmp_path / "index", differ)
    assert row["result"] == "skip"
    assert "gid_indexes differ (1, 3), expected one for all rails" in row["fail_reason"]
    row = sweep(tmp_path / "cm", differ, "-S", "VerbsPairSweep.rdma_cm=yes")
    assert row["result"] == "pass", row["fail_reason"]
    assert " --rdma-cm " in record(row)["command"]
    assert "--gid-index" not in record(row)["command"]


def test_a_run_with_other_settings_is_refused(tmp_path: Path) -> None:
    for row in go_all(tmp_path, iterations=21).values():
        assert row["result"] == "fail"
        assert "'iterations': 21" in row["fail_reason"]


def test_sizes_by_a_larger_factor(tmp_path: Path) -> None:
    row = go(tmp_path, "Connections", size_factor=64)
    assert row["result"] == "pass", row["fail_reason"]  # 8 and the largest, 16
    assert " --factor 64" in script(row)
    row = go(tmp_path, "Connections", max_size=64, size_factor=4)
    assert "sizes [8, 16], expected [8, 32, 64]" in row["fail_reason"]


def test_other_connections_are_refused(tmp_path: Path) -> None:
    row = go(tmp_path, "Connections", most_connections=8)
    assert "4 connections, not 8" in row["fail_reason"]


def test_gid_index_of_a_rail(tmp_path: Path) -> None:
    chosen = with_rails("rxe0:1", **{"rxe0:1": 3})
    options = variables("Connections")
    row = run(tmp_path, chosen, "-n", "Connections", "-p", "openmpi", *options)
    assert " --gid-index 3 " in script(row)


def test_rdma_cm_in_place_of_a_gid_index(tmp_path: Path) -> None:
    chosen = with_rails("rxe0:1", **{"rxe0:1": 3})
    options = [*variables("Connections"), "-S", "Connections.rdma_cm=yes"]
    row = run(tmp_path, chosen, "-n", "Connections", "-p", "openmpi", *options)
    assert " --rdma-cm " in script(row)
    assert "--gid-index" not in script(row)
