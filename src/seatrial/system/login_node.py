"""The login node of a system, as Ansible sees it in the inventory."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.system.description import unknown_system

_NOTICE_LOSS = ("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
_VARIABLES = {
    "host": "{{ ansible_host | default(inventory_hostname) }}",
    "port": "{{ ansible_port | default('') }}",
    "user": "{{ ansible_user | default('') }}",
    "key": "{{ ansible_ssh_private_key_file | default('') }}",
    "arguments": "{{ ansible_ssh_common_args | default('') }}",
    "prefix": "{{ seatrial_prefix | default('') }}",
}


@dataclass(frozen=True)
class Remote:
    """The login node of a system: how to reach it, and the suite's prefix there."""

    host: str
    prefix: str
    options: tuple[str, ...] = ()

    def ssh(self, command: Sequence[str], *, tty: bool = False) -> list[str]:
        """Return the local command that runs a command there."""
        flags = ["-tt" if tty else "-T", *_NOTICE_LOSS]
        return ["ssh", *flags, *self.options, self.host, shlex.join(command)]


def load_remote(home: Path, system: str) -> Remote:
    """Read the login node of a system from its inventory.

    Raises SeatrialError if there is no such inventory, if it cannot be read, or if
    it has no host in the group `login` or no `seatrial_prefix`.
    """
    inventory = home / "inventories" / system
    if not inventory.is_dir():
        raise unknown_system(home, system)
    values = login_variables(inventory, home, _VARIABLES)
    variables = {name: str(value) for name, value in values.items()}
    if not variables["prefix"]:
        raise SeatrialError(
            f"{inventory}: the login node needs the variable `seatrial_prefix`, the "
            "path where the suite is installed"
        )
    options: list[str] = []
    for flag, name in (("-p", "port"), ("-i", "key"), ("-l", "user")):
        if variables[name]:
            options += [flag, variables[name]]
    options += shlex.split(variables["arguments"])
    return Remote(variables["host"], variables["prefix"], tuple(options))


def login_variables(
    inventory: Path, home: Path, templates: Mapping[str, str]
) -> dict[str, Any]:
    """Fill in Ansible templates for the first host of the group `login`.

    Raises SeatrialError if there is no such host, or the inventory cannot be read.
    """
    beside = Path(sys.executable).parent / "ansible"
    program = str(beside) if beside.exists() else shutil.which("ansible")
    if program is None:
        raise SeatrialError(f"{inventory}: ansible is not installed; run `make deps`")
    message = json.dumps({"msg": dict(templates)})
    done = subprocess.run(
        [program, "-i", str(inventory), "login[0]", "-m", "debug", "-a", message],
        cwd=home,
        env={**os.environ, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
        capture_output=True,
        text=True,
        check=False,
    )
    _, arrow, answer = done.stdout.partition(" => ")
    if done.returncode or not arrow:
        problem = done.stderr.strip() or done.stdout.strip()
        raise SeatrialError(
            f"{inventory}: no login node found; expected a host in the group "
            f"`login`, where jobs are submitted; Ansible says:\n{problem}"
        )
    return dict(json.loads(answer)["msg"])
