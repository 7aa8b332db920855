"""Decisions of the roles hca, node and roce: `python -m seatrial.audit.steps STEP`.

A JSON object comes from standard input, another goes to standard output. Its keys are
those of `_Given`; `error` is set instead if the declaration is not valid.
"""

import json
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from seatrial.audit.firmware import (
    PARTS,
    Permissions,
    Plan,
    plan,
    stored,
    verified,
)
from seatrial.audit.hardware_file import NAME, HardwareFile
from seatrial.audit.images import check_images
from seatrial.audit.node_files import Family, node_files
from seatrial.audit.node_rows import settings_drift
from seatrial.errors import SeatrialError
from seatrial.output import echo


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    """`inventory` is a folder; `before` and `after` are raw outputs of node.sh.

    Their lines may end as a terminal ends them.
    """

    inventory: str
    classes: list[str]
    node_class: str = ""
    before: str = ""
    after: str = ""
    plan: Plan = msgspec.field(default_factory=Plan)
    parts: list[str] = msgspec.field(default_factory=lambda: [*PARTS])
    allow_downgrade: list[str] = []
    no_way_back: bool = False
    role: Literal["node", "roce"] = "node"
    family: Family = "Debian"


def step(name: str, given: _Given) -> Any:
    """Return the result of a step: paths, faults, or a plan."""
    before, after = (text.replace("\r\n", "\n") for text in (given.before, given.after))
    declaration = HardwareFile(Path(given.inventory) / NAME, given.classes)
    if name == "images":
        return [str(path) for path in check_images(declaration)]
    parts = [part for part in PARTS if part in given.parts or "all" in given.parts]
    if name == "plan":
        allowed = Permissions(given.allow_downgrade, given.no_way_back, parts)
        return plan(before, declaration, given.node_class, allowed)
    if name == "settings":
        files = node_files(declaration, given.node_class, given.role, given.family)
        drift = settings_drift(before, declaration, given.node_class, files.keys)
        boot = settings_drift(before, declaration, given.node_class, files.boot_keys)
        return {**msgspec.to_builtins(files), "drift": drift, "reboot": bool(boot)}
    if name == "stored":
        return stored(after, declaration, given.node_class, given.plan)
    try:
        return verified(before, after, declaration, given.node_class, parts)
    except SeatrialError as error:  # a node that still boots: the role asks again
        return [str(error)]


def main() -> None:
    """Run the step that the first argument names."""
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=_Given)
    try:
        answer = {"result": msgspec.to_builtins(step(sys.argv[1], given)), "error": ""}
    except SeatrialError as error:
        answer = {"result": None, "error": str(error)}
    echo(json.dumps(answer))


if __name__ == "__main__":
    main()
