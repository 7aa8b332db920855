"""The cases and variables of every check, as ReFrame lists them."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seatrial.checks.job_mix import MIX_VARIABLE
from seatrial.checks.sources import known_checks
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.paths import references_dir
from seatrial.system.slurm import HIDDEN_TOO

_CASE = re.compile(r"- (?P<case>.+) /[0-9a-f]{8} @(?P<partition>\S+?)\+(?P<env>\S+)")
_BROKEN = re.compile(
    r"WARNING: (skipping test .*(?:\n\|.*)*|check path .* does not exist"
    r"|.* is not copyable)"
)
_UNSET = re.compile(r"WARNING: test '(\w+)': .* variables were not set: (.+)")
_REFUSED = re.compile(r"ERROR: run session stopped: (?:type|value) error: (.*)")
PACK_LONGEST_S = "SEATRIAL_PACK_S"
"""Environment variable: longest time limit in seconds of a job that cases share."""
PACK_MOST_JOBS = "SEATRIAL_PACK_JOBS"
"""Environment variable: number of such jobs in the queue at a time."""

UNDEFINED = "<undefined>"
"""ReFrame's text for a variable without a value."""

_NOWHERE = """\
{"systems": [{"name": "nowhere", "hostnames": [".*"], "partitions": [
    {"name": "any", "scheduler": "local", "launcher": "local", "environs": ["any"],
     "processor": {"num_cpus": 1}}]}],
 "environments": [{"name": "any"}]}
"""


def reframe_command(settings: Path, system: str, *checks: Path) -> list[str]:
    """Return the common part of ReFrame's command line.

    `checks`: files of checks, or folders with such files at any depth.
    """
    beside = Path(sys.executable).parent / "reframe"
    program = str(beside) if beside.exists() else shutil.which("reframe")
    if program is None:
        raise SeatrialError(
            "reframe is not installed beside this Python or on PATH; expected "
            "ReFrame of at least 4.10; run `pip install -r requirements.txt`"
        )
    common = ["--nocolor", "-C", str(settings), "--system", system]
    return [program, *common, *(f"--checkpath={path}" for path in checks), "-R"]


def reframe_environment(home: Path, system: str) -> dict[str, str]:
    """Return the environment of ReFrame, without the user's own settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RFM_")}
    references = {"RFM_REFERENCE_PREFIX": str(references_dir(home, system))}
    return {**kept, **references, **HIDDEN_TOO, "SEATRIAL_HOME": str(home)}


def pack_environment(longest_s: float, most_jobs: int) -> dict[str, str]:
    """Return the variables by which ReFrame lets cases share jobs of Slurm."""
    return {PACK_LONGEST_S: f"{longest_s:g}", PACK_MOST_JOBS: str(most_jobs)}


def mix_environment(mix: str) -> dict[str, str]:
    """Return the variable with the jobs of a stability phase; nothing without any."""
    return {MIX_VARIABLE: mix} if mix else {}


def list_cases(
    settings: Path, system: str, checks: Path, home: Path, mix: str = ""
) -> tuple[ListedCase, ...]:
    """List all cases that ReFrame generates for a system.

    `mix`: the jobs of a stability phase, as in the variable `MIX_VARIABLE`.

    Raises SeatrialError if ReFrame fails, or if it skips a check that it cannot load
    (for ReFrame that is only a warning).
    """
    text = _reframe(settings, system, checks, home, ["-lC"], mix)
    matches = (_CASE.fullmatch(line.rstrip()) for line in text.splitlines())
    return tuple(ListedCase(m["case"], m["partition"], m["env"]) for m in matches if m)


def describe_checks(checks: Path, home: Path, mix: str = "") -> list[dict[str, Any]]:
    """Return the variables of every check, once per choice of its parameters.

    `mix`: the jobs of a stability phase, as in `list_cases`. No system is needed. Names
    that begin with @ are ReFrame's own; a variable that is not set is `UNDEFINED`.
    Raises SeatrialError as `list_cases` does.
    """
    known = known_checks(checks)
    _nowhere(checks, home, ["-lT"])  # warns, if need be
    text = _nowhere(checks, home, ["--describe"], mix)
    described: list[dict[str, Any]]
    try:
        described, _ = json.JSONDecoder().raw_decode(text, text.find("\n[\n") + 1)
    except ValueError as error:
        raise SeatrialError(f"ReFrame cannot describe its checks: {error}") from error
    missing = known - {check["@class"] for check in described}
    if missing:
        raise SeatrialError(f"ReFrame does not describe {', '.join(sorted(missing))}")
    return described


def unset_variables(
    checks: Path, home: Path, variables: Mapping[str, object]
) -> dict[str, list[str]]:
    """Return the variables, by check, that ReFrame's -S would not set.

    Raises SeatrialError if it refuses a value, and as `list_cases` does.
    """
    text = _nowhere(checks, home, ["-lT", *setvar_options(variables)])
    return {
        check: re.findall("'(.+?)'", names) for check, names in _UNSET.findall(text)
    }


def setvar_options(variables: Mapping[str, object]) -> list[str]:
    """Return ReFrame's options for variables."""
    return [f"--setvar={name}={value}" for name, value in variables.items()]


def _nowhere(checks: Path, home: Path, options: list[str], mix: str = "") -> str:
    """Run ReFrame without a system, for all checks."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "settings.json")
        settings.write_text(_NOWHERE, encoding="utf-8")
        anywhere = ["--skip-system-check", "--skip-prgenv-check"]
        return _reframe(settings, "nowhere", checks, home, anywhere + options, mix)


def _reframe(
    settings: Path,
    system: str,
    checks: Path,
    home: Path,
    options: list[str],
    mix: str = "",
) -> str:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            reframe_command(settings, system, checks) + options,
            cwd=folder,
            # Its debug log, which it never removes, goes with the folder.
            env={
                **reframe_environment(home, system),
                **mix_environment(mix),
                "TMPDIR": folder,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    broken = [m[1].replace("\n", "\n  ") for m in _BROKEN.finditer(done.stdout)]
    if broken:
        title = f"ReFrame cannot load every check below {checks}; fix these checks:"
        raise SeatrialError("\n  ".join([title, *broken]))
    if refused := _REFUSED.search(done.stdout):
        raise SeatrialError(f"ReFrame cannot list its checks: {refused[1]}")
    if done.returncode:
        tail = "\n  ".join(done.stdout.strip().splitlines()[-10:])
        raise SeatrialError(f"ReFrame cannot list its checks:\n  {tail}")
    return done.stdout
