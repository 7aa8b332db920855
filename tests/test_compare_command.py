"""`seatrial compare` on closed runs: what it prints, writes and refuses."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from bakeoff_samples import (
    SHA256,
    WEIGHTS,
    close_vendor,
    published,
    side,
    vendor,
)
from click.testing import CliRunner
from closed_runs import CRITERIA, ssh_key
from reframe_runs import HOME

from seatrial.cli import main
from seatrial.compare.compare import compare
from seatrial.compare.formats import as_csv
from seatrial.compare.records import Comparison
from seatrial.compare.sides import open_sides
from seatrial.runs.closed_run import Run
from seatrial.runs.seal import seal

# ---- the command


def run_command(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["compare", *arguments], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Close runs of two vendors, the second 20 % better."""
    results = tmp_path / "results"
    monkeypatch.setenv("SEATRIAL_RESULTS", str(results))
    monkeypatch.setenv("SEATRIAL_HOME", str(HOME))
    close_vendor(results, "acme")
    close_vendor(results, "zenith", 1.2, seed=2)
    return results


TABLE = """\
zenith wins: zenith is 20.9 % better than acme (15.8 to 26.2 %); first in 100 % of 2,000 resamples.

   side    score                   first in  what
1  zenith  1.209 (1.158 to 1.262)  100.0 %   20260101T000000Z-bakeoff of zenith, 4 nodes, 6 repeats
2  acme    1.000                   0.0 %     20260101T000000Z-bakeoff of acme, 4 nodes, 6 repeats

group     share  numbers  zenith
"""  # noqa: E501 (the lines are as they are printed)


def test_table_begins_with_what_matters(runs: Path) -> None:
    status, text, errors = run_command("acme/latest", "zenith/latest")
    assert (status, errors) == (0, "")
    lines = [line.rstrip() for line in text.splitlines()]
    assert "\n".join(lines).startswith(TABLE)
    assert lines[-1] == (
        "ratios: how many times better than acme, with intervals of 95 %, each by "
        "itself; + better, - worse by more than chance over all numbers"
    )


def test_json_is_the_whole_record(runs: Path) -> None:
    status, text, _ = run_command("acme/latest", "zenith/latest", "--format", "json")
    assert status == 0
    found = json.loads(text)
    assert list(found) == list(Comparison.__dataclass_fields__)
    assert found["winner"] == "zenith"
    assert found["weights"] == "bakeoff"
    assert found["weights_sha256"] == SHA256
    assert found["frozen"] is True
    assert len(found["numbers"]) == 4
    assert found["numbers"][0]["ratios"][0] is None
    assert found["numbers"][0]["ratios"][1]["value"] > 1.1


def test_csv_has_a_row_for_each_number_and_side(runs: Path) -> None:
    status, text, _ = run_command("acme/latest", "zenith/latest", "--format", "csv")
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["side"] for row in rows] == ["acme", "zenith"] * 4
    assert {row["ratio"] for row in rows if row["side"] == "acme"} == {""}
    assert float(rows[1]["ratio"]) > 1.1
    assert list(rows[0]) == [
        *("check", "case", "environment", "partition", "num_nodes", "metric"),
        *("size_bytes", "size", "unit", "direction", "group", "weight"),
        *("side", "value", "n", "ratio", "lower", "upper", "mark", "note"),
    ]


def test_hostile_names_are_text(runs: Path) -> None:
    status, text, _ = run_command("[red]<script>=acme/latest", "zenith/latest")
    assert status == 0
    assert "[red]<script>" in text
    found = compare([side("=evil()"), side("b", seed=2)])
    assert "'=evil()" in as_csv(found)


def test_one_run_is_compared_by_its_stacks(runs: Path) -> None:
    cases, rows = vendor()
    both = cases + [replace(one, environment="mpich") for one in cases]
    more = rows + [replace(row, environment="mpich", value=row.value) for row in rows]
    close_vendor(runs, "lab", cases=both, rows=more)
    arguments = ("lab/latest@openmpi", "lab/latest@mpich", "--format", "json")
    status, text, _ = run_command(*arguments)
    assert status == 0
    found = json.loads(text)
    assert [each["name"] for each in found["sides"]] == ["lab@openmpi", "lab@mpich"]
    assert {each["ratios"][1]["value"] for each in found["numbers"]} == {1.0}
    assert found["winner"] is None


