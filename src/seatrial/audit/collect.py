"""Raw settings of the nodes of a system: through Slurm, by ssh, or of a folder."""

import json
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import msgspec

from seatrial.errors import SeatrialError
from seatrial.names import checked_name, node_set
from seatrial.system.login_shell import run_script, unpacked

TIMEOUT_S = 900
_IDLE = "idle,reserved,maint"
"""States of nodes without a job; those reserved answer a class with the reservation."""

_CLASSES = "classes.json"
_LARGEST = 2_000_000  # bytes of one node's output


class _Record(msgspec.Struct):
    """The file beside the raw outputs."""

    classes: dict[str, list[str]]
    missing: dict[str, str] = {}
    errors: list[str] = []


@dataclass
class Collected:
    """What nodes said: their raw output, or why there is none.

    `classes` has the nodes of each class; `errors` are sentences on classes.
    """

    classes: dict[str, list[str]] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def silence(self) -> str:
        """Return the nodes that were not read, and the reason; '' if all were read."""
        delivered = {node for nodes in self.classes.values() for node in nodes}
        silent = delivered - self.raw.keys()
        if not silent:
            return ""
        reasons = [*self.errors, *dict.fromkeys(self.missing.values())]
        reason = reasons[0] if reasons else "no answer"
        return f"not known of {node_set(silent)}: {reason}"


def login_script(
    prefix: str,
    classes: Sequence[tuple[str, str, Sequence[str]]],
    arguments: str,
    root: str = "/",
    node_script: str = "",
    job: str = "seatrial-audit",
) -> tuple[str, str]:
    """Return the script for the login node, and the token that ends its lines.

    `classes` are names, host lists and options of sbatch. `node_script`, by default
    node.sh, runs on each node with `root` and `arguments`.
    """
    token = secrets.token_hex(8)
    scripts = files("seatrial.audit")
    variables = {
        "prefix": prefix,
        "token": token,
        "arguments": arguments,
        "root": root,
        "job": job,
        "node_script": node_script or scripts.joinpath("node.sh").read_text(),
        "classes": "\n".join(
            f"{name}|{nodes}|{shlex.join(options)}|{_IDLE}"
            for name, nodes, options in classes
        ),
    }
    lines = [f"{name}={shlex.quote(text)}" for name, text in variables.items()]
    return "\n".join([*lines, scripts.joinpath("login.sh").read_text()]), token


def collect(command: Sequence[str], script: str, token: str) -> Collected:
    """Run the script by a command (bash here, or ssh to the login node).

    Raises SeatrialError if it does not end.
    """
    text, reason = run_script(command, script, TIMEOUT_S)
    collected, ended = _read(text, token)
    if not ended and not collected.errors:
        raise SeatrialError(f"the login node does not answer: {reason}")
    return collected


def _read(text: str, token: str) -> tuple[Collected, bool]:
    """Read what the script printed; other lines are of the site's profile."""
    collected = Collected()
    data: list[str] | None = None
    ended = False
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 4 or fields[3] != token:
            if data is not None and not ended:
                data.append(line)
            continue
        word, subject, value, _ = fields
        if word == "node":
            collected.classes.setdefault(subject, []).append(value)
        elif word == "state":
            collected.missing[subject] = f"not asked, Slurm says {value}"
        elif word == "error":
            collected.errors.append(f"{subject}: {value}")
        elif word == "data":
            data = []
        ended = ended or word == "end"
    if data and ended:
        collected.raw = unpacked("".join(data), "the login node", _LARGEST)
    return collected, ended


def save(folder: Path, collected: Collected) -> None:
    """Write the raw output of each node to NODE.txt, and their classes beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for node in {node for nodes in collected.classes.values() for node in nodes}:
        if node in collected.raw:
            text = collected.raw[node]
            (folder / f"{checked_name(node, 'node')}.txt").write_text(text, "utf-8")
    record = {
        name: getattr(collected, name) for name in ("classes", "missing", "errors")
    }
    (folder / _CLASSES).write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def of_folder(folder: Path) -> Collected:
    """Read what `save` or playbooks/audit.yml wrote.

    Raises SeatrialError if the folder has no such files, or one is damaged.
    """
    file = folder / _CLASSES
    try:
        record = msgspec.json.decode(file.read_bytes(), type=_Record)
    except (OSError, msgspec.MsgspecError) as error:
        raise SeatrialError(
            f"{file}: {error}; expected a folder of `seatrial audit --out FOLDER`"
        ) from error
    collected = Collected(record.classes, {}, record.missing, record.errors)
    for node in {node for nodes in record.classes.values() for node in nodes}:
        path = folder / f"{checked_name(node, 'node')}.txt"
        if path.is_file() and path.stat().st_size <= _LARGEST:
            collected.raw[node] = path.read_text("utf-8", errors="replace")
        else:
            collected.missing.setdefault(node, f"no file {path.name}")
    return collected
