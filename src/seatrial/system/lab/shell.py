"""Run the system's own commands, with errors that say what was run."""

import subprocess

from seatrial.errors import SeatrialError


def run(*command: str, text_input: str | None = None) -> str:
    """Run a command and give its standard output; SeatrialError if it fails."""
    try:
        done = subprocess.run(
            command, input=text_input, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise SeatrialError(
            f"{command[0]} is not installed; `make deps` installs what the lab needs"
        ) from None
    if done.returncode != 0:
        raise SeatrialError(
            f"`{' '.join(command)}` failed with exit status {done.returncode}: "
            f"{(done.stderr or done.stdout).strip()}"
        )
    return done.stdout


def succeeds(*command: str) -> bool:
    """Return True if a command exits with 0; its output is dropped."""
    done = subprocess.run(command, capture_output=True, check=False)
    return done.returncode == 0
