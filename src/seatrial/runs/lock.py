"""The lock of a run's driver, which ends with the driver, however that ends.

ReFrame inherits the lock, so it is held while any process of the driver is left that
could write to the run's folder or submit jobs.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.runs.closed_sessions import read_starts
from seatrial.runs.open_run import disk_errors, utc_text
from seatrial.runs.run_contents import LOCK_FILE

_PATIENCE_S = 60.0
"""Time for the ReFrame of a dead driver to cancel its jobs."""

_GRACE_S = 1.0
"""Longest hold of the lock by a process that only tests it."""

_LOOK_S = 0.1


@contextmanager
def driver_lock(folder: Path) -> Iterator[int]:
    """Hold the lock of an open run; return its file descriptor, to be inherited.

    Raises SeatrialError if another driver is at work, or if the folder is gone: the
    run was closed meanwhile.
    """
    file = folder / LOCK_FILE
    gone = f"{folder}: this run is no longer open; another driver has closed it"
    with disk_errors(folder):
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            raise SeatrialError(gone) from None
    try:
        _wait(descriptor, folder)
        if not file.exists() or not os.path.samestat(os.fstat(descriptor), file.stat()):
            raise SeatrialError(gone)
        text = json.dumps(
            {"host": socket.gethostname(), "pid": os.getpid(), "started": utc_text()}
        )
        with disk_errors(folder):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text.encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def driver_of(folder: Path) -> dict[str, Any] | None:
    """Return the driver at work on an open run: host, pid and start; None if none.

    Unknown keys are missing. The lock of another user is unreadable, as otherwise any
    user could hold it: his driver counts as at work unless its process is gone.
    """
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY)
    except PermissionError:
        last = (read_starts(folder) or [{}])[-1]
        return None if _is_dead(last) else last
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(descriptor)
    finally:
        os.close(descriptor)
    return None


def _wait(descriptor: int, folder: Path) -> None:
    """Take the lock; wait only if its driver is dead and its ReFrame still runs."""
    started = time.monotonic()
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
        dead = _is_dead(holder)
        if time.monotonic() > started + (_PATIENCE_S if dead else _GRACE_S):
            who = "the ReFrame of a dead driver" if dead else "another driver"
            raise SeatrialError(
                f"{folder}: {who} is at work on this run: process "
                f"{holder.get('pid', 'unknown')} on {holder.get('host', 'unknown')}; "
                "wait for its end, or interrupt it there, then resume"
            )
        time.sleep(_LOOK_S)


def _holder(descriptor: int) -> dict[str, Any]:
    with suppress(ValueError):
        holder = json.loads(os.pread(descriptor, 4096, 0))
        if isinstance(holder, dict):
            return holder
    return {}


def _is_dead(holder: dict[str, Any]) -> bool:
    if holder.get("host") != socket.gethostname():
        return False
    try:
        os.kill(int(holder["pid"]), 0)
    except ProcessLookupError:
        return True
    except (KeyError, ValueError, PermissionError):
        pass
    return False
