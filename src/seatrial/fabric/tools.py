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


def _run(program: str, command: Sequence[str], hca: str = "", port: str = "") -> Output:
    """Run a tool; it fails by its exit status unless it is one of `_MAY_FAIL`."""
    if hca:
        command = [*command[:1], "-C", hca, "-P", port, *command[1:]]
    shown = " ".join(command)
    try:
        done = _ended(program, *command[1:])
        version = _ended(program, "--version")
    except subprocess.TimeoutExpired as error:
        raise SeatrialError(f"{shown}: no end within {TIMEOUT_S} s") from error
    complaints = [line for line in done.stderr.splitlines() if line.strip()]
    no_port = _NO_PORT in done.stdout + done.stderr
    if done.returncode and (no_port or command[0] not in _MAY_FAIL):
        raise SeatrialError(
            f"{shown}: exit status {done.returncode}: "
            f"{' '.join(complaints)[:300] or 'no message'}. It needs an active HCA and "
            "the right to open /dev/infiniband/umad*: run it as root."
        )
    match = _VERSION.search(version.stdout + version.stderr)
    version_text = match[1] if match else ""
    subnet = f"{hca}:{port}" if hca else ""
    return Output(command[0], done.stdout, shown, subnet, version_text, complaints)


def _ended(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
