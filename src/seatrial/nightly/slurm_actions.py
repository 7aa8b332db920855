"""Nodes and reservations as Slurm shows them, and what changes them.

A change is made by `scontrol`, or by a request to the agent on the controller. Slurm
22.05 keeps no comment of a reservation. So ours is known by its name, its node, its
user and its start, which the ledger tells within minutes.
"""

import json
import os
import pwd
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.system.slurm import HIDDEN_TOO

DAYS = 7
"""Days after which a reservation expires; each night renews it."""

Command = tuple[str, ...]

_FLAGS = "MAINT,FLEX,IGNORE_JOBS"
"""FLEX lets a job in the reservation use a partner outside it; IGNORE_JOBS lets the
jobs that run end."""

_AWAY = re.compile(
    r"(?<!power_)(?<!powered_)(?<!powering_)down|drain|fail|error|unk|inval|reboot|futur|maint|[*$]"
)
_SUFFIXES = "*~#!%$@^+-"
_EARLY = timedelta(minutes=2)
_LATE = timedelta(minutes=10)
_TIMEOUT_S = 60.0
_AGENT_S = 90.0
_TAKEN_S = 30.0
_LOOK_S = 2.0


@dataclass(frozen=True)
class Node:
    """A node: its long state in small letters, and its reason, '' without one."""

    state: str
    reason: str

    @property
    def out(self) -> bool:
        """Return True if it takes no jobs of users, whoever took it out."""
        return _AWAY.search(self.state) is not None

    @property
    def drained(self) -> bool:
        """Return True if it is drained, or will be when its jobs end."""
        return self.state.rstrip(_SUFFIXES) in ("drained", "draining")


@dataclass(frozen=True)
class Reservation:
    """A reservation: its host list, its users as Slurm writes them, and local times."""

    nodes: str
    users: str
    start: datetime
    end: datetime

    def is_of(self, node: str, moment: datetime) -> bool:
        """Return True if we made it for a node at a time (UTC) of the ledger."""
        starts = (self.start.replace(fold=fold).astimezone() for fold in (0, 1))
        near = any(moment - _EARLY <= start <= moment + _LATE for start in starts)
        return near and self.nodes == node and self.users == user_name()


@dataclass(frozen=True)
class Slurm:
    """Nodes and reservations by name."""

    nodes: Mapping[str, Node]
    reservations: Mapping[str, Reservation]


def user_name() -> str:
    """Return the user that measures the nights."""
    return pwd.getpwuid(os.getuid()).pw_name


def reservation_of(node: str) -> str:
    """Return the name of our reservation of a node."""
    return f"seatrial-{node}"


def reserving(node: str) -> Command:
    """Return the command that reserves a node."""
    options = {
        "ReservationName": reservation_of(node),
        "Nodes": node,
        "StartTime": "now",
        "Duration": f"{DAYS}-00:00:00",
        "Flags": _FLAGS,
        "Users": user_name(),
    }
    words = (f"{key}={value}" for key, value in options.items())
    return ("scontrol", "create", "reservation", *words)


def renewing(node: str) -> Command:
    """Return the command that moves the end of our reservation."""
    name = f"ReservationName={reservation_of(node)}"
    return ("scontrol", "update", name, f"EndTime=now+{DAYS}days")


def deleting(node: str) -> Command:
    """Return the command that deletes our reservation."""
    return ("scontrol", "delete", f"ReservationName={reservation_of(node)}")


def draining(node: str, reason: str) -> Command:
    """Return the command that drains a node."""
    words = (f"NodeName={node}", "State=DRAIN", f"Reason={reason}")
    return ("scontrol", "update", *words)


def resuming(node: str) -> Command:
    """Return the command that puts a drained node back."""
    return ("scontrol", "update", f"NodeName={node}", "State=RESUME")


def read_slurm() -> Slurm:
    """Read nodes and reservations; SeatrialError if Slurm is silent or unclear."""
    nodes = {}
    for line in _lines("sinfo", "-N", "-h", "-o", "%N|%T|%E"):
        name, state, reason = [*line.split("|", 2), "", ""][:3]
        if not (name and state and reason):
            raise SeatrialError(f"`sinfo` prints {line!r}; expected node|state|reason")
        nodes[name] = Node(state.lower(), "" if reason == "none" else reason)
    if not nodes:
        raise SeatrialError("`sinfo` prints no node")
    reservations = {}
    for line in _lines("scontrol", "-o", "show", "reservation"):
        if line.strip() and not line.startswith("No reservations"):
            name, found = _reservation(line)
            reservations[name] = found
    return Slurm(nodes, reservations)


def _lines(*command: str) -> list[str]:
    try:
        return run(command).splitlines()
    except SeatrialError as error:
        raise SeatrialError(f"Slurm does not answer: {error}") from error


def _reservation(line: str) -> tuple[str, Reservation]:
    fields: dict[str, str] = {}
    for key, _, value in (word.partition("=") for word in line.split()):
        fields.setdefault(key, value)
    try:
        times = (datetime.fromisoformat(fields[k]) for k in ("StartTime", "EndTime"))
        found = Reservation(fields["Nodes"], fields["Users"], *times)
        return fields["ReservationName"], found
    except (KeyError, ValueError) as error:
        raise SeatrialError(
            f"`scontrol show reservation` prints {line!r}; expected its name, nodes, "
            "users, start and end"
        ) from error


def run(command: Sequence[str]) -> str:
    """Run a program of Slurm; SeatrialError if it fails or does not end."""
    said = " ".join(command[:3])
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, **HIDDEN_TOO, "SLURM_TIME_FORMAT": "standard"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SeatrialError(f"`{said}`: {error}") from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise SeatrialError(
            f"`{said}` failed: {lines[-1] if lines else 'it is silent'}"
        )
    return done.stdout


def ask(spool: Path, request: Mapping[str, str], seen: Callable[[], bool]) -> None:
    """Ask the agent, and wait until Slurm shows what is asked for.

    A request that the agent does not take in time is withdrawn: it removes a request
    before it acts, so that one of both removes it. SeatrialError says what is not done.
    """
    file = spool / f"{request['verb']}-{request['token']}.json"
    try:
        _write(file, json.dumps({**request, "time": int(time.time())}).encode())
    except OSError as error:
        raise SeatrialError(
            f"{file}: the request cannot be written: {error}"
        ) from error
    deadline, taken = time.monotonic() + _AGENT_S, False
    while not seen():
        if not taken and not os.path.lexists(file):
            deadline, taken = time.monotonic() + _TAKEN_S, True
        if time.monotonic() > deadline:
            if taken:
                raise SeatrialError(
                    "the agent took the request, and Slurm does not show it; its "
                    "journal on the controller says why"
                )
            if _withdrawn(file):
                raise SeatrialError(
                    f"the agent did not take the request within {_AGENT_S:.0f} s; it "
                    "is withdrawn; expected its timer on the controller to run"
                )
        time.sleep(_LOOK_S)


def _write(file: Path, content: bytes) -> None:
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "wb") as opened:
            os.fchmod(descriptor, 0o644)
            opened.write(content)
            opened.flush()
            os.fsync(descriptor)
        part.rename(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _withdrawn(file: Path) -> bool:
    """Remove a request; return False if the agent took it meanwhile."""
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    return True
