"""The scrontab of the user, and the job that takes its place where there is none."""

import subprocess
import tempfile
from dataclasses import dataclass
from datetime import datetime

from seatrial.errors import SeatrialError
from seatrial.nightly.crontab import Driver, job_name, section_of
from seatrial.system.slurm import TIME_FORMAT, printed, printed_rows

_TIMEOUT_S = 60
_EMPTY = "no crontab for"
_DISABLED = "scrontab is disabled"


class NoScrontabError(SeatrialError):
    """There is no scrontab on this cluster, for a reason."""


@dataclass(frozen=True)
class _Done:
    status: int
    output: bytes
    text: str
    """Both streams as one line."""


def read_scrontab() -> str:
    """Return the scrontab of the user, '' if there is none.

    Bytes that are no UTF-8 become surrogates. Raises NoScrontabError where Slurm has
    none, SeatrialError if it does not answer.
    """
    try:
        done = _run("scrontab", "-l")
    except FileNotFoundError as error:
        raise NoScrontabError("the program scrontab is not installed here") from error
    if done.status == 0:
        return done.output.decode(errors="surrogateescape")
    if _EMPTY in done.text:
        return ""
    if _DISABLED in done.text:
        raise NoScrontabError("slurm.conf disables it (ScronParameters)")
    raise SeatrialError(
        f"scrontab -l: expected the scrontab of this user, got: {done.text}; check "
        "`scontrol ping`, then try again"
    )


def write_scrontab(before: str, after: str, system: str) -> None:
    """Replace the scrontab of the user, and read back the section of a system.

    `before` is the scrontab that the user saw. Raises SeatrialError if it has changed
    meanwhile, if Slurm refuses the new one, or does not keep the section.
    """
    if read_scrontab() != before:
        raise SeatrialError(
            "the scrontab was changed by another program meanwhile; nothing was "
            "written; try again"
        )
    if after:
        with tempfile.NamedTemporaryFile(prefix="scrontab-") as file:
            file.write(after.encode(errors="surrogateescape"))
            file.flush()
            done = _run("scrontab", file.name)
    else:
        done = _run("scrontab", "-r")
    if done.status:
        raise SeatrialError(
            f"Slurm refused the new scrontab, the old one stays: {done.text}"
        )
    if section_of(read_scrontab(), system) != section_of(after, system):
        raise SeatrialError(
            f"scrontab -l: expected the section of {system} as it was written, got "
            "another one; look at it with `scrontab -l`, then try again"
        )


def successor_name(system: str) -> str:
    """Return the name of the job that submits itself again."""
    return f"{job_name(system)}-again"


def sbatch_command(driver: Driver, begin: datetime) -> list[str]:
    """Return the command that submits the job of a night, which submits the next."""
    return [
        "sbatch",
        "--parsable",
        f"--job-name={successor_name(driver.system)}",
        f"--begin={begin.strftime(TIME_FORMAT)}",
        "--no-requeue",
        *driver.options,
        f"--wrap={driver.command} --resubmit",
    ]


def submit_next(driver: Driver, now: datetime) -> str:
    """Submit the job of the next night unless one waits; return the id of that job.

    `now` is local time. Raises SeatrialError if Slurm refuses it.
    """
    queued = waiting(driver.system)
    if queued:
        return queued[-1]
    begin = driver.settings.window.next_opening(now)
    done = _run(*sbatch_command(driver, begin))
    if done.status:
        raise SeatrialError(f"sbatch refused the job of the next night: {done.text}")
    return done.text.partition(";")[0]


def waiting(system: str) -> list[str]:
    """Return the ids of waiting jobs of the user that submit themselves again.

    Raises SeatrialError if Slurm does not answer.
    """
    name = f"--name={successor_name(system)}"
    rows = printed_rows(1, "squeue", "--me", "-h", "-t", "PD", name, "-o", "%i")
    if rows is None:
        raise SeatrialError(
            "squeue does not answer; expected the waiting jobs of this user; check "
            "`scontrol ping`, then try again"
        )
    return [job for (job,) in rows]


def cancel_waiting(system: str) -> list[str]:
    """Cancel the waiting jobs that submit themselves again; return their ids.

    Raises SeatrialError if some of them still wait afterwards.
    """
    jobs = waiting(system)
    if not jobs:
        return []
    printed("scancel", *jobs)
    left = waiting(system)
    if left:
        raise SeatrialError(
            f"scancel: job {', '.join(left)} still waits; expected none; cancel it "
            f"with `scancel {' '.join(left)}`"
        )
    return jobs


def _run(*command: str) -> _Done:
    """Run a program of Slurm; SeatrialError if it does not end."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SeatrialError(
            f"{command[0]}: timed out after {_TIMEOUT_S} s; check `scontrol ping`"
        ) from error
    both = (done.stdout + b" " + done.stderr).decode(errors="replace")
    return _Done(done.returncode, done.stdout, " ".join(both.split()))
