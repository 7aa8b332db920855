"""Start-up: the heavy libraries that help, completion and commands import."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from closed_runs import close_run
from fake_home import write_home

from seatrial.cli import main

RUN = "20260101T000000Z-smoke"
HEAVY = (
    "altair",
    "duckdb",
    "jinja2",
    "numpy",
    "polars",
    "reframe",
    "rich",
    "scipy",
    "yaml",
)
PROGRAM = """
import sys
from seatrial.cli import main
for arguments in {commands!r}:
    try:
        main(arguments, prog_name="seatrial")
    except SystemExit as end:
        assert end.code in (0, 1, 3), end
print(*sorted({heavy!r} & set(sys.modules)), file=sys.stderr)
"""
COMPLETE = {"_SEATRIAL_COMPLETE": "bash_complete", "COMP_CWORD": "2"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of the suite with one closed run."""
    home = write_home(tmp_path_factory.mktemp("home"))
    close_run(home / "results", RUN)
    return home


def imported(home: Path, *commands: str, **environment: str) -> tuple[str, set[str]]:
    """Run commands in a process of their own; return its output and its libraries."""
    given = [command.split() for command in commands]
    program = PROGRAM.format(commands=given, heavy={*HEAVY})
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "SEATRIAL_HOME": str(home), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.splitlines()[-1].split())


def test_help_of_the_whole_imports_no_command(tmp_path: Path) -> None:
    text, modules = imported(tmp_path, "--help")
    assert "  judge       Judge a closed run by the criteria of its system." in text
    assert modules == set()


def test_help_of_the_commands_imports_nothing_heavy(tmp_path: Path) -> None:
    """One process prints them all: what any help imports is still there at the end."""
    names = main.list_commands(click.Context(main))
    text, modules = imported(tmp_path, *(f"{name} --help" for name in names))
    assert modules == set()
    assert text.count("Usage: seatrial ") == len(names) > 20


@pytest.mark.parametrize(
    ("words", "proposed", "modules"),
    [
        ("seatrial judge", f"plain,{RUN}", set()),
        ("seatrial status", "plain,lab", {"yaml"}),
        ("seatrial query --campaign", "plain,smoke", {"yaml"}),
    ],
)
def test_completion_of_names_imports_little(
    home: Path, words: str, proposed: str, modules: set[str]
) -> None:
    count = {"COMP_WORDS": f"{words} ", "COMP_CWORD": str(len(words.split()))}
    text, found = imported(home, "", **COMPLETE | count)
    assert proposed in text.splitlines()
    assert found <= modules


@pytest.mark.parametrize(
    ("command", "modules"),
    [
        ("status lab", {"rich", "yaml"}),
        (f"judge {RUN} --format json", {"numpy", "polars", "rich", "scipy", "yaml"}),
        (f"query {RUN}", {"duckdb", "rich"}),
        (f"query {RUN} --format csv", {"duckdb"}),
    ],
)
def test_commands_import_what_they_use(
    home: Path, command: str, modules: set[str]
) -> None:
    assert imported(home, command)[1] == modules
