"""Time limits follow from the nodes, steps and sizes of a case."""

import json
from pathlib import Path
from typing import Any

from reframe_runs import HOME, SETTINGS, check_paths, reframe

from seatrial.checks.time_limits import start_s

COUNTS = (4, 1024)
"""Fewer than 4 are too few for Congestion: two victims beside two aggressors."""
TYPICAL = 5
"""A limit is at least so many typical times of a case, and a start on its nodes."""
HOUR_S = 3600
MOST_S = {"NodeSweep": 4 * HOUR_S, "PairSweep": 2 * HOUR_S, "Ior": 3 * HOUR_S}
"""Limits at 1,024 nodes; of all other checks an hour."""


def cases(folder: Path, count: int, *options: str) -> list[dict[str, Any]]:
    """Return the rows of a dry run of all checks on a number of nodes."""
    folder.mkdir()
    settings = json.loads(SETTINGS.read_text())
    partition = settings["systems"][0]["partitions"][0]
    partition["extras"]["nodes"] = [f"cn{number:04}" for number in range(count)]
    partition["processor"] |= {"num_cpus": 256, "num_sockets": 2}
    (folder / "settings.json").write_text(json.dumps(settings))
    reframe(
        *("-C", "settings.json", *check_paths(*options), "--dry-run", *options),
        *("--prefix", str(folder), "--report-file", str(folder / "report.json")),
        folder=folder,
        RFM_REFERENCE_PREFIX=str(HOME / "reference-data" / "lab"),
    )
    report = json.loads((folder / "report.json").read_text())
    rows: list[dict[str, Any]] = report["runs"][-1]["testcases"]
    return [row for row in rows if row["result"] != "skip"]


def test_limits_of_all_checks_at_all_sizes(tmp_path: Path) -> None:
    listed = (HOME / "tests" / "data" / "cases.txt").read_text().splitlines()
    checks = {line.split()[0] for line in listed}
    longest: dict[str, float] = {}
    for count in COUNTS:
        rows = cases(tmp_path / str(count), count)
        assert {*(r["display_name"].split()[0] for r in rows)} == checks
        for row in rows:
            check, limit = row["display_name"].split()[0], row["time_limit"]
            case = f"{row['display_name']} {row['environ']}"
            nodes = count if row["extent"] == "one class" else 1
            assert limit >= TYPICAL * row["typical_s"] + start_s(nodes), case
            assert limit <= MOST_S.get(check, HOUR_S), (case, count)
            assert limit >= longest.get(case, 0), (case, count)
            longest[case] = limit


def test_limit_that_is_set_precedes(tmp_path: Path) -> None:
    options = ("-n", "ImbRing|Startup", "-S", "ImbRing.time_limit=7m")
    rows = cases(tmp_path / "run", 1024, *options)
    found = {row["display_name"]: row["time_limit"] for row in rows}
    assert found["ImbRing"] == 420
    assert found["Startup"] > 1000


def test_limit_follows_from_what_the_sweep_does(tmp_path: Path) -> None:
    both = ("-n", "PairSweep|NodeSweep")
    smaller = ("PairSweep.rounds=8", "PairSweep.retest=20", "NodeSweep.hpcc_limit=600")
    few = [*both, *(part for value in smaller for part in ("-S", value))]
    found = {
        r["display_name"]: r["time_limit"] for r in cases(tmp_path / "a", 64, *few)
    }
    every = cases(tmp_path / "b", 64, *both)
    for row in every:
        assert found[row["display_name"]] < row["time_limit"] / 1.5


def test_start_grows_with_the_levels_of_a_tree() -> None:
    assert start_s(1) < start_s(2) < start_s(64) < start_s(1024)
    assert start_s(1024) == start_s(1000) < 2 * start_s(64)
