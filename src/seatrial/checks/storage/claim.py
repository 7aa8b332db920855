"""The folder of a run on a file system: one job has it, and it is removed for sure."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seatrial.checks.job_control import Limit
from seatrial.errors import SeatrialError

FOLDER = "seatrial-storage"
ENDED_WELL = b"ended well\n"
"""Message from the conductor to the keeper after the end of all steps."""
OWNER = "owner.json"
_LOOK_S = 2.0
_FRESH_S = 60.0
"""A folder without an owner is being made, or it was left when it was."""
_LISTED_S = 30.0


@contextmanager
def claimed(path: Path, patience_s: float) -> Iterator[Path]:
    """Make the folder of this job below `path`; it is removed at the end.

    Waits for another job that has it; removes one that no job has any more. Raises
    SeatrialError if it cannot be made or removed.
    """
    folder = path / FOLDER
    _make(folder, patience_s)
    keeper = _start_keeper(folder)
    assert keeper.stdin is not None
    try:
        _write_owner(folder, keeper.pid)
        yield folder
        keeper.stdin.write(ENDED_WELL)
    finally:
        keeper.stdin.close()
        status = keeper.wait()
    if status:
        raise SeatrialError(f"{folder} could not be removed; remove it by hand")


def _make(folder: Path, patience_s: float) -> None:
    """Make the folder; the one job that succeeds has it."""
    patience = Limit(patience_s)
    while True:
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            owner = owner_of(folder)
            if _is_left(folder, owner):
                remove(folder)
                continue
            if patience.overdue():
                job = owner.get("job") or "unknown"
                raise SeatrialError(
                    f"{folder} is in use by job {job} on {owner.get('host')}; try "
                    "again after its end, or remove the folder"
                ) from None
            time.sleep(_LOOK_S)
        except OSError as error:
            raise SeatrialError(
                f"{folder}: {error.strerror}; the user of the suite must be able to "
                "write there"
            ) from None
        else:
            return


def _start_keeper(folder: Path) -> "subprocess.Popen[bytes]":
    """Start the process that removes the folder when this one ends."""
    command = [sys.executable, "-I", "-m", "seatrial.checks.storage.keeper"]
    return subprocess.Popen(
        [*command, str(folder)], stdin=subprocess.PIPE, start_new_session=True
    )


def _write_owner(folder: Path, keeper: int) -> None:
    owner = {
        "job": os.environ.get("SLURM_JOB_ID", ""),
        "host": socket.gethostname(),
        "pids": [os.getpid(), keeper],
        "start_time": time.time(),
    }
    (folder / OWNER).write_text(json.dumps(owner) + "\n")


def owner_of(folder: Path) -> dict[str, Any]:
    """Return the owner of a folder; nothing if none is written yet."""
    try:
        owner = json.loads((folder / OWNER).read_text())
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _is_left(folder: Path, owner: dict[str, Any]) -> bool:
    """Return True if no job has the folder any more."""
    if not owner:
        try:
            return time.time() - folder.stat().st_mtime > _FRESH_S
        except OSError:
            return False  # it has just been removed
    if owner.get("host") == socket.gethostname():
        return not any(map(is_running, owner.get("pids", [])))
    job = str(owner.get("job", ""))
    return job.isdigit() and job != os.environ.get("SLURM_JOB_ID") and _ended(job)


def is_running(pid: Any) -> bool:
    """Return True if a process runs; one that only waits for its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


def _ended(job: str) -> bool:
    """Return True if Slurm knows that a job is not running any more."""
    command = ("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LISTED_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    states = {*done.stdout.split()}
    if done.returncode:
        return "Invalid job id" in done.stderr
    return not states & {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"}


def remove(folder: Path) -> bool:
    """Remove a folder with all that is in it; return True if it is gone.

    It is renamed first: programs that still run create no further files in it.
    """
    doomed = folder.with_name(f"{folder.name}.{os.getpid()}.removed")
    try:
        folder.rename(doomed)
    except FileNotFoundError:
        return True
    except OSError:
        doomed = folder
    for _ in range(10):
        shutil.rmtree(doomed, ignore_errors=True)
        if not doomed.exists():
            return True
        time.sleep(1)
    return False
