"""Other runs of a system: two campaigns at once disturb each other's numbers."""

import fcntl
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from seatrial.campaign.schedule import read_agenda
from seatrial.errors import SeatrialError
from seatrial.model.manifest import OPEN_SUFFIX
from seatrial.runs.lock import driver_of
from seatrial.runs.open_run import RunFolder, disk_errors, open_runs
from seatrial.system import slurm
from seatrial.system.description import System

_START_LOCK = ".start.lock"
_PATIENCE_S = 60.0
"""Longest wait for another campaign that is being started."""

_LOOK_S = 0.1
_COMMENT = "seatrial:"
_ENDING = "COMPLETING"


@dataclass(frozen=True)
class OtherRun:
    """Another run of the system: open here, or with jobs in Slurm's queue.

    `driver` has host, pid and start time, and is None if no driver is at work. `jobs`
    are ids of jobs in the queue. `since` is unknown ("") for a run of another folder.
    """

    run: str
    system: str
    folder: Path
    since: str
    driver: dict[str, Any] | None
    jobs: tuple[str, ...]

    @property
    def at_work(self) -> bool:
        """Return True if it uses the machine, or is about to."""
        return self.driver is not None or bool(self.jobs)

    @property
    def resume(self) -> str:
        """Return the command that resumes it."""
        return f"seatrial run {self.system} --resume --run-id {self.run}"

    def __str__(self) -> str:
        name = f"run {self.run} of system {self.system!r}"
        jobs, user = ", ".join(self.jobs), _owner(self.folder)
        if self.driver is not None:
            process = self.driver.get("pid", "unknown")
            return (
                f"{name} is at work since {self.driver.get('started', self.since)}: "
                f"process {process} of {user} on {self.driver.get('host', 'unknown')}; "
                f"wait for its end: `seatrial status {self.system} --watch`"
            )
        if self.since:
            return (
                f"{name}, started by {user}, is open since {self.since}; its driver is "
                f"gone, but its jobs {jobs} are in Slurm's queue; `{self.resume}` "
                "cancels them and goes on with that run"
            )
        return (
            f"{name} of {user} has the jobs {jobs} in Slurm's queue, submitted from "
            f"{self.folder}; wait for their end, or cancel them: "
            f"`scancel {' '.join(self.jobs)}`"
        )


def other_runs(system: System, own: RunFolder) -> list[OtherRun]:
    """Return other open runs of a system, and those with jobs in Slurm's queue.

    Replays are left out: they do not use the machine.
    """
    jobs = _jobs(system)
    jobs.pop(own.final.name, None)
    others = []
    for path in open_runs(own.final.parent.parent, system.name):
        run, since = path.name.removesuffix(OPEN_SUFFIX), "an unknown time"
        if run == own.final.name:
            continue
        with suppress(SeatrialError):
            agenda = read_agenda(path)
            since = agenda.created
            if agenda.replay is not None:
                continue
        ids = tuple(job.job_id for job in jobs.pop(run, ()))
        others.append(OtherRun(run, system.name, path, since, driver_of(path), ids))
    for run, left in jobs.items():
        ids = tuple(job.job_id for job in left)
        folder = _run_folder(run, left[0]) or Path(left[0].folder)
        others.append(OtherRun(run, system.name, folder, "", None, ids))
    return others


@contextmanager
def starting(
    system: System, own: RunFolder, console: Console, *, beside: bool
) -> Iterator[None]:
    """Check that no other run is at work; block other starts meanwhile.

    It may end once others see that the driver of this run is at work. Raises
    SeatrialError if another run is at work, unless this one may run `beside` it.
    """
    with _start_lock(own.final.parent):
        others = other_runs(system, own)
        at_work = [str(other) for other in others if other.at_work]
        if at_work and not beside:
            raise SeatrialError(
                "\n".join(at_work) + "\nTwo campaigns at once disturb each other's "
                "numbers. Nothing was started; --beside starts this one nevertheless, "
                "and its report says so."
            )
        for other in others:
            if not other.at_work:
                console.print(
                    f"run {other.run} is open since {other.since}, and its driver is "
                    f"gone; to go on with it: {other.resume}",
                    markup=False,
                )
        yield


@contextmanager
def _start_lock(folder: Path) -> Iterator[None]:
    """Hold the lock for starting a run in a system's folder of runs.

    The file is removed at the end: it would block other users. Raises SeatrialError if
    another start holds it for too long.
    """
    file = folder / _START_LOCK
    with disk_errors(folder):
        descriptor = _wait(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def _wait(file: Path) -> int:
    """Wait for the lock; return the descriptor of its file."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            return _lock(file)
        except (BlockingIOError, FileNotFoundError):
            pass
        except PermissionError:
            if not file.exists():  # else another user holds it
                raise
        if time.monotonic() > deadline:
            raise SeatrialError(
                f"{file}: {_owner(file)} has been starting another campaign here for "
                f"more than {_PATIENCE_S:.0f} s; wait and start again; if no such "
                "process exists, remove that file"
            )
        time.sleep(_LOOK_S)


def _lock(file: Path) -> int:
    """Create and lock a file; FileNotFoundError if its holder has just removed it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), file.lstat()):
            raise FileNotFoundError
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _jobs(system: System) -> dict[str, list[slurm.Job]]:
    """Return the jobs of all runs of a system in Slurm's queue, by run."""
    jobs: dict[str, list[slurm.Job]] = defaultdict(list)
    queue = slurm.jobs(_COMMENT, None) if system.uses_slurm else None
    for job in queue or ():
        run = job.comment.removeprefix(_COMMENT).partition(":")[0]
        folder = _run_folder(run, job)
        elsewhere = folder is not None and folder.parent.name != system.name
        if job.state != _ENDING and not elsewhere:
            jobs[run].append(job)
    return jobs


def _run_folder(run: str, job: slurm.Job) -> Path | None:
    """Return the folder of the run that submitted a job; None if unknown."""
    above = (Path(job.folder), *Path(job.folder).parents)
    return next((path for path in above if path.name == run + OPEN_SUFFIX), None)


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except (OSError, KeyError):
        return "an unknown user"
