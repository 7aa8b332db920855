"""A stand-in for scontrol and sinfo that keeps nodes and reservations in a file."""

import json
import os
import pwd
import sys
from pathlib import Path
from typing import Any

PROGRAM = """#!{python}
import json, os, pathlib, sys
file = pathlib.Path({file!r})
slurm = json.loads(file.read_text())
words = sys.argv[1:]
if slurm["silent"]:
    sys.exit("slurm_load_node error: Unable to contact slurm controller")
if os.path.basename(sys.argv[0]) == "sinfo":
    for name, (state, user, reason) in slurm["nodes"].items():
        print(f"{{name}}|{{state}}|{{user}}|{{reason}}")
    sys.exit()
pairs = dict(word.split("=", 1) for word in words if "=" in word)
if "show" in words:
    for one in slurm["reservations"].values():
        print(" ".join(f"{{key}}={{value}}" for key, value in one.items()))
    if not slurm["reservations"]:
        print("No reservations in the system")
    sys.exit()
slurm["calls"].append(words)
if words[0] == "create":
    slurm["reservations"][pairs["ReservationName"]] = pairs
elif words[0] == "delete":
    del slurm["reservations"][pairs["ReservationName"]]
elif pairs.get("State") == "DRAIN":
    slurm["nodes"][pairs["NodeName"]] = ["drained", {user!r}, pairs["Reason"]]
elif pairs.get("State") == "RESUME":
    slurm["nodes"][pairs["NodeName"]] = ["idle", "Unknown", "none"]
file.write_text(json.dumps(slurm))
"""


class FakeSlurm:
    """The programs in a folder, and what they keep."""

    def __init__(self, folder: Path, nodes: list[str]) -> None:
        self.file = folder / "slurm.json"
        self.folder = folder / "bin"
        self.folder.mkdir()
        idle = {node: ["idle", "Unknown", "none"] for node in nodes}
        self.save({"silent": 0, "nodes": idle, "reservations": {}, "calls": []})
        user = pwd.getpwuid(os.geteuid()).pw_name
        text = PROGRAM.format(python=sys.executable, file=str(self.file), user=user)
        for name in ("scontrol", "sinfo"):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def save(self, content: dict[str, Any]) -> None:
        """Replace what is kept."""
        self.file.write_text(json.dumps(content))

    def load(self) -> Any:
        """Return what is kept."""
        return json.loads(self.file.read_text())

    def change(self, key: str, name: str, value: Any) -> None:
        """Change one node or reservation, as an administrator does."""
        content = self.load()
        content[key][name] = value
        self.save(content)

    @property
    def calls(self) -> list[list[str]]:
        """The commands that changed Slurm."""
        calls: list[list[str]] = self.load()["calls"]
        return calls
