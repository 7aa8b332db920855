#!/usr/bin/env python3
"""Inventory of the lab with RDMA: a head, and two nodes that are virtual machines.

Prints what Ansible expects of an inventory script.
"""

import json
import sys

ADDRESSES = {"rhead": "10.98.0.1", "rn01": "10.98.0.11", "rn02": "10.98.0.12"}


def inventory() -> dict[str, object]:
    """Return groups and host variables in the form of `ansible-inventory --list`."""
    hosts = {host: {"lab_address": address} for host, address in ADDRESSES.items()}
    return {
        "lab": {"hosts": list(hosts)},
        "login": {"hosts": ["rhead"]},
        "controller": {"hosts": ["rhead"]},
        "compute": {"hosts": ["rn01", "rn02"]},
        "_meta": {"hostvars": hosts},
    }


if __name__ == "__main__":
    json.dump(inventory(), sys.stdout, indent=2)
