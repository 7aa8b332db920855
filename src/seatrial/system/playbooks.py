"""Run the project's playbooks; their output goes to a log file."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

from seatrial.errors import SeatrialError

_ERROR = re.compile(
    r"^\[ERROR\]: (?:Task failed: )?(?:(?:Action|Module) failed: )?(.*)"
)
_HOST = re.compile(r"^(?:fatal|failed): \[([^] ]+)")
_TROUBLE = re.compile(r"^(fatal|failed|ERROR!)")
_KEY = re.compile(r"^ {4}(\w+): ?(.*)")
_COMMAND_FAILED = "non-zero return code"
_RECAP = re.compile(r"\bchanged=(\d+)")


def playbook(home: Path, system: str, name: str, log: Path, *options: str) -> int:
    """Run `playbooks/NAME.yml` on a system; return the number of changes.

    `home` is the checkout; all output goes to `log`. SeatrialError quotes the lines of
    the failed tasks and names the log.
    """
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        f"inventories/{system}",
        f"playbooks/{name}.yml",
        *options,
    ]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        done = subprocess.run(
            command,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    lines = log.read_text().splitlines()
    if done.returncode != 0:
        trouble = problems(lines)
        raise SeatrialError(
            f"playbooks/{name}.yml failed on system {system}:\n"
            + "\n".join(trouble[:10])
            + f"\nfull output: {log}"
        )
    return sum(map(int, _RECAP.findall("\n".join(lines[-200:]))))


def problems(lines: list[str]) -> list[str]:
    """Return a sentence for each failed task of a log, with its host.

    Of a failed command, the sentence is its last line of errors, else of output.
    Ignored failures are left out. Without any, return the lines that look like errors,
    else the last ones.
    """
    sentences: list[str] = []
    is_open = False
    for number, line in enumerate(lines):
        if error := _ERROR.match(line):
            sentences.append(error[1])
            is_open = True
        elif is_open and (host := _HOST.match(line)):
            if sentences[-1] == _COMMAND_FAILED:
                sentences[-1] = _last_words(lines[number + 1 :]) or _COMMAND_FAILED
            if host[1] != "localhost" and not sentences[-1].startswith(f"{host[1]}:"):
                sentences[-1] = f"{host[1]}: {sentences[-1]}"
            is_open = False
        elif line == "...ignoring" and sentences:
            sentences.pop()
    return sentences or [ln for ln in lines if _TROUBLE.match(ln)] or lines[-5:]


def _last_words(lines: list[str]) -> str:
    """Return the last line of `stderr`, else of `stdout`, of the result on top."""
    last = {"stderr": "", "stdout": ""}
    key = ""
    for line in itertools.takewhile(lambda line: line.startswith(" " * 4), lines):
        if begin := _KEY.match(line):
            key, line = begin.groups()
            line = "" if line == "|-" else line.strip("'\"")
        if key in last and line.strip():
            last[key] = line.strip()
    return last["stderr"] or last["stdout"]
