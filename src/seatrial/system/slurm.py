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
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"
_DEATH = re.compile(r"srun: error: (Node failure on .*|\S+: tasks? [0-9,-]+: .*)")
_ENDED_WITH_IT = ("Killed", "Terminated")
_SUFFIXES = "*~#!%$@^+-"
_TIMEOUT_S = 60
_GONE_S = 300.0
_CLOCKS_DIFFER_S = 5.0
_UNFINISHED = ("PENDING", "RUNNING")
_LOOK_S = 1.0
_WHOLE_LINES = {"SLURM_TOPO_LEN": "1000000"}
"""Variables that keep `scontrol show topology` from cutting its lines."""

HIDDEN_TOO = {"SINFO_ALL": "1", "SQUEUE_ALL": "1"}
"""Variables by which Slurm's commands show hidden partitions and their jobs."""


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


def node_states() -> dict[str, tuple[bool, str]]:
    """Return the `availability` of every node; SeatrialError if Slurm is silent."""
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
    return {name: availability(state, reason) for name, state, reason in rows}


def first_death(lines: Iterable[str]) -> str | None:
    """Return the line of srun's standard error on the first death, None without one.

    A failed node comes before any task, a task before those that srun ended because
    of it.
    """
    deaths = [match[1] for match in map(_DEATH.match, lines) if match]
    nodes = [death for death in deaths if death.startswith("Node failure")]
    causes = [death for death in deaths if not death.endswith(_ENDED_WITH_IT)]
    return next(iter((*nodes, *causes, *deaths)), None)


def availability(state: str, reason: str) -> tuple[bool, str]:
    """Return if a job can run on a node with sinfo's long state; else the reason."""
    word = state.rstrip(_SUFFIXES)
    reason = "" if reason in ("", "none") else f" ({reason})"
    if "*" in state[len(word) :]:
        return False, f"{word}, not responding{reason}"
    return (True, "") if word in _USABLE else (False, f"{word}{reason}")


def pending_reasons(comment: str) -> dict[str, str] | None:
    """Return the reasons of our pending jobs; None if slurmctld does not answer.

    Keys are job ids; `comment` begins the comment of the jobs. Slurm forgets the reason
    of a cancelled job. A job that waits only for another one of ours is left out.
    """
    rows = printed_rows(3, "squeue", "--me", "-h", "-t", "PD", "-o", "%i|%k|%r")
    if rows is None:
        return None
    return {
        job_id: reason
        for job_id, text, reason in rows
        if text.startswith(comment) and reason != "Dependency"
    }


def jobs(comment: str, user: int | None) -> list[Job] | None:
    """Return the jobs of a user (uid; None: of all) by the start of their comment.

    None if slurmctld does not answer; no jobs where there is no Slurm.
    """
    if shutil.which("squeue") is None:
        return []
    users = [] if user is None else ["-u", str(user)]
    rows = printed_rows(6, "squeue", "-h", *users, "-o", "%i|%T|%k|%N|%r|%Z")
    if rows is None:
        return None
    queued = (Job(*row) for row in rows)
    return [job for job in queued if job.comment.startswith(comment)]


def lost_jobs(comment: str, since: float) -> list[str] | None:
    """Return the ids of our jobs that slurmctld lost; None if it lost none, or unknown.

    It lost them if it knows no job with this comment. The ids are those of jobs that
    were submitted after `since` (UTC seconds) and go on in the accounting, which may
    not know them.
    """
    known = jobs("", os.getuid())
    if known is None or any(job.comment.startswith(comment) for job in known):
        return None
    start = time.strftime(TIME_FORMAT, time.localtime(since - _CLOCKS_DIFFER_S))
    options = ("-XnP", "-u", str(os.getuid()), "-S", start, "-o", "JobID,State,Submit")
    rows = printed_rows(3, "sacct", *options)
    if rows is None:
        return None
    ids = {job.job_id for job in known}
    return [
        job_id
        for job_id, state, submitted in rows
        if state in _UNFINISHED and submitted >= start and job_id not in ids
    ]


def job_end(job_id: str) -> JobEnd | None:
    """Return the end of a job from the accounting, else from the controller.

    None if neither knows it. The controller forgets a job some minutes after its end.
    """
    lines = printed("sacct", "-X", "-n", "-P", "-j", job_id, "-o", "State,Start")
    if not lines:
        shown = " ".join(printed("scontrol", "-o", "show", "job", job_id) or ())
        fields = dict(word.split("=", 1) for word in shown.split() if "=" in word)
        if "JobState" not in fields:
            return None
        lines = ["{JobState}|{StartTime}".format_map({"StartTime": "", **fields})]
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


def printed_rows(fields: int, *command: str) -> list[list[str]] | None:
    """Return the lines of `printed`, split at `|`; lines with fewer fields are left."""
    lines = printed(*command)
    if lines is None:
        return None
    rows = (line.split("|", fields - 1) for line in lines)
    return [row for row in rows if len(row) == fields]


def host_names(host_list: str) -> list[str]:
    """Return the nodes of a host list such as `cn[01-04]`; none if Slurm is silent."""
    return printed("scontrol", "show", "hostnames", host_list) or []


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        env={
            **os.environ,
            **HIDDEN_TOO,
            **_WHOLE_LINES,
            "SLURM_TIME_FORMAT": "standard",
        },
    )
