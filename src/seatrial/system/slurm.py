"""The few questions the driver asks Slurm: nodes, controller, jobs."""

import os
import re
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
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
_GONE_S = 300.0
_CLOCKS_DIFFER_S = 5.0
_UNFINISHED = ("PENDING", "RUNNING")
_LOOK_S = 1.0


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


@dataclass(frozen=True)
class Job:
    """A job in the queue: Slurm's state, its nodes if it runs, why it waits if not.

    `folder` is where its script was submitted.
    """

    job_id: str
    state: str
    comment: str
    nodes: str
    reason: str
    folder: str


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
    """Return srun's line on what died first, of its standard error; None if none did.

    A node that failed comes before any task, a task before those that srun ended
    because of it.
    """
    deaths = [found[1] for found in map(_DEATH.match, lines) if found]
    nodes = [death for death in deaths if death.startswith("Node failure")]
    causes = [death for death in deaths if not death.endswith(_ENDED_WITH_IT)]
    return next(iter((*nodes, *causes, *deaths)), None)


def availability(node: SlurmNode | None) -> tuple[bool, str]:
    """Return whether a job can run on a node, and if not, why."""
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


def jobs(comment: str, user: int | None) -> list[Job] | None:
    """List the jobs of a user (uid; None: of all) whose comment begins so.

    None if slurmctld does not answer; none where there is no Slurm.
    """
    form = "%i|%T|%k|%N|%r|%Z"
    try:
        whose = [] if user is None else ["-u", str(user)]
        done = _run(["squeue", "-h", *whose, "-o", form])
    except FileNotFoundError:
        return []
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    found = []
    for line in done.stdout.splitlines():
        job_id, state, text, nodes, reason, folder = line.split("|", 5)
        if text.startswith(comment):
            found.append(Job(job_id, state, text, nodes, reason, folder))
    return found


def lost_jobs(comment: str, since: float) -> list[str] | None:
    """Return what Slurm knows of our lost jobs: None if none is lost, or unknown.

    They are, if its controller knows none whose comment begins so. Those of which its
    accounting believes that they go on, submitted `since` then (UTC seconds), are
    named; it may never have heard of them.
    """
    known = jobs("", os.getuid())
    if known is None or any(job.comment.startswith(comment) for job in known):
        return None
    moment = time.localtime(since - _CLOCKS_DIFFER_S)
    start = time.strftime("%Y-%m-%dT%H:%M:%S", moment)
    of_ours = ["-u", str(os.getuid()), "-S", start]
    try:
        done = _run(["sacct", "-XnP", *of_ours, "-o", "JobID,State,Submit"])
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    ids = {job.job_id for job in known}
    rows = (line.split("|") for line in done.stdout.splitlines())
    return [
        job_id
        for job_id, state, submitted in rows
        if state in _UNFINISHED and submitted >= start and job_id not in ids
    ]


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
    """Cancel our jobs whose comment begins so, if Slurm answers; return their ids."""
    found = [job.job_id for job in jobs(comment, os.getuid()) or ()]
    with suppress(subprocess.TimeoutExpired):
        if found:
            _run(["scancel", *found])
    return found


def cancel_all(comment: str) -> list[str]:
    """Cancel all our jobs whose comment begins so, and wait until they are gone.

    Gives their ids. Raises SeatrialError if Slurm does not answer, or if a job does
    not end.
    """
    cancelled: list[str] = []
    deadline = time.monotonic() + _GONE_S
    while True:
        left = jobs(comment, os.getuid())
        if left is None:
            raise SeatrialError(
                "Slurm does not answer: the jobs that this run left behind cannot be "
                "cancelled; check `scontrol ping` and slurmctld, then resume again"
            )
        if not left:
            return cancelled
        if time.monotonic() > deadline:
            names = ", ".join(job.job_id for job in left)
            raise SeatrialError(
                f"jobs {names} of this run were cancelled {_GONE_S:.0f} s ago and do "
                "not end; look at them with `scontrol show job`, then resume again"
            )
        cancelled += [job.job_id for job in left if job.job_id not in cancelled]
        with suppress(subprocess.TimeoutExpired):
            _run(["scancel", *(job.job_id for job in left)])
        time.sleep(_LOOK_S)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
