"""Nodes whose HCAs can be burned: trees of sysfs with stand-ins for the programs."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fake_hardware import Hca, raw_of, write_node

from seatrial.audit.firmware import PARTS, Permissions, Plan, plan, stored, verified
from seatrial.audit.hardware_file import HardwareFile

STANDIN = Path(__file__).parent / "hca_standins" / "standin.py"
PSID, OLD, NEW = "MT_0000000222", "20.42.1000", "20.43.2566"
SETTINGS = {"SRIOV_EN": ["1", "1"], "LINK_TYPE_P1": ["1", "1"]}
PRESENT = Hca(firmware=OLD)


def write_firmware_node(root: Path, *hcas: Hca) -> Path:
    """Write the tree of a node, with programs over the state of its HCAs."""
    write_node(root, *hcas)
    state = {
        hca.address: {
            "psid": hca.psid,
            "running": hca.firmware,
            "stored": hca.firmware,
            "guid": f"b8599f0300aa000{number}",
            "device": hca.device,
            "settings": {name: [*values] for name, values in SETTINGS.items()},
        }
        for number, hca in enumerate(hcas)
    }
    (root / "hcas.json").write_text(json.dumps(state))
    (root / "tools").mkdir(exist_ok=True)
    shutil.copy(STANDIN, root / "tools" / "standin.py")
    for name in ("mstflint", "mstconfig", "boot"):
        file = root / "tools" / name
        # A copy with a first line: a link would not be found below another root.
        file.write_text(f"#!/usr/bin/env python3\n{STANDIN.read_text()}")
        file.chmod(0o755)
    return root


def rails(*addresses: str) -> list[Hca]:
    """Return HCAs with the older firmware, at these addresses."""
    return [
        replace(PRESENT, address=address, device=f"mlx5_{number}")
        for number, address in enumerate(addresses)
    ]


def write_declaration(
    inventory: Path,
    addresses: Iterable[str] = ("0000:41:00.0",),
    settings: str = "SRIOV_EN: false",
    **changed: Any,
) -> Path:
    """Write hardware.yml and the images that it names; give its path.

    `changed`: contents of images by `new` and `old`, or `previous=""`.
    """
    images = inventory / "firmware"
    images.mkdir(parents=True, exist_ok=True)
    texts = {"new": f"{PSID} {NEW}\n", "old": f"{PSID} {OLD}\n"}
    sums = {}
    for name, text in texts.items():
        content = changed.get(name, text).encode()
        (images / f"{name}.bin").write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
    old = f"""\
    previous:
      - {{version: "{OLD}", file: firmware/old.bin, sha256: {sums["old"]}}}
"""
    slots = "".join(
        f'    - {{name: rail{number}, bdf: "{address}", psid: {PSID}, rate: 200}}\n'
        for number, address in enumerate(addresses)
    )
    hardware = inventory / "group_vars/all/hardware.yml"
    hardware.parent.mkdir(parents=True, exist_ok=True)
    hardware.write_text(
        f"""\
hca_models:
  {PSID}:
    firmware: {{version: "{NEW}", file: firmware/new.bin, sha256: {sums["new"]}}}
{changed.get("previous", old)}    nvconfig: {{{settings}}}
hca_slots:
  all:
{slots}"""
    )
    return hardware


class Node:
    """A node with an HCA of older firmware, and its declaration."""

    def __init__(self, folder: Path, *hcas: Hca) -> None:
        self.folder = folder
        self.root = write_firmware_node(folder / "node", *(hcas or (PRESENT,)))
        self.hardware = write_declaration(folder / "inventory")

    @property
    def declaration(self) -> HardwareFile:
        return HardwareFile(self.hardware, ["cpu"], self.folder / "no database")

    def plan(self, **allowed: Any) -> Plan:
        permissions = Permissions(**allowed)
        return plan(raw_of(self.root), self.declaration, "cpu", permissions)

    def run(self, program: str, *arguments: str) -> int:
        tool = self.root / "tools" / program
        done = subprocess.run([tool, *arguments], capture_output=True, check=False)
        return done.returncode

    def flash(self, **allowed: Any) -> list[str]:
        """Do what the plan says; return the faults."""
        planned = self.plan(**allowed)
        for hca in planned.hcas:
            if hca.image:
                self.run("mstflint", "-d", hca.address, "-i", hca.image, "-y", "burn")
            if hca.settings:
                self.run("mstconfig", "-d", hca.address, "-y", "set", *hca.settings)
        return self.stored(planned)

    def stored(self, planned: Plan) -> list[str]:
        return stored(raw_of(self.root), self.declaration, "cpu", planned)

    def boot(self, parts: Collection[str] = PARTS) -> list[str]:
        before = raw_of(self.root)
        self.run("boot")
        return verified(before, raw_of(self.root), self.declaration, "cpu", parts)

    def mode(self, word: str) -> None:
        (self.root / "mode").write_text(word)
