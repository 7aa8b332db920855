"""Run the system's own commands; errors name the command."""

import shlex
import subprocess

from seatrial.errors import SeatrialError


def run(*command: str, limit_s: float | None = None) -> str:
    """Run a command; return its standard output. SeatrialError if it fails."""
    line = shlex.join(command)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        raise SeatrialError(f"`{line}`: timed out after {limit_s} s") from None
    except FileNotFoundError:
        raise SeatrialError(
            f"{command[0]} is not installed; `make deps` installs what the lab needs"
        ) from None
    if done.returncode != 0:
        raise SeatrialError(
            f"`{line}` failed with exit status {done.returncode}: "
            f"{(done.stderr or done.stdout).strip()}"
        )
    return done.stdout


def succeeds(*command: str) -> bool:
    """Return True if a command exits with 0; its output is dropped."""
    done = subprocess.run(command, capture_output=True, check=False)
    return done.returncode == 0
