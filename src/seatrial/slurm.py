"""The few questions the driver asks Slurm: nodes, controller, jobs."""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from seatrial.errors import SeatrialError

_USABLE = {
    "allocated",
    "blocked",
    "completing",
    "idle",
    "maint",
    "mixed",
    "planned",
    "powering_up",
    "reserved",
}
_DEATH = re.compile(r"srun: error: (Node failure on .*|\S+: tasks? [0-9,-]+: .*)")
_ENDED_WITH_IT = ("Killed", "Terminated")
_SUFFIXES = "*~#!%$@^+-"
_TIMEOUT_S = 60


@dataclass(frozen=True)
class SlurmNode:
    """A node as `sinfo` prints it: long state with its suffix, and the reason."""

    state: str
    reason: str


@dataclass(frozen=True)
class JobEnd:
    """How a job ended: Slurm's state, and whether it ever started."""

    state: str
    started: bool


def node_states() -> dict[str, SlurmNode]:
    """Ask Slurm for the state of every node; SeatrialError if it does not answer."""
    try:
        done = _run(["sinfo", "-N", "-h", "-o", "%N|%T|%E"])
        problem = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError:
        problem = "sinfo is not installed here"
    except subprocess.TimeoutExpired:
        problem = f"no answer within {_TIMEOUT_S} s"
    if problem:
        raise SeatrialError(
            f"Slurm does not answer: {problem}; expected the state of the nodes; "
            "check `scontrol ping` and slurmctld on the controller, then run again"
        )
    nodes = {}
    for line in done.stdout.splitlines():
        name, state, reason = line.split("|", 2)
        nodes[name] = SlurmNode(state, reason)
    return nodes


def first_death(lines: Iterable[str]) -> str | None:
    """Give srun's line on the first task or node that died, of its standard error.

    Tasks that srun ended because of another come after it, if there is one.
    """
    deaths = [found[1] for found in map(_DEATH.match, lines) if found]
    causes = (death for death in deaths if not death.endswith(_ENDED_WITH_IT))
    return next(causes, deaths[0] if deaths else None)


def availability(node: SlurmNode | None) -> tuple[bool, str]:
    """Tell whether a job can run on a node, and if not, why."""
    if node is None:
        return False, "unknown to Slurm"
    state = node.state.rstrip(_SUFFIXES)
    suffix = node.state[len(state) :]
    reason = "" if node.reason in ("", "none") else f" ({node.reason})"
    if "*" in suffix:
        return False, f"{state}, not responding{reason}"
    if state in _USABLE:
        return True, ""
    return False, f"{state}{reason}"


def pending_reasons(comment: str) -> dict[str, str] | None:
    """Ask why our pending jobs wait, by job id; None if slurmctld does not answer.

    `comment` is how the comment of the jobs begins. Once such a job is cancelled,
    Slurm forgets the reason.
    """
    try:
        done = _run(["squeue", "--me", "-h", "-t", "PD", "-o", "%i|%k|%r"])
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    rows = (line.split("|", 2) for line in done.stdout.splitlines())
    return {row[0]: row[2] for row in rows if row[1].startswith(comment)}


def job_end(job_id: str) -> JobEnd | None:
    """Ask the accounting how a job ended; None if it cannot say."""
    try:
        done = _run(["sacct", "-X", "-n", "-P", "-j", job_id, "-o", "State,Start"])
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return None
    state, _, start = lines[-1].partition("|")
    return JobEnd(state, start not in ("", "None", "Unknown"))


def cancel(comment: str) -> list[str]:
    """Cancel our own jobs whose comment begins so; give their ids."""
    try:
        done = _run(["squeue", "--me", "-h", "-o", "%i|%k"])
        jobs = [
            job_id
            for job_id, _, text in (
                line.partition("|") for line in done.stdout.splitlines()
            )
            if text.startswith(comment)
        ]
        if jobs:
            _run(["scancel", *jobs])
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return []
    return jobs


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
