"""Start-up: which heavy libraries a command's help does not import."""

import subprocess
import sys

import pytest

HEAVY = ("altair", "duckdb", "numpy", "polars", "reframe", "rich", "scipy")
PROGRAM = """
import sys
from seatrial.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    assert not end.code, end
print(*sorted({heavy!r} & set(sys.modules)), file=sys.stderr)
"""


def imported(*arguments: str) -> tuple[str, set[str]]:
    """Run a command in a process of its own; its output, and what it imported."""
    heavy = {*HEAVY, "scipy.stats", "scipy.special"}
    program = PROGRAM.format(arguments=list(arguments), heavy=heavy)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout, set(done.stderr.split())


def test_help_of_the_whole_imports_no_command() -> None:
    text, modules = imported("--help")
    assert "  judge       Judge a closed run by the criteria of its system." in text
    assert modules == set()


@pytest.mark.parametrize(
    "name", ["export", "judge", "pack", "report", "seal", "verify"]
)
def test_help_of_a_command_imports_nothing_heavy(name: str) -> None:
    assert imported(name, "--help")[1] == set()


@pytest.mark.parametrize("name", ["plan", "query", "run", "status", "trend"])
def test_help_of_the_other_commands_imports_no_statistics(name: str) -> None:
    modules = imported(name, "--help")[1]
    assert not modules & {"altair", "reframe", "scipy.stats", "scipy.special"}
