"""Run the tools of the fabric by ssh, where they are installed and have the rights."""

import base64
import binascii
import io
import secrets
import shlex
import subprocess
import tarfile
from collections.abc import Sequence
from importlib.resources import files

from seatrial.errors import SeatrialError
from seatrial.fabric.tools import TIMEOUT_S, Done, Output, output_of
from seatrial.system.login_node import Remote

Command = tuple[str, ...]


def command_of(remote: Remote, host: str | None) -> list[str]:
    """Return the local command of a shell on the login node, or on a host from there.

    It never asks for a password.
    """
    shell = ["bash", "-l", "-s"]
    if host is None:
        return remote.ssh(shell)
    return remote.ssh(["ssh", "-T", "-o", "BatchMode=yes", host, shlex.join(shell)])


def run_remotely(command: Sequence[str], tools: Sequence[Command]) -> list[Output]:
    """Run tools by a command that starts a shell; return the outputs on each subnet.

    Tools that are not installed there have none. SeatrialError if the shell does not
    start or ends early, if none of the tools is there, or if one fails.
    """
    token = secrets.token_hex(8)
    listed = "\n".join(map(" ".join, tools))
    script = files("seatrial.fabric").joinpath("tools.sh").read_text()
    text = f"token={token}\ntools={shlex.quote(listed)}\n{script}"
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SeatrialError(f"ssh: timed out after {TIMEOUT_S} s") from error
    head, ended, packed = done.stdout.partition(f" {token}\n")
    if not ended:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise SeatrialError(
            f"ssh: {lines[-1]}. The tools of the fabric run on the login node, or on "
            "fabric_host of fabric.yml: check that you reach it without a password."
        )
    host = head.splitlines()[-1]
    outputs = [output_of(one) for one in _unpacked(packed, host)]
    needed = tools[0][0]
    if not any(one.tool == needed for one in outputs):
        raise SeatrialError(
            f"{host}: {needed} is not installed. Install infiniband-diags there, or "
            "set fabric_host in fabric.yml to a host that has it."
        )
    return outputs


def _unpacked(packed: str, host: str) -> list[Done]:
    """Return the runs of the tools in their order."""
    try:
        content = io.BytesIO(base64.b64decode(packed))
        with tarfile.open(fileobj=content, mode="r:gz") as tar:
            texts = {
                member.name.removeprefix("./"): file.read().decode(errors="replace")
                for member in tar
                if (file := tar.extractfile(member)) is not None
            }
    except (binascii.Error, tarfile.TarError, EOFError, OSError) as error:
        raise SeatrialError(f"{host}: damaged output of ssh: {error}") from error
    numbers = sorted(int(name[:-4]) for name in texts if name.endswith(".run"))
    return [_done(texts, number, host) for number in numbers]


def _done(texts: dict[str, str], number: int, host: str) -> Done:
    status, name, arguments, port, version = texts[f"{number}.run"].split("|", 4)
    words = port.split()  # -C HCA -P PORT
    return Done(
        (name, *words, *arguments.split()),
        int(status),
        texts[f"{number}.out"],
        texts[f"{number}.err"],
        version,
        f"{words[1]}:{words[3]}" if words else "",
        host,
    )
