"""A stand-in for scontrol and sinfo that keeps nodes and reservations in a file."""

import fcntl
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

_PROGRAM = """#!{python} -IS
import datetime, fcntl, json, os, pathlib, sys
file = pathlib.Path({file!r})
alone = open({file!r} + ".lock", "w")
fcntl.flock(alone, fcntl.LOCK_EX)
slurm = json.loads(file.read_text())
words = sys.argv[1:]
slurm["reads"] += 1
if slurm["reads"] == slurm["then"].get("read", 0):
    slurm["nodes"].update(slurm["then"]["nodes"])
file.write_text(json.dumps(slurm))
if slurm["silent"]:
    sys.exit("slurm_load_node error: Unable to contact slurm controller")
if os.path.basename(sys.argv[0]) == "sinfo":
    for name, (state, reason) in slurm["nodes"].items():
        print(f"{{name}}|{{state}}|{{reason}}")
    sys.exit()
pairs = dict(word.split("=", 1) for word in words if "=" in word)
name = pairs.get("ReservationName")
if "show" in words:
    for one in slurm["reservations"].values():
        print(" ".join(f"{{key}}={{value}}" for key, value in one.items()))
    if not slurm["reservations"]:
        print("No reservations in the system")
    sys.exit()
slurm["calls"].append(words)
now = datetime.datetime.now().replace(microsecond=0)
end = (now + datetime.timedelta(days=7)).isoformat()
if slurm["denied"]:
    file.write_text(json.dumps(slurm))
    sys.exit("Error creating the reservation: Access/permission denied")
if words[0] == "create":
    times = dict(StartTime=now.isoformat(), EndTime=end)
    slurm["reservations"][name] = {{**pairs, **times}}
    slurm["nodes"][pairs["Nodes"]][0] = "maint"
elif words[0] == "delete":
    node = slurm["reservations"].pop(name)["Nodes"]
    slurm["nodes"][node][0] = "idle"
elif name:
    slurm["reservations"][name]["EndTime"] = end
elif pairs["State"] == "DRAIN":
    slurm["nodes"][pairs["NodeName"]] = ["drained", pairs["Reason"]]
else:
    slurm["nodes"][pairs["NodeName"]] = ["idle", "none"]
file.write_text(json.dumps(slurm))
"""


class FakeSlurm:
    """The programs in `folder`, and what they keep."""

    def __init__(self, folder: Path, nodes: list[str]) -> None:
        self.file, self.folder = folder / "slurm.json", folder / "bin"
        self.folder.mkdir()
        kept: dict[str, Any] = {"silent": False, "denied": False, "calls": []}
        kept |= {"nodes": {node: ["idle", "none"] for node in nodes}}
        kept |= {"reservations": {}, "reads": 0, "then": {}}
        self.file.write_text(json.dumps(kept))
        text = _PROGRAM.format(python=sys.executable, file=str(self.file))
        for name in ("scontrol", "sinfo"):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def load(self) -> Any:
        return json.loads(self.file.read_text())

    @contextmanager
    def changed(self) -> Iterator[Any]:
        """Yield the kept state for a change, while no program reads it."""
        with Path(f"{self.file}.lock").open("w") as alone:
            fcntl.flock(alone, fcntl.LOCK_EX)
            content = self.load()
            yield content
            self.file.write_text(json.dumps(content))

    def set(self, **more: Any) -> None:
        """Replace some of what is kept."""
        with self.changed() as content:
            content.update(more)

    def node(self, name: str, state: str, reason: str = "none") -> None:
        """Change a node, as an administrator does."""
        with self.changed() as content:
            content["nodes"][name] = [state, reason]

    def reserve(self, node: str, users: str = "root", age: float = 0.0) -> None:
        """Make a reservation of our name that began some days ago."""
        start = datetime.now().replace(microsecond=0) - timedelta(days=age)
        name = f"seatrial-{node}"
        with self.changed() as content:
            content["reservations"][name] = {
                "ReservationName": name,
                "StartTime": start.isoformat(),
                "EndTime": (start + timedelta(days=7)).isoformat(),
                "Nodes": node,
                "Users": users,
            }

    @property
    def reservations(self) -> dict[str, dict[str, str]]:
        kept: dict[str, dict[str, str]] = self.load()["reservations"]
        return kept

    @property
    def calls(self) -> list[list[str]]:
        """The commands that changed Slurm, or tried to."""
        calls: list[list[str]] = self.load()["calls"]
        return calls
