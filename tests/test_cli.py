"""The command line: help, exit codes, errors as text."""

import csv
import io
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from fake_home import TOLERANT, write, write_home

from seatrial.cli import main

OURS = (
    *("run", "judge", "report", "checks", "build"),
    *("verify", "seal", "query", "export", "status"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_home(tmp_path_factory.mktemp("home"), TOLERANT)


@pytest.fixture(autouse=True)
def use_home(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))


def seatrial(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def commands() -> list[str]:
    return main.list_commands(click.Context(main))


def test_every_module_is_a_command() -> None:
    assert {"judge", "lab", "report", "run"} <= set(commands())
    assert not [name for name in commands() if name.startswith("_")]


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = seatrial(name, "--help")
    assert result.exit_code == 0
    assert f"Example: seatrial {name}" in " ".join(result.stdout.split())


@pytest.mark.parametrize("name", OURS)
def test_help_tells_the_exit_status(name: str) -> None:
    assert "Exit status: 0" in " ".join(seatrial(name, "--help").stdout.split())


def test_help_of_the_whole() -> None:
    text = seatrial("--help").stdout
    for name in commands():
        assert f"  {name} " in text
    assert "0 pass, 1 acceptance failed, 2 usage or environment, 3 undecided" in text


@pytest.fixture(scope="module")
def judged(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Output of the campaign `high`, which fails."""
    environment = {
        "SEATRIAL_HOME": str(home),
        "SEATRIAL_RESULTS": str(tmp_path_factory.mktemp("judged") / "results"),
    }
    arguments = ["run", "lab", "--campaign", "high", "--run-id", "r1", "--repeats", "2"]
    return CliRunner(env=environment).invoke(main, arguments)


@pytest.fixture(scope="module")
def unjudged(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Result]:
    """The results of a run of `high` that was not judged, and what it printed."""
    results = tmp_path_factory.mktemp("unjudged") / "results"
    environment = {"SEATRIAL_HOME": str(home), "SEATRIAL_RESULTS": str(results)}
    arguments = ["run", "lab", "--campaign", "high", "--run-id", "r1", "--no-judge"]
    return results, CliRunner(env=environment).invoke(main, arguments)


@pytest.fixture
def high(unjudged: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands find that run."""
    monkeypatch.setenv("SEATRIAL_RESULTS", str(unjudged[0]))


def test_run_that_passes_ends_with_the_verdict() -> None:
    arguments = ("--campaign", "smoke", "--run-id", "r1", "--repeats", "2")
    check_end(seatrial("run", "lab", *arguments), "smoke", 0, "PASS")


def test_run_that_fails_ends_with_the_verdict(judged: Result) -> None:
    check_end(judged, "high", 1, "FAIL")


def check_end(result: Result, campaign: str, status: int, verdict: str) -> None:
    assert result.exit_code == status, result.output
    assert f"{verdict}  lab, campaign {campaign}: " in result.stdout
    assert "results/lab/r1" in result.stdout


def test_failing_findings_show_value_and_limit(judged: Result) -> None:
    text = judged.stdout
    assert "30 us" in text
    assert "≤ 10 us" in text
    assert "failing nodes: cn01, cn02" in text


def test_too_few_repeats_are_undecided() -> None:
    result = seatrial("run", "lab", "--campaign", "smoke")
    assert result.exit_code == 3
    assert "UNDECIDED" in result.stdout
    assert "1 allocation; it takes at least 2" in result.stdout


def test_run_without_judging(unjudged: tuple[Path, Result]) -> None:
    _, result = unjudged
    assert result.exit_code == 0
    assert "FAIL  " not in result.stdout


def test_only_some_checks() -> None:
    result = seatrial("run", "lab", "--campaign", "two", "--checks", "Gpu")
    assert result.exit_code == 3
    assert "2 skipped" in result.stdout
    judged = json.loads(seatrial("judge", "latest", "--format", "json").stdout)
    found = [(f["check"], f["verdict"], f["reason"]) for f in judged["findings"]]
    assert {check for check, *_ in found} == {"", "Gpu", "Echo"}
    assert [each for each in found if each[0] == "Echo"] == [
        ("Echo", "skipped", "not measured: campaign two does not run Echo")
    ]
    table = seatrial("judge", "latest").stdout
    assert "does not run Echo" not in table
    assert "criteria of checks that this campaign does not run: 1" in table
    assert "Gpu" in table, "it was to run, and was skipped"


@pytest.mark.usefixtures("high")
def test_judge_in_every_format() -> None:
    table = seatrial("judge", "lab/latest")
    assert table.exit_code == 1
    assert "FAIL  lab, campaign high" in table.stdout
    whole = seatrial("judge", "r1", "--format", "json")
    assert whole.exit_code == 1
    judgement = json.loads(whole.stdout)
    assert (judgement["run"], judgement["verdict"]) == ("r1", "fail")
    assert judgement["convicted"] == ["cn01", "cn02"]
    rows = list(
        csv.DictReader(io.StringIO(seatrial("judge", "r1", "--format", "csv").stdout))
    )
    assert [row["verdict"] for row in rows] == [
        finding["verdict"] for finding in judgement["findings"]
    ]
    assert {row["metric"] for row in rows} == {"", "latency_8B"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("run", "lba", "--campaign", "smoke"),
            "unknown system 'lba'; known systems: lab",
        ),
        (
            ("run", "lab", "--campaign", "smokey"),
            "unknown campaign 'smokey'; known campaigns: ",
        ),
        (
            ("run", "lab", "--campaign", "smoke", "--run-id", "../x"),
            "--run-id: '../x' is no name; expected letters",
        ),
        (
            ("run", "lab", "--campaign", "smoke", "--checks", "Nope"),
            "campaign 'smoke' has no check Nope; its checks: Echo",
        ),
        (("run", "lab"), "expected --campaign NAME, or --resume; known campaigns: "),
        (
            ("run", "lab", "--resume", "--run-id", "nosuch"),
            "no open run 'nosuch' of system 'lab' below ",
        ),
        (("judge", "nope"), "no closed run 'nope'"),
        (("report", "nope"), "no closed run 'nope'"),
        (("nope",), "No such command 'nope'"),
    ],
)
def test_mistake_is_text_on_stderr(arguments: tuple[str, ...], expected: str) -> None:
    result = seatrial(*arguments)
    assert result.exit_code == 2
    assert expected in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_broken_criterion_is_found_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write_home(tmp_path / "home")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    file = home / "reference-data" / "lab" / "criteria.yaml"
    write(file, file.read_text().replace("10 us", "ten us"))
    result = seatrial("run", "lab", "--campaign", "smoke")
    assert result.exit_code == 2
    assert "criteria.yaml:8: criteria[0].limits.latency_8B: expected" in result.stderr
    assert "got 'ten us'" in result.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("high")
def test_report_writes_and_exits_0_whatever_the_verdict(tmp_path: Path) -> None:
    repository = Path(__file__).resolve().parents[1]
    home = write_home(tmp_path / "home")
    (home / "reports").symlink_to(repository / "reports")
    out = tmp_path / "out"
    command = ["report", "lab/latest", "--out", str(out)]
    result = CliRunner(env={"SEATRIAL_HOME": str(home)}).invoke(main, command)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "verdict: fail",
        *(
            str(out / name)
            for name in (
                *("report.html", "report.pdf", "summary.md"),
                *("findings.csv", "criteria.csv", "junit.xml"),
            )
        ),
    ]
    assert (out / "report.html").stat().st_size > 1000


@pytest.mark.usefixtures("high")
def test_report_in_chosen_forms_by_other_criteria(home: Path, tmp_path: Path) -> None:
    theirs = home / "reference-data" / "lab" / "criteria.yaml"
    mine = tmp_path / "mine.yaml"
    mine.write_text(theirs.read_text().replace("10 us", "10000000 us"))
    out = tmp_path / "out"
    options = ["--form", "csv", "--form", "md", "--criteria", str(mine)]
    result = seatrial("report", "r1", "--out", str(out), *options)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1:] == [
        str(out / name) for name in ("summary.md", "findings.csv", "criteria.csv")
    ]
    rows = list(csv.DictReader((out / "criteria.csv").open()))
    assert {row["limit"] for row in rows if row["limit"]} == {"10000000"}
    assert rows[0]["unit"] == "us"
