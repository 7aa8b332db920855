#!/usr/bin/env python3
"""Inventory of the scale lab: a head, and containers that carry many Slurm nodes each.

LAB_SCALE is the number of Slurm nodes (default 256). Without it, a running lab says how
many it has. Prints what Ansible expects of an inventory script: every group with its
hosts, and every host's variables.
"""

import json
import os
import sys
from pathlib import Path

RUNNING = Path("/run/seatrial-lab/lab.json")
SUBNET = "10.97.0"
DEFAULT = 256
FEWEST, MOST = 8, 1024
PER_CARRIER = 256
PER_LEAF = 32


def scale() -> int:
    """Return the number of Slurm nodes: LAB_SCALE, else of a running lab, else 256."""
    text = os.environ.get("LAB_SCALE")
    if not text and RUNNING.exists():
        return json.loads(RUNNING.read_text()).get("scale") or DEFAULT
    count = int(text) if text and text.isdecimal() else 0 if text else DEFAULT
    if not FEWEST <= count <= MOST:
        sys.exit(f"LAB_SCALE={text}: expected a number from {FEWEST} to {MOST}")
    return count


def ranges(nodes: int, size: int) -> list[range]:
    """Return the numbers of nodes, from 1 on, in parts of one size."""
    starts = range(1, nodes + 1, size)
    return [range(start, min(start + size, nodes + 1)) for start in starts]


def host_list(numbers: range) -> str:
    """Return the Slurm nodes of these numbers as a host list."""
    return f"n[{numbers[0]:04}-{numbers[-1]:04}]"


def inventory() -> dict[str, object]:
    """Return groups and host variables in the form of `ansible-inventory --list`."""
    nodes = scale()
    hosts: dict[str, dict[str, object]] = {"mhead": {"lab_address": f"{SUBNET}.1"}}
    for i, numbers in enumerate(ranges(nodes, PER_CARRIER), 1):
        address = f"{SUBNET}.{10 + i}"
        names = [f"n{number:04}" for number in numbers]
        hosts[f"carrier{i}"] = {
            "lab_address": address,
            "slurm_nodes": names,
            "slurm_address": address,
        }
    leafs = {
        f"leaf{i:02}": host_list(numbers)
        for i, numbers in enumerate(ranges(nodes, PER_LEAF), 1)
    }
    facts = {
        "lab_scale": nodes,
        "model_nodes": host_list(range(1, nodes + 1)),
        "model_leafs": leafs,
    }
    return {
        "all": {"vars": facts},
        "lab": {"hosts": list(hosts)},
        "login": {"hosts": ["mhead"]},
        "controller": {"hosts": ["mhead"]},
        "compute": {"hosts": [host for host in hosts if host != "mhead"]},
        "_meta": {"hostvars": hosts},
    }


if __name__ == "__main__":
    json.dump(inventory(), sys.stdout, indent=2)
