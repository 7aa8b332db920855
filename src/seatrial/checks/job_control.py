"""Requests to Slurm from within a job: its nodes, its steps, and the controller."""

import os
import subprocess
import time
from collections.abc import Collection

from seatrial.errors import SeatrialError

_ASK_S = 30.0
_PAUSE_S = 2.0
_CONTROLLER_S = 900.0


class Limit:
    """A time limit, for example of a step."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begin()

    def begin(self) -> None:
        """Restart the time."""
        self._deadline = time.monotonic() + self._seconds

    def overdue(self) -> bool:
        """Return True if the time is over."""
        return time.monotonic() > self._deadline


def say(program: str, text: str) -> None:
    """Print a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {program}: {text}", flush=True)


def controller_answers() -> bool:
    """Return True if Slurm's controller answers now."""
    return _ask("scontrol", "ping") is not None


def wait_for_controller() -> None:
    """Wait until the controller answers; SeatrialError if it stays away."""
    print("Slurm's controller does not answer; waiting for it", flush=True)
    patience = Limit(_CONTROLLER_S)
    while not controller_answers():
        if patience.overdue():
            raise SeatrialError(
                f"Slurm's controller did not answer for {_CONTROLLER_S / 60:.0f} "
                "minutes; start slurmctld and run again"
            )
        time.sleep(_PAUSE_S)


def host_names(node_list: str) -> list[str]:
    """Expand a node list such as `cn[01-04]`; SeatrialError if it has no names."""
    names = (_ask("scontrol", "show", "hostnames", node_list) or "").split()
    if not names:
        raise SeatrialError(f"`scontrol show hostnames {node_list}` names no node")
    return names


def cancel_steps(names: Collection[str]) -> None:
    """Cancel the remaining tasks of steps after their srun has ended.

    One request lists the steps of the job, and one ends those that are left.
    """
    job = os.environ.get("SLURM_JOB_ID", "")
    listed = _ask("squeue", "--steps", "--noheader", f"--jobs={job}", "--format=%i %j")
    rows = (line.split(maxsplit=1) for line in (listed or "").splitlines())
    if left := [row[0] for row in rows if row[1:] and row[1].strip() in names]:
        _ask("scancel", *left)


def _ask(*command: str) -> str | None:
    """Return the output of a command of Slurm; None if it fails or does not answer."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
