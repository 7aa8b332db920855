"""The few questions the driver asks Slurm: nodes, controller, jobs."""

import subprocess
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
_SUFFIXES = "*~#!%$@^+-"
_TIMEOUT_S = 60


@dataclass(frozen=True)
class SlurmNode:
    """A node as `sinfo` prints it: long state with its suffix, and the reason."""

    state: str
    reason: str


@dataclass(frozen=True)
class JobEnd:
    """How a job ended: Slurm's state, whether it ever started, and Slurm's reason."""

    state: str
    started: bool
    reason: str


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


def controller_answers() -> bool:
    """Tell whether slurmctld answers now."""
    try:
        return _run(["scontrol", "ping"]).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def job_end(job_id: str) -> JobEnd | None:
    """Ask the accounting how a job ended; None if it cannot say."""
    fields = "State,Start,Reason"
    try:
        done = _run(["sacct", "-X", "-n", "-P", "-j", job_id, "-o", fields])
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return None
    state, start, reason = lines[-1].split("|", 2)
    started = start not in ("", "None", "Unknown")
    return JobEnd(state, started, "" if reason == "None" else reason)


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
