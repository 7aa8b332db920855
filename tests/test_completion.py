"""Shell completion: names of commands, systems, runs and campaigns."""

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from fake_home import write, write_home

from seatrial.cli import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(write_home(tmp_path / "home")))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    write(
        tmp_path / "results" / "acme" / "20260101T000000Z-smoke" / "manifest.json", ""
    )


def complete(line: str) -> list[str]:
    """Complete the last word of a command line."""
    *words, incomplete = line.split(" ")
    shell = ShellComplete(main, {}, "seatrial", "_SEATRIAL_COMPLETE")
    return [item.value for item in shell.get_completions(words, incomplete)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ju", ["judge"]),
        ("run l", ["lab"]),
        ("run lab --campaign s", ["slow", "smoke"]),
        ("plan lab --campaign h", ["high"]),
        ("status ", ["acme", "lab"]),
        ("judge 2026", ["20260101T000000Z-smoke"]),
        ("judge a", ["acme/latest"]),
        ("query --system a", ["acme"]),
        ("trend acme --campaign tw", ["two"]),
    ],
)
def test_names_complete(line: str, expected: list[str]) -> None:
    assert complete(line) == expected


def test_file_of_a_packed_run_completes_as_a_file() -> None:
    shell = ShellComplete(main, {}, "seatrial", "_SEATRIAL_COMPLETE")
    (item,) = shell.get_completions(["judge"], "offer")
    assert item.type == "file"
