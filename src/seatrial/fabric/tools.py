"""Run the tools of infiniband-diags, once on each subnet."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.fabric.records import Source, source_of

TIMEOUT_S = 600
_MAY_FAIL = ("sminfo", "saquery", "ibqueryerrors")
"""Tools with a status for no subnet manager, or for errors on a port."""

_NO_PORT = "Failed to open"
"""Text of all tools if there is no HCA to use."""

_VERSION = re.compile(r"BUILD VERSION: (\S+)")


@dataclass
class Output:
    """The output of a tool: of a run here, or a file; `version` is '' if unknown.

    `subnet` is the HCA's port or the folder, '' for single files: outputs of one are of
    one subnet.
    """

    tool: str
    text: str
    where: str
    subnet: str = ""
    version: str = ""
    complaints: list[str] = field(default_factory=list)

    @property
    def source(self) -> Source:
        """Return the record of this output."""
        return source_of(self.tool, self.version, self.text, self.where)


def run_tool(*command: str) -> list[Output]:
    """Run a tool of infiniband-diags on each subnet.

    Raises SeatrialError if it fails, or if none of the tools are here; others than
    ibnetdiscover and ibqueryerrors may be missing.
    """
    name = command[0]
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if program is not None:
        return [_run(program, command, *port) for port in active_ports()]
    if name in ("ibnetdiscover", "ibqueryerrors"):
        raise SeatrialError(
            f"{name} is not installed here. Install infiniband-diags, or run it where "
            "the fabric is managed and name its output with --from."
        )
    return []


def active_ports(root: Path = Path("/sys/class/infiniband")) -> list[tuple[str, str]]:
    """Return HCA and number of each active InfiniBand port: rails are often subnets.

    If there is one at most, the tools find it themselves: both are empty then.
    """
    ports = []
    for port in sorted(root.glob("*/ports/*")):
        texts = [
            file.read_text() if (file := port / name).is_file() else ""
            for name in ("link_layer", "state")
        ]
        if texts[0].strip() == "InfiniBand" and "ACTIVE" in texts[1]:
            ports.append((port.parts[-3], port.name))
    return ports if len(ports) > 1 else [("", "")]


@dataclass(frozen=True)
class Done:
    """A run of a tool: its command, exit status, output, messages and version.

    `subnet` is that of `Output`; `host` is where it ran, '' for here.
    """

    command: tuple[str, ...]
    status: int
    text: str
    messages: str
    version: str
    subnet: str = ""
    host: str = ""


def output_of(done: Done) -> Output:
    """Return the output of a tool; SeatrialError if it failed.

    It fails by its exit status unless it is one of `_MAY_FAIL`.
    """
    name = done.command[0]
    shown = " ".join(done.command)
    if done.host:
        shown = f"{done.host}: {shown}"
    complaints = [line for line in done.messages.splitlines() if line.strip()]
    no_port = _NO_PORT in done.text + done.messages
    if done.status and (no_port or name not in _MAY_FAIL):
        raise SeatrialError(
            f"{shown}: exit status {done.status}: "
            f"{' '.join(complaints)[:300] or 'no message'}. It needs an active HCA and "
            "the right to open /dev/infiniband/umad*: run it as root."
        )
    match = _VERSION.search(done.version)
    version = match[1] if match else ""
    return Output(name, done.text, shown, done.subnet, version, complaints)


def _run(program: str, command: Sequence[str], hca: str = "", port: str = "") -> Output:
    """Run a tool here."""
    if hca:
        command = [*command[:1], "-C", hca, "-P", port, *command[1:]]
    try:
        done = _ended(program, *command[1:])
        version = _ended(program, "--version")
    except subprocess.TimeoutExpired as error:
        shown = " ".join(command)
        raise SeatrialError(f"{shown}: no end within {TIMEOUT_S} s") from error
    return output_of(
        Done(
            tuple(command),
            done.returncode,
            done.stdout,
            done.stderr,
            version.stdout + version.stderr,
            f"{hca}:{port}" if hca else "",
        )
    )


def _ended(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
