"""Ior and Mdtest on a model machine: a case for each file system, or a reason."""

from pathlib import Path
from typing import Any

import pytest
from model_runs import model_truth, run_checks, samples
from test_checks_osu import run, settings

from seatrial.checks.file_systems import verify_space
from seatrial.parsers.errors import ParseError

CHECKS = ["Ior", "Mdtest"]
OPENMPI = 0


def test_each_file_system_has_a_case(tmp_path: Path) -> None:
    disks = [{"name": name, "path": str(tmp_path / name)} for name in ("fast", "small")]
    for disk in disks:
        Path(disk["path"]).mkdir()
    shares = [{**disks[0], "share": 0.5}, {**disks[1], "share": 1e-9}]
    options = ("-S", "calibrate=yes", "-S", "Ior.mib_per_node=8")
    extras = {"file_systems": shares}
    truth = model_truth(3)
    rows = run_checks(tmp_path, truth, 3, CHECKS, *options, extras=extras)
    results = {row["display_name"]: row for row in rows}
    assert {name: row["result"] for name, row in results.items()} == {
        "Ior %file_system=fast": "pass",
        "Ior %file_system=small": "fail",
        "Mdtest %file_system=fast": "pass",
        "Mdtest %file_system=small": "fail",
    }
    reason = results["Ior %file_system=small"]["fail_reason"]
    assert "its share 1e-09 of what is free allows" in reason
    data = samples(results["Ior %file_system=fast"], "file_data")
    assert [sample["value"] for sample in data] == [3 * (8 << 20) / 1e9] * 2
    assert all([*Path(disk["path"]).iterdir()] == [] for disk in disks)


@pytest.mark.parametrize(
    ("without", "options", "reason"),
    [
        ("file systems", (), "no file system is declared: name those to measure in"),
        ("mdtest", (), "openmpi has no mdtest; put it into the folder that programs."),
        ("", ("-S", "num_nodes=1"), "nodes needed: 2, available: 1"),
    ],
)
def test_case_that_cannot_run_is_skipped_with_what_to_do(
    without: str, options: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    changed = settings()
    if without == "file systems":
        del changed["systems"][0]["partitions"][0]["extras"]["file_systems"]
    elif without:
        changed["environments"][OPENMPI]["extras"]["programs"].remove(without)
    row = run(tmp_path, changed, "-n", "^Mdtest", *options)
    assert row["result"] == "skip"
    assert row["fail_reason"].startswith(reason)


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({}, "space of"),
        ({"type": "space", "name": "home"}, "space of"),
        (
            {"type": "space", "name": "s", "used_bytes": 11, "allowed_bytes": 10},
            "11 bytes, its share allows 10",
        ),
        (
            {"type": "space", "name": "s", "used_files": 3, "allowed_files": 2},
            "3 files, its share allows 2",
        ),
    ],
)
def test_run_beyond_its_share_is_refused(row: dict[str, Any], error: str) -> None:
    with pytest.raises(ParseError, match=error):
        verify_space(row, "s")
