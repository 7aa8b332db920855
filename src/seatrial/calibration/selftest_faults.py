"""The faults that a self-test may plant on a system, and how each is lifted."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.system.login_node import login_variables

LAB = "lab"
VARIABLE = "selftest_faults"

_KEYS = {"name", "what", "node", "plant", "lift"}
_OPTIONAL = {"checks", "repeats", "absent", "rail"}
_COMMAND_S = 120


@dataclass(frozen=True)
class Fault:
    """What is wrong with one node, and what must find it.

    `checks` are those of the campaign that can see it (none: all), `repeats` how often
    they run (None: as the campaign says). An `absent` node fails the inventory, with a
    `rail` the numbers or programs of this rail fail, any other node is convicted by its
    numbers. `lift` may be called at any time, and twice.
    """

    name: str
    what: str
    node: str
    plant: Callable[[], None]
    lift: Callable[[], None]
    checks: tuple[str, ...] = ()
    repeats: int | None = None
    absent: bool = False
    rail: str = ""

    @property
    def expected(self) -> str:
        """What a judgement has to say."""
        if self.rail:
            return f"{self.rail} of {self.node} fails"
        return f"{self.node} is {'absent' if self.absent else 'convicted'}"


def known_faults(home: Path, system: str, node: str | None = None) -> dict[str, Fault]:
    """Return the faults that may be planted on a system, by name.

    `node` is where those of the lab are planted; by default the lab's last. Raises
    SeatrialError if the system allows none, or describes them badly.
    """
    inventory = home / "inventories" / system
    if not inventory.is_dir():
        raise SeatrialError(
            f"{inventory}: there is no such inventory; a self-test runs on the machine "
            "from which Ansible provisions the system"
        )
    template = {VARIABLE: f"{{{{ {VARIABLE} | default([]) }}}}"}
    described = login_variables(inventory, home, template)[VARIABLE]
    if described:
        if node is not None:
            raise SeatrialError(
                f"--node: each fault of {VARIABLE} in {inventory} has its own node"
            )
        return _described(inventory, described)
    if system == LAB:
        return _of_the_lab(node)
    raise SeatrialError(
        f"system {system!r} allows no self-test: a fault would be planted in a machine "
        f"that others use. If it may, describe in {inventory} which: variable "
        f"{VARIABLE}, a list of {{name, what, node, plant, lift}}; see "
        "inventories/sample"
    )


def _of_the_lab(node: str | None) -> dict[str, Fault]:
    from seatrial.system.lab.faults import LAB_FAULTS
    from seatrial.system.lab.state import require

    lab = require()
    where = node or list(lab.nodes)[-1]
    if where not in lab.nodes or where == "head":
        nodes = ", ".join(name for name in lab.nodes if name != "head")
        raise SeatrialError(f"--node {where}: the lab's compute nodes are {nodes}")
    checks = {"slow-cpu": ("NodeSweep",)}
    repeats = {"slow-cpu": 2, "dead-daemon": 1}  # no chance in what they show
    return {
        name: Fault(
            name,
            fault.what,
            where,
            plant=partial(fault.plant, where),
            lift=partial(fault.lift, where),
            checks=checks.get(name, ("PairSweep",)),
            repeats=repeats.get(name),
            absent=name == "dead-daemon",
        )
        for name, fault in LAB_FAULTS.items()
    }


def _described(inventory: Path, described: Any) -> dict[str, Fault]:
    """Read the variable of an inventory; its commands are run by a shell here."""
    where = f"{inventory}: {VARIABLE}"
    if not isinstance(described, list):
        raise SeatrialError(f"{where}: expected a list, found {described!r}")
    faults = [_fault(where, entry) for entry in described]
    names = [fault.name for fault in faults]
    if len(set(names)) < len(names):
        raise SeatrialError(f"{where}: expected names of their own, found {names}")
    return dict(zip(names, faults, strict=True))


def _fault(where: str, entry: Any) -> Fault:
    keys = set(entry) if isinstance(entry, dict) else set()
    if not _KEYS <= keys <= _KEYS | _OPTIONAL:
        raise SeatrialError(
            f"{where}: expected mappings with {', '.join(sorted(_KEYS))} and perhaps "
            f"{', '.join(sorted(_OPTIONAL))}, found {entry!r}"
        )
    texts = {key: entry[key] for key in _KEYS}
    rail = entry.get("rail", "")
    checks, repeats = entry.get("checks", []), entry.get("repeats")
    absent = entry.get("absent", False)
    sound = (
        all(isinstance(text, str) and text for text in texts.values())
        and isinstance(checks, list)
        and all(isinstance(check, str) for check in checks)
        and (repeats is None or (type(repeats) is int and repeats > 0))
        and isinstance(absent, bool)
        and isinstance(rail, str)
    )
    if not sound:
        raise SeatrialError(
            f"{where}: {texts['name']!r}: expected texts, a list of checks, a number "
            f"of repeats, absent: true or false, and a rail, found {entry!r}"
        )
    return Fault(
        texts["name"],
        texts["what"],
        texts["node"],
        plant=lambda: _shell(texts["plant"]),
        lift=lambda: _shell(texts["lift"]),
        checks=tuple(checks),
        repeats=repeats,
        absent=absent,
        rail=rail,
    )


def _shell(command: str) -> None:
    """Run a command; SeatrialError if it fails or does not end."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
    except subprocess.TimeoutExpired:
        raise SeatrialError(f"`{command}`: no end in {_COMMAND_S} s") from None
    if done.returncode:
        raise SeatrialError(
            f"`{command}` failed with exit status {done.returncode}: "
            f"{done.stdout.strip()}"
        )
