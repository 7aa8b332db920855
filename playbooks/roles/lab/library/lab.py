#!/usr/bin/python
"""Ansible module: the nodes of the lab are running, or gone."""

DOCUMENTATION = """
module: lab
short_description: The lab's nodes are running, or gone
options:
  state: {type: str, choices: [present, absent], default: present}
  home: {type: path, required: true, description: Folder of overlays and access.}
  image: {type: path, description: Base image; needed for C(present).}
  nodes: {type: dict, description: Node names and addresses; needed for C(present).}
  user: {type: str, description: Benchmark user; needed for C(present).}
  machines: {type: list, elements: str, description: Nodes that are virtual machines.}
  scale: {type: int, default: 0, description: Slurm nodes that containers carry.}
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from seatrial.errors import SeatrialError
from seatrial.system.lab import cluster, container, state


def main() -> None:
    """Bring the lab to the wanted state; check mode says whether that would change."""
    module = AnsibleModule(
        argument_spec={
            "state": {"choices": ["present", "absent"], "default": "present"},
            "home": {"type": "path", "required": True},
            "image": {"type": "path"},
            "nodes": {"type": "dict"},
            "user": {"type": "str"},
            "machines": {"type": "list", "elements": "str", "default": []},
            "scale": {"type": "int", "default": 0},
        },
        required_if=[("state", "present", ("image", "nodes", "user"))],
        supports_check_mode=True,
    )
    wanted = module.params
    home = Path(wanted["home"])
    present = wanted["state"] == "present"
    try:
        if module.check_mode:
            running = state.load()
            alive = running is not None and all(
                container.is_running(node) for node in running.nodes
            )
            there = alive if present else not (running or home.exists())
            module.exit_json(changed=not there)
        if present:
            changes = cluster.up(
                home,
                Path(wanted["image"]),
                wanted["nodes"],
                wanted["user"],
                wanted["machines"],
                wanted["scale"],
            )
        else:
            changes = cluster.down(home)
    except SeatrialError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(changes), changes=changes)


if __name__ == "__main__":
    main()
