#!/usr/bin/python
"""Ansible module: links to the programs of MPI stacks, and no others."""

from __future__ import annotations

import os
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: mpi_links
short_description: Link programs of MPI stacks by the names that checks call them by
description:
  - A stack has a folder of links, called like it; links left from before are removed.
options:
  folder:
    description: Folder that holds the folders of all stacks.
    type: path
    required: true
  stacks:
    description: The stacks as C(mpi_stack_info) returns them.
    type: list
    elements: dict
    required: true
author: The Seatrial authors
"""

EXAMPLES = r"""
- name: Programs are linked
  mpi_links:
    folder: /shared/seatrial/mpi/links
    stacks: "{{ mpi_found.stacks }}"
"""

RETURN = r"""
made:
  description: Paths of new and changed links.
  returned: always
  type: list
removed:
  description: Paths of links that no stack names.
  returned: always
  type: list
"""


def changes(folder: Path, wanted: dict[str, str]) -> tuple[list[Path], list[Path]]:
    """Links to make and links to remove, for a folder to have the wanted ones."""
    present = {
        link: os.readlink(link) for link in folder.glob("*") if link.is_symlink()
    }
    make = [
        link
        for link, target in ((folder / name, wanted[name]) for name in sorted(wanted))
        if present.get(link) != target
    ]
    return make, sorted(link for link in present if link.name not in wanted)


def link(make: list[Path], remove: list[Path], wanted: dict[str, str]) -> None:
    """Create and remove links; a job finds the old or the new one at any moment."""
    for path in make:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.new")
        new.unlink(missing_ok=True)
        new.symlink_to(wanted[path.name])
        new.replace(path)
    for path in remove:
        path.unlink()


def main() -> None:
    """Bring the folder of every stack to what the stack says."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "stacks": {"type": "list", "elements": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    made, removed = [], []
    for stack in module.params["stacks"]:
        wanted = {Path(each["path"]).name: each["target"] for each in stack["links"]}
        folder = Path(module.params["folder"], stack["name"])
        try:
            make, remove = changes(folder, wanted)
            if not module.check_mode:
                link(make, remove, wanted)
        except OSError as error:
            module.fail_json(
                msg=f"stack {stack['name']}: links to its programs: {error}"
            )
        made += map(str, make)
        removed += map(str, remove)
    module.exit_json(changed=bool(made or removed), made=made, removed=removed)


if __name__ == "__main__":
    main()
