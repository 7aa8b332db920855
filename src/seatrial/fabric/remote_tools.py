"""Run the tools of the fabric by ssh, where they are installed and have the rights."""

import secrets
import shlex
from collections.abc import Sequence
from importlib.resources import files

from seatrial.errors import SeatrialError
from seatrial.fabric.tools import TIMEOUT_S, Done, Output, output_of
from seatrial.limits import RAW_SIZE
from seatrial.system.login_node import Remote
from seatrial.system.login_shell import SHELL, run_script, unpacked

Command = tuple[str, ...]


def command_of(remote: Remote, host: str | None) -> list[str]:
    """Return the local command of a shell on the login node, or on a host from there.

    It never asks for a password.
    """
    if host is None:
        return remote.ssh(SHELL)
    return remote.ssh(["ssh", "-T", "-o", "BatchMode=yes", host, shlex.join(SHELL)])


def run_remotely(command: Sequence[str], tools: Sequence[Command]) -> list[Output]:
    """Run tools by a command that starts a shell; return the outputs on each subnet.

    Tools that are not installed there have none. SeatrialError if the shell does not
    start or ends early, if none of the tools is there, or if one fails.
    """
    token = secrets.token_hex(8)
    listed = "\n".join(map(" ".join, tools))
    script = files("seatrial.fabric").joinpath("tools.sh").read_text()
    variables = f"token={token}\ntools={shlex.quote(listed)}\n"
    text, reason = run_script(command, variables + script, TIMEOUT_S)
    head, ended, packed = text.partition(f" {token}\n")
    if not ended:
        raise SeatrialError(
            f"ssh: {reason}. The tools of the fabric run on the login node, or on "
            "fabric_host of fabric.yml: check that you reach it without a password."
        )
    host = head.splitlines()[-1]
    outputs = [output_of(one) for one in _runs(packed, host)]
    needed = tools[0][0]
    if not any(one.tool == needed for one in outputs):
        raise SeatrialError(
            f"{host}: {needed} is not installed. Install infiniband-diags there, or "
            "set fabric_host in fabric.yml to a host that has it."
        )
    return outputs


def _runs(packed: str, host: str) -> list[Done]:
    """Return the runs of the tools in their order."""
    texts = unpacked(packed, host, RAW_SIZE.most)
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
