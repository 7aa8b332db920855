"""Start a program again if its MPI library crashed at start; record each crash.

    python -m seatrial.checks.mpi_start NAME --output-from BYTES --errors FILE

The shell of a job runs this after a program failed. Exit status 0: the program crashed
at start and a try is left. parsers/mpi_start.py judges standard output and error.
Standard output must be a file, as in a job: a pipe cannot be read again.

Every crash is a line of mpi_start.jsonl in the folder of the job, with the text of
standard error.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.parsers.mpi_start import TRIES, StartCrash, crash_at_start, mark
from seatrial.paths import home, suite_python

FILE = "mpi_start.jsonl"
"""The crashes of a job, in its folder."""

SCRIPT = "start.sh"
"""Starts the program in its arguments; a script that sources it has its functions."""

_MOST_ERRORS = 1 << 16
"""Characters of standard error that are recorded of a crash."""

_STDOUT = "/proc/self/fd/1"
_SHELL = r"""# Written by Seatrial.
# `bash start.sh PROGRAM..` starts a program, again if its MPI library crashed at start.

size() { stat -Lc %s "/proc/$$/fd/$1"; }

# crashed_at_start NAME BYTES FILE: true if a failed program is to be started again;
# its standard output begins after BYTES, its standard error is in FILE.
crashed_at_start() {
    COMMAND "$1" --output-from "$2" --errors "$3" "${@:4}"
}

[[ ${BASH_SOURCE[0]} == "$0" ]] || return 0
while true; do
    printed=$(size 1) errors=$(size 2)
    "$@" && exit
    status=$?
    crashed_at_start program "$printed" "/proc/$$/fd/2" --errors-from "$errors" ||
        exit "$status"
done
"""


def write_script(folder: Path, preamble: str, results: str) -> None:
    """Write `SCRIPT` for the programs of a job.

    `preamble` matches their lines before the first timed loop; `results` is the file
    for their numbers, '' for standard output.
    """
    command = [suite_python(home()), "-I", "-m", "seatrial.checks.mpi_start"]
    command += ["--preamble", preamble, *(["--results", results] if results else [])]
    text = _SHELL.replace("COMMAND", shlex.join(command))
    (folder / SCRIPT).write_text(text, encoding="utf-8")


def record(folder: Path, name: str, attempt: int, crash: StartCrash, text: str) -> bool:
    """Record the crash of try `attempt`; return True if the program has a try left."""
    row = {"step": name, "try": attempt, **vars(crash), "errors": text[-_MOST_ERRORS:]}
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return attempt < TRIES


def recorded(folder: Path) -> tuple[dict[str, Any], ...]:
    """Return the crashes of a job, without texts; damaged lines are skipped.

    The job may have been ended while it wrote the last one.
    """
    file = folder / FILE
    lines = file.read_text(errors="replace").splitlines() if file.is_file() else []
    return tuple(filter(None, map(_row, lines)))


def main(arguments: Sequence[str]) -> int:
    """Check a failed program; return 0 to start it again, else 1."""
    parser = argparse.ArgumentParser(prog="seatrial.checks.mpi_start")
    parser.add_argument("name")
    parser.add_argument("--output-from", type=int, required=True)
    parser.add_argument("--errors", type=Path, required=True)
    parser.add_argument("--errors-from", type=int, default=0)
    parser.add_argument("--preamble", default="")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args(arguments)
    results = options.results and options.results.exists()
    if not Path(_STDOUT).is_file() or (results and options.results.stat().st_size):
        return 1
    printed = _read(Path(_STDOUT), options.output_from)
    errors = _read(options.errors, options.errors_from)
    crash = crash_at_start(errors, printed, options.preamble)
    if crash is None:
        return 1
    folder = Path.cwd()
    attempt = 1 + sum(row["step"] == options.name for row in recorded(folder))
    is_left = record(folder, options.name, attempt, crash, errors)
    sys.stdout.write(mark(options.name, attempt, printed))
    return 0 if is_left else 1


def _row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
        texts = {key: str(row[key]) for key in ("step", "reason", "ranks")}
        nodes = {key: [str(node) for node in row[key]] for key in ("dead", "nodes")}
        return {**texts, "try": int(row["try"]), **nodes}
    except (ValueError, TypeError, KeyError):
        return None


def _read(file: Path, start: int) -> str:
    with file.open("rb") as stream:
        stream.seek(start)
        return stream.read().decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
