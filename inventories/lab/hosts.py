#!/usr/bin/env python3
"""Inventory of the lab: a head and LAB_NODES compute nodes (default 4).

Without LAB_NODES, a running lab says how many it has. Prints what Ansible expects of
an inventory script: every group with its hosts, and every host's variables.
"""

import json
import os
import sys
from pathlib import Path

RUNNING = Path("/run/seatrial-lab/lab.json")
SUBNET = "10.99.0"
DEFAULT = 4
MOST = 64


def compute_nodes() -> int:
    """Number of compute nodes: LAB_NODES, else of the running lab, else 4."""
    text = os.environ.get("LAB_NODES")
    if text is None and RUNNING.exists():
        nodes = json.loads(RUNNING.read_text())["nodes"]
        running = sum(name.startswith("cn") for name in nodes)
        return running or DEFAULT  # the nodes of the lab with RDMA have other names
    count = int(text) if text and text.isdecimal() else DEFAULT if not text else 0
    if not 1 <= count <= MOST:
        sys.exit(f"LAB_NODES={text}: expected a number from 1 to {MOST}")
    return count


def inventory() -> dict[str, object]:
    """Groups and host variables in the form of `ansible-inventory --list`."""
    nodes = [f"cn{i:02}" for i in range(1, compute_nodes() + 1)]
    addresses = {"head": f"{SUBNET}.1"} | {
        node: f"{SUBNET}.{10 + i}" for i, node in enumerate(nodes, 1)
    }
    return {
        "lab": {"hosts": list(addresses)},
        "login": {"hosts": ["head"]},
        "controller": {"hosts": ["head"]},
        "compute": {"hosts": nodes},
        "_meta": {
            "hostvars": {
                host: {"lab_address": address} for host, address in addresses.items()
            }
        },
    }


if __name__ == "__main__":
    json.dump(inventory(), sys.stdout, indent=2)
