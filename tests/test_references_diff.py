"""Effect of changed criteria on the verdicts of past runs."""

import csv
import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from fake_home import write, write_home
from history_runs import node_run, scattered

from seatrial.cli import main

CRITERIA = """
schema: 1
risks: {{seller: 0.05, buyer: 0.05}}
criteria:
  - {{check: ImbRing, kind: promised, document: d, clause: c, model: lognormal,
     limits: {{bw_4MiB: {limit} MB/s}}}}
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a home, below git, where the limit that is committed is 50 MB/s."""
    home = write_home(tmp_path / "home")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(home / "results"))
    write(
        home / "reframe-checks" / "checks" / "ring.py",
        "@rfm.simple_test\nclass ImbRing(Base):\n    reference_file = 'imb.yaml'\n",
    )
    change(home, 50)
    git(home, "init", "--quiet")
    git(home, "add", "reference-data")
    git(home, "-c", "user.name=t", "-c", "user.email=t", "commit", "-qm", "first")
    return home


def change(home: Path, limit: float) -> None:
    write(home / "reference-data/lab/criteria.yaml", CRITERIA.format(limit=limit))


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def two_runs(home: Path) -> None:
    """Close a run of four sound nodes, and one where cn02 has a third of the rate."""
    values = scattered(4, 6)
    node_run(home / "results", "20260101T000000Z-nightly", values)
    slow = values * np.array([[1], [1 / 3], [1], [1]])
    node_run(home / "results", "20260102T000000Z-nightly", slow)


def diff(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("references", "diff", "lab", *arguments))


def test_nothing_changes(lab: Path) -> None:
    two_runs(lab)
    result = diff()
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "no criterion differs\nno verdict and no finding changes in 2 runs\n"
    )


def test_a_limit_moves_without_any_verdict(lab: Path) -> None:
    two_runs(lab)
    change(lab, 51)
    text = diff().stdout
    assert "ImbRing bw_4MiB: limit 50 MB/s, now 51 MB/s\n" in text
    assert "no verdict and no finding changes in 2 runs; 8 findings have" in text


def test_verdicts_and_findings_that_change(lab: Path) -> None:
    two_runs(lab)
    change(lab, 20)
    found = json.loads(diff("--format", "json").stdout)
    assert found["criteria"] == {"ImbRing bw_4MiB": "limit 50 MB/s, now 20 MB/s"}
    sound, slow = found["runs"]
    assert (sound["old"], sound["new"], sound["changed"]) == ("pass", "pass", [])
    assert (slow["old"], slow["new"]) == ("fail", "pass")
    (finding,) = slow["changed"]
    assert finding["place"] == "cn02"
    assert (finding["old"], finding["new"]) == ("fail", "pass")
    assert (finding["old_limit"], finding["new_limit"]) == (50.0, 20.0)
    assert (slow["moved"], slow["same"]) == (3, 1)
    table = diff().stdout
    assert "20260102T000000Z-nightly  fail  pass" in table
    assert "50 MB/s    20 MB/s" in table
    (row,) = csv.DictReader(io.StringIO(diff("--format", "csv").stdout))
    assert (row["place"], row["criterion"]) == ("cn02", "ImbRing bw_4MiB")


def test_a_criterion_that_is_gone(lab: Path) -> None:
    two_runs(lab)
    text = CRITERIA.format(limit=50).replace("bw_4MiB", "bw_1MiB")
    write(lab / "reference-data/lab/criteria.yaml", text)
    found = json.loads(diff("--format", "json").stdout)
    assert found["criteria"] == {"ImbRing bw_4MiB": "gone", "ImbRing bw_1MiB": "new"}
    verdicts = {
        (each["criterion"], each["old"], each["new"])
        for each in found["runs"][1]["changed"]
    }
    assert ("ImbRing bw_4MiB", "fail", "-") in verdicts
    assert ("ImbRing bw_1MiB", "-", "undecided") in verdicts


def test_runs_are_chosen(lab: Path) -> None:
    two_runs(lab)
    replayed = "20260103T000000Z-nightly"
    node_run(lab / "results", replayed, scattered(4, 3), replay="elsewhere")
    change(lab, 20)

    def names(*arguments: str) -> list[str]:
        result = diff("--format", "json", *arguments)
        assert result.stderr == ""
        return [each["run"] for each in json.loads(result.stdout)["runs"]]

    first, second = "20260101T000000Z-nightly", "20260102T000000Z-nightly"
    assert names() == [first, second]
    assert names("--runs", "1") == [second]
    assert names(first, replayed) == [first]


def test_criteria_of_a_file_or_of_an_earlier_commit(lab: Path, tmp_path: Path) -> None:
    two_runs(lab)
    change(lab, 20)
    git(lab, "-c", "user.name=t", "-c", "user.email=t", "commit", "-qam", "second")
    assert "no criterion differs" in diff().stdout
    assert "limit 50 MB/s, now 20 MB/s" in diff("--against", "HEAD~1").stdout
    other = tmp_path / "other.yaml"
    write(other, CRITERIA.format(limit=70))
    assert "limit 70 MB/s, now 20 MB/s" in diff("--against", str(other)).stdout


@pytest.mark.parametrize("against", ["nowhere", "--output=x"])
def test_no_such_commit(against: str, lab: Path) -> None:
    result = diff(f"--against={against}")
    assert result.exit_code == 2
    assert f"no criteria of 'lab' at {against!r}" in result.stderr


def test_a_damaged_run_is_left_out_and_said(lab: Path) -> None:
    two_runs(lab)
    (lab / "results/lab/20260101T000000Z-nightly/cases.json").write_text("[]")
    result = diff()
    assert result.exit_code == 0
    assert "left out: " in result.stderr
    assert "in 1 run" in result.stdout


def test_without_any_run(lab: Path) -> None:
    assert diff().stdout == "no criterion differs\nno run to judge\n"
