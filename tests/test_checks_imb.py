"""The checks with IMB of several runs: what is skipped, run, refused and recorded."""

from pathlib import Path
from typing import Any

import pytest
from reframe_runs import record_of as record
from test_checks_osu import REPLAY, run, script, settings

INTELMPI = 2


def values(row: dict[str, Any], metric: str) -> dict[int, float]:
    """The samples of a metric by size, without those of fewer pairs."""
    return {
        sample["size_bytes"]: sample["value"]
        for sample in record(row)["samples"]
        if sample["metric"] == metric and not sample["parameters"]
    }


def test_one_sided_without_imb_rma_is_skipped_with_what_to_do(tmp_path: Path) -> None:
    changed = settings()
    changed["environments"][INTELMPI]["extras"]["programs"].remove("IMB-RMA")
    row = run(tmp_path, changed, "-n", "ImbOneSided")
    assert row["result"] == "skip"
    assert row["fail_reason"] == (
        "intelmpi has no IMB-RMA, of the feature imb; install it, and put it beside "
        "IMB-MPI1, which programs.imb of mpi_stacks names"
    )


@pytest.mark.parametrize("name", ["ImbOneSided", "ImbMultiLatency"])
def test_one_node_is_skipped(name: str, tmp_path: Path) -> None:
    row = run(tmp_path, settings(), "-n", name, "-S", "num_nodes=1")
    assert row["result"] == "skip"
    assert row["fail_reason"] == "nodes needed: 2, available: 1"


def test_one_sided_takes_each_metric_of_its_mode(tmp_path: Path) -> None:
    row = run(tmp_path, settings(), "-n", "ImbOneSided")
    assert row["result"] == "pass", row["fail_reason"]
    assert "--ntasks=2 --ntasks-per-node=1 IMB-RMA Unidir_put" in script(row)
    captured = (REPLAY.parent / "checks" / "imb-steps-2021.11.txt").read_text()
    samples = record(row)["samples"]
    assert {(s["source"], s["destination"]) for s in samples} == {("cn01", "cn02")}
    outputs = captured.split("$ 2 IMB-RMA ")[1:]
    for output, metric, largest, column in zip(
        outputs,
        ("put_latency", "get_latency", "put_bw"),
        (1 << 16, 1 << 16, 1 << 22),
        (2, 2, 3),
        strict=True,
    ):
        rows = [line.split() for line in output.splitlines() if line[:1] == " "][1:]
        printed = {int(r[0]): float(r[column]) for r in rows if len(r) == 4}
        del printed[0]
        assert max(printed) == largest
        assert values(row, metric) == printed
    (most,) = (
        s for s in samples if (s["metric"], s["size_bytes"]) == ("put_bw", 1 << 22)
    )
    assert most["n"] == 64


def test_latency_of_all_cores_is_judged_and_that_of_fewer_recorded(
    tmp_path: Path,
) -> None:
    row = run(tmp_path, settings(), "-n", "ImbMultiLatency")
    assert row["result"] == "pass", row["fail_reason"]
    steps = script(row)
    assert "--nodes=2 --ntasks=2 --ntasks-per-node=1 IMB-MPI1 PingPong " in steps
    assert "--nodes=2 --ntasks=4 --ntasks-per-node=2 IMB-MPI1 PingPong " in steps
    assert steps.count(" -map 1x2\n") == steps.count(" -map 2x2\n") == 1
    job = Path(row["stagedir"], "rfm_job.sh").read_text()
    assert " --distribution=block " in job
    parameters = [
        sample["parameters"]
        for sample in record(row)["samples"]
        if sample["size_bytes"] == 8
    ]
    assert parameters == [{"pairs": 1}, {}]
    assert len(values(row, "latency")) == 17


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        (
            "ImbMultiLatency",
            "Group  1:     1    3",
            "Group  1:     2    3",
            "pairs=2: group 1 of the ranks 2 3, expected group 1 of 1 3",
        ),
        (
            "ImbOneSided",
            "MODE: AGGREGATE",
            "MODE: NON-AGGREGATE",
            "put_bw: mode NON-AGGREGATE, expected AGGREGATE",
        ),
    ],
)
def test_what_was_not_asked_for_gives_no_numbers(
    name: str, old: str, new: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "srun").write_text(
        f"#!/bin/bash\nset -o pipefail\n'{REPLAY}/srun' \"$@\" | sed 's/{old}/{new}/'\n"
    )
    (tmp_path / "srun").chmod(0o755)
    row = run(tmp_path, settings(), "-n", name, path=tmp_path)
    assert row["result"] == "fail"
    assert reason in row["fail_reason"]
    assert record(row)["samples"] == []
