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
_TASK = re.compile(r"(TASK|RUNNING HANDLER) \[")
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
    """Return a sentence for each failed task of a log and each host that it failed on.

    Of a failed command, the sentence is its last line of errors, else of output.
    Ignored failures are left out. Without any, return the lines that look like errors,
    else the last ones.
    """
    found: list[tuple[str, str]] = []  # host and sentence
    error, is_open, earlier = "", False, 0
    for number, line in enumerate(lines):
        if _TASK.match(line):
            error, is_open, earlier = "", False, len(found)
        elif match := _ERROR.match(line):
            error, is_open = match[1], True
            found.append(("", error))
        elif error and (match := _HOST.match(line)):
            # If several hosts have an error, it is printed once, before the first.
            if is_open:
                found.pop()
            found.append((match[1], _sentence(match[1], error, lines[number + 1 :])))
            is_open = False
        elif line == "...ignoring":
            ignored = {host for host, _ in found[-1:]}
            task = found[earlier:]
            found[earlier:] = [each for each in task if each[0] not in ignored]
    sentences = list(dict.fromkeys(sentence for _, sentence in found))
    return sentences or [ln for ln in lines if _TROUBLE.match(ln)] or lines[-5:]


def _sentence(host: str, error: str, result: list[str]) -> str:
    """Return the error of a host, whose result is on top of these lines."""
    if error == _COMMAND_FAILED:
        error = _last_words(result) or error
    if host == "localhost" or error.startswith(f"{host}:"):
        return error
    return f"{host}: {error}"


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