def test_criteria_bar_a_run_that_fails(runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "criteria.yaml"
    limits = CRITERIA.replace("ImbRing", "LammpsRhodo")
    file.write_text(limits.replace("bw_4MiB: 60 MB/s", "loop_time: 1 s"))
    arguments = ("acme/latest", "zenith/latest", "--criteria", str(file))
    status, text, _ = run_command(*arguments, "--format", "json")
    found = json.loads(text)
    assert status == 0
    assert [each["verdict"] for each in found["sides"]] == ["fail", "fail"]
    assert all(len(each["digest"]) == 64 for each in found["sides"])
    assert found["why"] == ["zenith cannot win: it fails the criteria"]


def test_weights_on_the_command_line_win_over_recorded_ones(
    runs: Path, tmp_path: Path
) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(WEIGHTS.replace("weight: 3", "weight: 2"))
    status, text, _ = run_command(
        "acme/latest", "zenith/latest", "--weights", str(file), "--format", "json"
    )
    found = json.loads(text)
    assert (status, found["winner"], found["frozen"]) == (0, None, False)
    assert found["weights"] == "other"


def test_runs_that_kept_different_weights_are_refused(runs: Path) -> None:
    text = WEIGHTS.replace("weight: 3", "weight: 2")
    close_vendor(runs, "other", kept={"system/weights.yaml": text})
    status, _, errors = run_command("acme/latest", "other/latest")
    assert status == 2
    assert f"the runs kept different weights, SHA-256: acme {SHA256}, other " in errors


def test_run_without_weights_is_compared_without(runs: Path) -> None:
    close_vendor(runs, "bare", kept={}, weights=None)
    status, text, _ = run_command("acme/latest", "bare/latest")
    assert status == 0
    assert "note: bare kept no weights, acme did: compared without;" in text


USAGE = [
    (["acme/latest"], "compare: expected at least two sides"),
    (["acme/latest", "acme/latest"], "two sides are called '20260101T000000Z-bakeoff'"),
    (["a=acme/latest", "a=zenith/latest"], "two sides are called 'a'"),
    (["acme/latest", "published:none"], "no published system 'none'; known ones: "),
    (["acme/latest", "none/latest"], "no closed run 'none/latest'"),
    (["acme/latest", "zenith/latest@x"], "has no environment 'x'; expected one of op"),
    (["acme/latest", "zenith/latest", "--price", "acme"], "expected NAME and a number"),
    (["acme/latest", "zenith/latest", "--price", "acme=0"], "expected NAME and a numb"),
    (["acme/latest", "zenith/latest", "--power", "acme=nan"], "expected NAME and a nu"),
    (["acme/latest", "zenith/latest", "--power", "x=3"], "--power: no side 'x'; expec"),
    (
        ["acme/latest", "zenith/latest", "--price", "acme=1", "--price", "acme=2"],
        "--price: acme is given twice; expected one number",
    ),
    (
        ["acme/latest", "zenith/latest", "--confidence", "5%"],
        "expected a share between 0.5 and 1",
    ),
    (
        ["acme/latest", "zenith/latest", "--confidence", "1"],
        "expected a share between 0.5 and 1",
    ),
    (["acme/latest", "zenith/latest", "--signers", "none"], "none: no such file; expe"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_usage_is_told(runs: Path, arguments: list[str], message: str) -> None:
    status, text, errors = run_command(*arguments)
    assert (status, text) == (2, "")
    assert message in errors


def test_unsealed_run_is_refused_where_a_seal_is_asked_for(
    runs: Path, tmp_path: Path
) -> None:
    signers = tmp_path / "allowed_signers"
    signers.write_text("")
    status, _, errors = run_command(
        "acme/latest", "zenith/latest", "--sealed", "--signers", str(signers)
    )
    assert status == 1
    assert errors.startswith("seatrial: acme: ")
    assert "acme/20260101T000000Z-bakeoff: not sealed; expected manifest.json.sig" in (
        errors
    )


def test_files_are_written(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("acme/latest", "zenith/latest", "--out", str(out))
    status, text, _ = run_command(*arguments)
    assert status == 0
    assert text.splitlines()[-1] == str(out / "compare.html")
    names = sorted(file.name for file in out.iterdir())
    assert names == ["compare.csv", "compare.html", "compare.json"]
    for form in ("csv", "json"):
        _, printed, _ = run_command("acme/latest", "zenith/latest", "--format", form)
        assert (out / f"compare.{form}").read_text() == printed
    assert "zenith" in (out / "compare.html").read_text()


@pytest.mark.parametrize(("who", "status"), [("alice", 0), ("mallory", 3)])
def test_sealed_runs_are_compared(
    runs: Path, tmp_path: Path, who: str, status: int
) -> None:
    alice = ssh_key(tmp_path / "keys", "alice").with_suffix(".pub").read_text()
    ssh_key(tmp_path / "keys", "mallory")
    (tmp_path / "signers").write_text(f"acceptance@example.org {alice}")
    for system in ("acme", "zenith"):
        seal(next((runs / system).iterdir()), tmp_path / "keys" / who)
    code, text, errors = run_command(
        *("acme/latest", "zenith/latest", "--sealed", "--format", "json"),
        *("--signers", str(tmp_path / "signers")),
    )
    assert code == status
    if status:
        assert "sealed with a key that" in errors
    else:
        signers = {each["signer"] for each in json.loads(text)["sides"]}
        assert signers == {"acceptance@example.org"}


def test_confidence_is_that_of_all_intervals(runs: Path) -> None:
    widths = []
    for share in ("80%", "0.99"):
        _, text, _ = run_command(
            *("acme/latest", "zenith/latest", "--confidence", share),
            *("--format", "json"),
        )
        found = json.loads(text)
        lead = found["lead"]
        widths.append(lead["upper"] / lead["lower"])
        assert found["confidence"] == float(share.rstrip("%")) / (
            100 if "%" in share else 1
        )
    assert widths[0] < widths[1]


def test_one_run_has_the_name_of_its_system(runs: Path) -> None:
    found = open_sides(
        ["acme/x", "other=acme/x"],
        lambda _: next((runs / "acme").iterdir()),
        published,
    )
    assert [each.side.name for each in found] == ["acme", "other"]
    assert isinstance(found[0].run, Run)
