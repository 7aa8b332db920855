"""Checks of a site: one file, and metrics of its own, all the way to the report."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fake_home import fake_program, write, write_home
from fake_jobs import slurm_jobs
from reframe_runs import HOME

from seatrial.campaign import session
from seatrial.campaign.session_command import Session, session_command
from seatrial.checks.sources import CheckVariable, files_of, own_metrics, variables_of
from seatrial.cli import main
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import Known
from seatrial.errors import SeatrialError
from seatrial.model.manifest import parse_manifest
from seatrial.model.metrics import Metric
from seatrial.paths import checks_dir
from seatrial.runs.closed_run import load_run

CRITERIA = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: d, clause: c}
criteria:
  - check: OceanModel
    model: every
    limits: {oceanmodel_rate: 1000 steps/s}
"""
AFTER_ECHO = """
    @run_after("init")
    def after_echo(self):
        self.depends_on("Echo_0")
"""
RATE = Metric("oceanmodel_rate", "steps/s", "higher", "time steps", area="programs")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return home_in(tmp_path, monkeypatch)


def home_in(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Write a home with the check that `seatrial new check` writes, and its program."""
    home = write_home(folder / "home", CRITERIA)
    patch.setenv("SEATRIAL_HOME", str(home))
    patch.setenv("SEATRIAL_RESULTS", str(folder / "results"))
    (home / "reports").symlink_to(HOME / "reports")
    slurm_jobs(home, folder, patch)
    fake_program(folder / "bin", "scontrol", "echo cn01; echo cn02")
    program(folder, "rate: 1234.5 steps/s")
    done = command("new", "check", "OceanModel")
    assert done.exit_code == 0, done.output
    return home


@dataclass(frozen=True)
class Good:
    """A folder with a home and a run; what that printed, and its ReFrame commands."""

    folder: Path
    result: Result
    commands: list[list[str]]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Good:
    """A run of the new check, which passed."""
    folder = tmp_path_factory.mktemp("good")
    commands: list[list[str]] = []

    def kept(each: Session) -> list[str]:
        commands.append(session_command(each))
        return commands[-1]

    with pytest.MonkeyPatch.context() as patch:
        home_in(folder, patch)
        patch.setattr(session, "session_command", kept)
        return Good(folder, run("good"), commands)


@pytest.fixture
def good(first: Good, monkeypatch: pytest.MonkeyPatch) -> Good:
    """Let the commands find that run."""
    monkeypatch.setenv("SEATRIAL_HOME", str(first.folder / "home"))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(first.folder / "results"))
    monkeypatch.setenv("PATH", f"{first.folder / 'bin'}:{os.environ['PATH']}")
    return first


def program(folder: Path, says: str) -> None:
    fake_program(folder / "bin", "oceanmodel", f"echo '{says}'")


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments])


def run(name: str, *options: str, repeats: int = 2) -> Result:
    campaign = ("--campaign", "oceanmodel", "--run-id", name, "--repeats", str(repeats))
    return command("run", "lab", *campaign, *options)


def source(home: Path) -> Path:
    return home / "reframe-checks" / "checks" / "site" / "oceanmodel.py"


def test_the_new_check_runs_and_is_judged_by_its_own_metric(
    good: Good, tmp_path: Path
) -> None:
    home = good.folder / "home"
    assert own_metrics(home / "reframe-checks" / "checks") == {RATE.name: RATE}
    assert good.result.exit_code == 0, good.result.output
    assert "PASS  lab" in good.result.output
    closed = load_run(good.folder / "results" / "lab" / "good")
    assert [case.result for case in closed.cases] == ["pass", "pass"]
    assert closed.metrics[RATE.name] == RATE
    columns = ["metric", "value", "unit", "direction"]
    rows = closed.measurements.select(columns).collect().rows()
    assert rows == [(RATE.name, 1234.5, "steps/s", "higher")] * 2
    (finding,) = findings("good")
    assert (finding["verdict"], finding["limit"]) == ("pass", 1000.0)
    more = tmp_path / "criteria.yaml"
    more.write_text(CRITERIA.replace("1000", "1300"))
    (finding,) = findings("good", "--criteria", str(more))
    assert finding["verdict"] == "fail"


def test_a_check_that_depends_on_another_finds_it(home: Path, tmp_path: Path) -> None:
    """Its session loads all checks."""
    with source(home).open("a") as file:
        file.write(AFTER_ECHO)
    assert files_of(checks_dir(home), {"OceanModel"}) == [checks_dir(home)]
    run("after", repeats=1)
    closed = load_run(tmp_path / "results" / "lab" / "after")
    assert {case.check: case.result for case in closed.cases} == {
        "Echo": "pass",
        "OceanModel": "pass",
    }


def test_a_session_loads_the_checks_that_it_runs_alone(good: Good) -> None:
    home = good.folder / "home"
    loaded = {
        word for words in good.commands for word in words if "--checkpath" in word
    }
    assert loaded == {f"--checkpath={source(home)}"}
    unknown = files_of(checks_dir(home), {"OceanModel", "MadeByAProgram"})
    assert unknown == [checks_dir(home)]


def findings(name: str, *options: str) -> list[Mapping[str, Any]]:
    judged = command("judge", f"lab/{name}", "--format", "json", *options)
    found = json.loads(judged.stdout)["findings"]
    return [each for each in found if each["metric"] == RATE.name]


def test_the_new_check_is_reported_compared_exported_planned_and_replayed(
    good: Good, tmp_path: Path
) -> None:
    out = tmp_path / "report"
    done = command("report", "lab/good", "--out", str(out))
    assert done.exit_code == 0, done.output
    page = (out / "report.html").read_text()
    assert "time steps" in page
    assert "OceanModel" in page
    compared = command("compare", "a=lab/good", "b=lab/good", "--format", "json")
    assert RATE.name in compared.stdout, compared.output
    exported = command("export", "lab/good", "--format", "openmetrics")
    assert 'unit="steps/s"' in exported.stdout or "steps_per_s" in exported.stdout
    planned = command("plan", "lab", "--campaign", "oceanmodel", "--format", "json")
    (check,) = json.loads(planned.stdout)["cost"]["checks"]
    assert check["check"] == "OceanModel"
    results = good.folder / "results" / "lab"
    program(good.folder, "nothing, as the recording counts")
    run("again", "--replay", str(results / "good"))
    replayed = load_run(results / "again")
    values = replayed.measurements.select("value").collect()["value"].to_list()
    assert values == [1234.5] * 2


def test_the_new_check_is_listed_with_its_metrics(home: Path) -> None:
    rmtree(home / "reframe-checks" / "checks" / "fake")
    listed = command("checks", "--format", "json")
    (entry,) = (e for e in json.loads(listed.stdout) if e["check"] == "OceanModel")
    assert entry["metrics"] == [
        {"name": RATE.name, "unit": "steps/s", "direction": "higher"}
    ]


def test_the_printed_criterion_is_valid(home: Path) -> None:
    done = command("new", "check", "RiverModel")
    lines = re.findall("^  #( .*[]:}\\w'])$", done.output, re.MULTILINE)
    entry = "\n".join(line for line in lines if "criteria.yaml" not in line)
    text = f"schema: 1\nrisks: {{seller: 0.05, buyer: 0.05}}\ncriteria:\n{entry}\n"
    file = home / "reference-data" / "lab" / "criteria.yaml"
    (criterion,) = Criteria.parse(text.encode(), file, Known.beside(file)).criteria
    assert criterion.name == "RiverModel rivermodel_rate (rivermodel)"
    assert not criterion.holds_in("acceptance")


def test_output_without_the_number_fails_the_case(home: Path, tmp_path: Path) -> None:
    program(tmp_path, "rate: 1 steps/s; rate: 2 steps/s")
    run("bad", repeats=1)
    closed = load_run(tmp_path / "results" / "lab" / "bad")
    assert {case.result for case in closed.cases} == {"fail"}
    assert "expected one line" in str(closed.cases[0].reason)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ocean", "no name of a check"),
        ("Ocean-Model", "no name"),
        ("Echo", "is a check"),
    ],
)
def test_a_name_that_is_none_or_taken_is_refused(
    home: Path, name: str, reason: str
) -> None:
    done = command("new", "check", name)
    assert done.exit_code == 2
    assert reason in done.output


def test_nothing_is_overwritten(home: Path) -> None:
    before = source(home).read_text()
    source(home).write_text("")
    done = command("new", "check", "OceanModel")
    assert done.exit_code == 2
    assert "exists, and nothing is overwritten" in done.output
    assert source(home).read_text() == ""
    assert before


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"higher"', '"more"', "direction 'more': expected higher, lower"),
        ('"oceanmodel_rate", "steps', '"latency", "steps', "is a metric of Seatrial"),
        (
            '"oceanmodel_rate", "steps',
            '"latency_8B", "steps',
            "is a metric of Seatrial",
        ),
        ('"oceanmodel_rate", "steps', '"my rate", "steps', "letters, digits and _"),
        ('"oceanmodel_rate", "steps', '7, "steps', "name 7: expected letters, digits"),
        ('"steps/s", "higher"', '"", "higher"', "unit ''"),
        ('area="programs"', 'area="ocean"', "area 'ocean'"),
        ('area="programs"', 'colour="blue"', "at most area and size, got Metric("),
        ('"higher", "time steps", area="programs"', "", "expected name, unit, direct"),
        ('"time steps"', "meaning", "expected a constant, got meaning"),
        ('Metric("', 'Number("', "expected a list such as"),
    ],
)
def test_a_metric_that_is_not_complete_is_refused_with_its_line(
    home: Path, old: str, new: str, reason: str
) -> None:
    file = source(home)
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(SeatrialError, match=re.escape(reason)) as error:
        own_metrics(file.parent)
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "Metric(" in row)
    assert f"{file}:{line}" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('descr = "', 'descr = x"', "invalid syntax"),
        ("def extract(self, text):", "def extract(self, text)", "expected ':'"),
        ("_RATE = ", "\0_RATE = ", "null bytes"),
    ],
)
def test_a_file_that_is_no_python_is_one_clear_error(
    home: Path, old: str, new: str, reason: str
) -> None:
    file = source(home)
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    refused = command("checks")
    assert refused.exit_code == 2
    assert len(refused.stderr.splitlines()) == 1
    assert f"{file}:" in refused.stderr
    assert reason in refused.stderr


def test_an_unknown_metric_names_the_nearest_one(home: Path) -> None:
    file = source(home)
    file.write_text(file.read_text().replace('judged = ["oceanm', 'judged = ["oceam'))
    refused = command("checks")
    assert refused.exit_code == 2
    assert "unknown metric 'oceamodel_rate'" in refused.stderr
    assert "did you mean 'oceanmodel_rate'?" in refused.stderr


def test_checks_that_disagree_on_a_metric_are_refused(home: Path) -> None:
    file = source(home)
    other = file.read_text().replace("OceanModel", "Ice").replace("steps/s", "m/s")
    file.with_name("ice.py").write_text(other)
    with pytest.raises(
        SeatrialError, match="declares metric oceanmodel_rate otherwise"
    ):
        own_metrics(file.parent)


def test_a_manifest_cannot_change_a_metric_of_seatrial(tmp_path: Path) -> None:
    own = vars(RATE) | {"name": "latency"}
    times = {"started": "2026-11-21T12:00:00+00:00"}
    manifest = {"schema": 2, "run": "r", "system": "s", "campaign": "c", "nodes": []}
    manifest |= times | {"ended": times["started"], "checksums": {}}
    parse_manifest(tmp_path / "r", json.dumps(manifest).encode())
    manifest["own_metrics"] = [own]
    with pytest.raises(SeatrialError, match="latency is a metric of Seatrial"):
        parse_manifest(tmp_path / "r", json.dumps(manifest).encode())


@pytest.mark.parametrize(
    ("declared", "default", "meaning"),
    [
        ("steps = variable(int, value=3)", "3", ""),
        ('steps: int = variable(int, value=3)\n    """Steps."""', "3", "Steps."),
        ("steps: int", None, ""),  # no value: no variable
    ],
)
def test_a_variable_may_have_a_type(
    declared: str, default: str | None, meaning: str, tmp_path: Path
) -> None:
    text = f"@rfm.simple_test\nclass Ocean:\n    {declared}\n"
    write(tmp_path / "ocean.py", text)
    expected = [CheckVariable("Ocean", "steps", default, meaning)] if default else []
    assert variables_of(tmp_path, "Ocean") == expected


def test_a_typed_override_and_typed_metrics_are_read(tmp_path: Path) -> None:
    text = """
class Base:
    steps: int = variable(int, value=3)

@rfm.simple_test
class Ocean(Base):
    steps: int = 5
    own_metrics: ClassVar[list[Metric]] = [
        Metric("ocean_rate", "steps/s", "higher", "time steps"),
    ]
"""
    write(tmp_path / "ocean.py", text)
    (variable,) = variables_of(tmp_path, "Ocean")
    assert variable == CheckVariable("Ocean", "steps", "5", "")
    assert own_metrics(tmp_path).keys() == {"ocean_rate"}
