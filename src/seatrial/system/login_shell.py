"""Run a script in a shell on the login node, and read the archive that it prints."""

import base64
import binascii
import io
import subprocess
import tarfile
from collections.abc import Sequence

from seatrial.errors import SeatrialError

SHELL = ("bash", "-l", "-s")
"""A login shell, which reads a script."""


def run_script(
    command: Sequence[str], script: str, timeout_s: float
) -> tuple[str, str]:
    """Run a script by a command that starts a shell.

    Returns the output, and in a few words the reason if it is incomplete: the time
    limit, the last message, or the exit status.
    """
    try:
        done = subprocess.run(
            command,
            input=script,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"no end within {timeout_s:g} s"
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return done.stdout, lines[-1].strip()


def unpacked(text: str, where: str, largest: int) -> dict[str, str]:
    """Return the files of a tar archive in base64, up to `largest` bytes each.

    Raises SeatrialError if it is damaged; `where` begins the message.
    """
    try:
        content = io.BytesIO(base64.b64decode("".join(text.split()), validate=True))
        with tarfile.open(fileobj=content, mode="r:gz") as tar:
            return {
                member.name.removeprefix("./"): file.read().decode(errors="replace")
                for member in tar
                if member.size <= largest
                and (file := tar.extractfile(member)) is not None
            }
    except (binascii.Error, tarfile.TarError, EOFError, OSError) as error:
        raise SeatrialError(f"{where}: damaged output: {error}") from error
