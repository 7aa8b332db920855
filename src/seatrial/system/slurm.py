"""Nodes and jobs as Slurm reports them, and their cancellation."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass

from seatrial.errors import SeatrialError

_USABLE = [
    "allocated",
    "blocked",
    "completing",
    "idle",
    "maint",
    "mixed",
    "planned",
    "powering_up",
    "reserved",
]
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
        done = _run("sinfo", "-N", "-h", "-o", "%N|%T|%E")
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
    rows = (line.split("|", 2) for line in done.stdout.splitlines())
    return {name: SlurmNode(state, reason) for name, state, reason in rows}


def first_death(lines: Iterable[str]) -> str | None:
    """Return srun's line on what died first, of its standard error; None if none did.

    A node that failed comes before any task, a task before those that srun ended
    because of it.
    """
    deaths = [match[1] for match in map(_DEATH.match, lines) if match]
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
    """Return why our pending jobs wait, by job id; None if slurmctld does not answer.

    `comment` begins the comment of the jobs. Slurm forgets the reason of a job that is
    cancelled.
    """
    lines = printed("squeue", "--me", "-h", "-t", "PD", "-o", "%i|%k|%r")
    if lines is None:
        return None
    rows = (line.split("|", 2) for line in lines)
    return {job_id: why for job_id, text, why in rows if text.startswith(comment)}


def jobs(comment: str, user: int | None) -> list[Job] | None:
    """Return the jobs of a user (uid; None: of all) by the start of their comment.

    None if slurmctld does not answer; no jobs where there is no Slurm.
    """
    if shutil.which("squeue") is None:
        return []
    users = [] if user is None else ["-u", str(user)]
    lines = printed("squeue", "-h", *users, "-o", "%i|%T|%k|%N|%r|%Z")
    if lines is None:
        return None
    queued = (Job(*line.split("|", 5)) for line in lines)
    return [job for job in queued if job.comment.startswith(comment)]


def lost_jobs(comment: str, since: float) -> list[str] | None:
    """Return the ids of our jobs that slurmctld lost; None if it lost none, or unknown.

    It lost them if it knows no job with such a comment. The ids are those of jobs that
    were submitted `since` then (UTC seconds) and go on in the accounting, which may
    never have heard of them.
    """
    known = jobs("", os.getuid())
    if known is None or any(job.comment.startswith(comment) for job in known):
        return None
    moment = time.localtime(since - _CLOCKS_DIFFER_S)
    start = time.strftime("%Y-%m-%dT%H:%M:%S", moment)
    columns = ("-o", "JobID,State,Submit")
    lines = printed("sacct", "-XnP", "-u", str(os.getuid()), "-S", start, *columns)
    if lines is None:
        return None
    ids = {job.job_id for job in known}
    return [
        job_id
        for job_id, state, submitted in (line.split("|") for line in lines)
        if state in _UNFINISHED and submitted >= start and job_id not in ids
    ]


def job_end(job_id: str) -> JobEnd | None:
    """Return the end of a job from the accounting; None if it does not know it."""
    lines = printed("sacct", "-X", "-n", "-P", "-j", job_id, "-o", "State,Start")
    if not lines:
        return None
    state, _, start = lines[-1].partition("|")
    return JobEnd(state, start not in ("", "None", "Unknown"))


def cancel(comment: str) -> list[str]:
    """Cancel our jobs by the start of their comment; return their ids."""
    ids = [job.job_id for job in jobs(comment, os.getuid()) or ()]
    if ids:
        printed("scancel", *ids)
    return ids


def cancel_all(comment: str) -> list[str]:
    """Cancel all our jobs by the start of their comment; return their ids at the end.

    Raises SeatrialError if Slurm does not answer, or if a job does not end.
    """
    cancelled: dict[str, None] = {}
    deadline = time.monotonic() + _GONE_S
    while True:
        left = jobs(comment, os.getuid())
        if left is None:
            raise SeatrialError(
                "Slurm does not answer: the jobs that this run left behind cannot be "
                "cancelled; check `scontrol ping` and slurmctld, then resume again"
            )
        if not left:
            return list(cancelled)
        ids = [job.job_id for job in left]
        if time.monotonic() > deadline:
            raise SeatrialError(
                f"jobs {', '.join(ids)} of this run were cancelled {_GONE_S:.0f} s ago "
                "and do not end; look at them with `scontrol show job`, then resume "
                "again"
            )
        cancelled |= dict.fromkeys(ids)
        printed("scancel", *ids)
        time.sleep(_LOOK_S)


def printed(*command: str) -> list[str] | None:
    """Return the lines that a program of Slurm prints; None if it fails."""
    try:
        done = _run(*command)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.splitlines()


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        env={**os.environ, "SLURM_TIME_FORMAT": "standard"},
    )
