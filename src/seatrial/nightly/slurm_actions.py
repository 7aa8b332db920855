"""Nodes and reservations as Slurm shows them, and the commands that change them."""

import os
import subprocess
from dataclasses import dataclass
from datetime import datetime

from seatrial.errors import SeatrialError
from seatrial.system.slurm import HIDDEN_TOO, TIME_FORMAT

DAYS = 7
"""Days after which a reservation expires; each night renews it."""

FLAGS = "MAINT,FLEX,IGNORE_JOBS"
_TIMEOUT_S = 60
_AWAY = ("drain", "down", "fail", "unk", "inval", "power", "reboot", "futur")
_UNSET = ("", "none", "(null)")


@dataclass(frozen=True)
class Node:
    """A node: its state in small letters; why it is out, '' without; and by whom."""

    state: str
    reason: str
    user: str

    @property
    def out(self) -> bool:
        """Return True if the node takes no jobs, whoever took it out."""
        return any(word in self.state for word in _AWAY) or self.state.endswith("*")


@dataclass(frozen=True)
class Slurm:
    """Nodes by name, and the fields of each reservation by its name."""

    nodes: dict[str, Node]
    reservations: dict[str, dict[str, str]]


def reservation(node: str) -> str:
    """Return the name of our reservation of a node."""
    return f"seatrial-{node}"


def reserve(node: str, user: str, start: str) -> tuple[str, ...]:
    """Return the command that reserves a node from a local time on."""
    return (
        "scontrol",
        "create",
        "reservation",
        f"ReservationName={reservation(node)}",
        f"Nodes={node}",
        f"StartTime={start}",
        f"Duration={DAYS}-00:00:00",
        f"Flags={FLAGS}",
        f"Users={user}",
    )


def renew(node: str) -> tuple[str, ...]:
    """Return the command that moves the end of our reservation."""
    name = f"ReservationName={reservation(node)}"
    return ("scontrol", "update", name, f"EndTime=now+{DAYS}days")


def delete(node: str) -> tuple[str, ...]:
    """Return the command that deletes our reservation."""
    return ("scontrol", "delete", f"ReservationName={reservation(node)}")


def drain(node: str, reason: str) -> tuple[str, ...]:
    """Return the command that drains a node."""
    return (
        "scontrol",
        "update",
        f"NodeName={node}",
        "State=DRAIN",
        f"Reason={reason}",
    )


def resume(node: str) -> tuple[str, ...]:
    """Return the command that puts a drained node back."""
    return ("scontrol", "update", f"NodeName={node}", "State=RESUME")


def now() -> str:
    """Return the local time as Slurm writes it."""
    return datetime.now().strftime(TIME_FORMAT)


def read_slurm() -> Slurm:
    """Read nodes and reservations; SeatrialError if Slurm is silent or unclear."""
    nodes: dict[str, Node] = {}
    for line in run(("sinfo", "-h", "-N", "-o", "%N|%T|%u|%E")).splitlines():
        parts = line.split("|", 3)
        if len(parts) != 4 or not parts[0] or not parts[1]:
            raise SeatrialError(f"`sinfo` printed {line!r}; expected node and state")
        name, state, user, reason = (part.strip() for part in parts)
        reason = "" if reason.lower() in _UNSET else reason
        nodes[name] = Node(state.lower(), reason, user)
    if not nodes:
        raise SeatrialError("`sinfo` printed no node")
    reservations: dict[str, dict[str, str]] = {}
    for line in run(("scontrol", "-o", "show", "reservation")).splitlines():
        if not line.strip() or line.startswith("No reservations"):
            continue
        fields = dict(w.split("=", 1) for w in line.split() if "=" in w)
        if not {"ReservationName", "StartTime", "Users"} <= fields.keys():
            raise SeatrialError(
                f"`scontrol show reservation` printed {line!r}; expected its name, "
                "start and users"
            )
        reservations[fields["ReservationName"]] = fields
    return Slurm(nodes, reservations)


def run(command: tuple[str, ...]) -> str:
    """Run a command of Slurm; SeatrialError if it fails or does not end."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, **HIDDEN_TOO},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SeatrialError(f"`{' '.join(command)}`: {error}") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise SeatrialError(f"`{' '.join(command)}` failed: {''.join(said)}")
    return done.stdout
