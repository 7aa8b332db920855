"""Start-up: the heavy libraries that help, completion and commands import."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from fake_home import write_home

from seatrial.cli import main

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
try:
    main({arguments!r}, prog_name="seatrial")
except SystemExit as end:
    assert end.code in (0, 1), end
print(*sorted({heavy!r} & set(sys.modules)), file=sys.stderr)
"""
COMPLETE = {"_SEATRIAL_COMPLETE": "bash_complete", "COMP_CWORD": "2"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of the suite with one closed run, r1."""
    home = write_home(tmp_path_factory.mktemp("home"))
    imported(home, "run", "lab", "--campaign", "high", "--run-id", "r1")
    return home


def imported(home: Path, *arguments: str, **environment: str) -> tuple[str, set[str]]:
    """Run a command in a process of its own; return its output and its libraries."""
    program = PROGRAM.format(arguments=list(arguments), heavy={*HEAVY})
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


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_help_of_a_command_imports_nothing_heavy(tmp_path: Path, name: str) -> None:
    assert imported(tmp_path, name, "--help")[1] == set()


@pytest.mark.parametrize(
    ("words", "proposed", "modules"),
    [
        ("seatrial judge", "plain,r1", set()),
        ("seatrial status", "plain,lab", {"yaml"}),
        ("seatrial query --campaign", "plain,smoke", {"yaml"}),
    ],
)
def test_completion_of_names_imports_little(
    home: Path, words: str, proposed: str, modules: set[str]
) -> None:
    count = {"COMP_WORDS": f"{words} ", "COMP_CWORD": str(len(words.split()))}
    text, found = imported(home, **COMPLETE | count)
    assert proposed in text.splitlines()
    assert found <= modules


@pytest.mark.parametrize(
    ("command", "modules"),
    [
        ("status lab", {"rich", "yaml"}),
        ("judge r1 --format json", {"numpy", "polars", "rich", "scipy", "yaml"}),
        ("query r1", {"duckdb", "rich"}),
        ("query r1 --format csv", {"duckdb"}),
    ],
)
def test_commands_import_what_they_use(
    home: Path, command: str, modules: set[str]
) -> None:
    assert imported(home, *command.split())[1] == modules
