#!/usr/bin/env python3
"""Inventory of the second lab: a login node, a controller, and nodes of two classes.

There are LAB_NODES nodes of the class cpu (default 4), and two of the class fat. Prints
what Ansible expects of an inventory script.
"""

import json
import runpy
import sys
from pathlib import Path

LAB = runpy.run_path(str(Path(__file__).parents[1] / "lab/hosts.py"))
FAT = ("fat01", "fat02")


def inventory() -> dict[str, object]:
    """Return groups and host variables in the form of `ansible-inventory --list`."""
    cpu = [f"cn{i:02}" for i in range(1, LAB["compute_nodes"]() + 1)]
    hosts = ["login1", "admin1", *FAT, *cpu]  # login node first
    return {
        "lab": {"hosts": hosts},
        "login": {"hosts": ["login1"]},
        "controller": {"hosts": ["admin1"]},
        "compute": {"children": ["cpu", "fat"]},
        "cpu": {"hosts": cpu},
        "fat": {"hosts": list(FAT)},
        "_meta": {
            "hostvars": {
                host: {"lab_address": f"{LAB['SUBNET']}.{i}"}
                for i, host in enumerate(hosts, 1)
            }
        },
    }


if __name__ == "__main__":
    json.dump(inventory(), sys.stdout, indent=2)
