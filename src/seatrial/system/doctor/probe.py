"""Facts of a login node and of one node of each class, collected over ssh."""

import secrets
import shlex
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from seatrial.system.login_node import Remote
from seatrial.system.login_shell import SHELL, run_script

TIMEOUT_S = 600
SETTINGS = {
    "classes": "{{ node_classes | default([]) }}",
    "groups": "{{ groups }}",
    "stacks": "{{ mpi_stacks | default([]) }}",
    "python": "{{ suite_python | default('/usr/bin/python3') }}",
    "modules_system": "{{ suite_modules_system | default('lmod') }}",
}
"""Ansible templates of the variables that the doctor needs."""

COMMANDS = ("sbatch", "srun", "squeue", "sinfo", "scontrol", "sacct", "scancel")
"""Programs of Slurm that the suite calls on the login node."""

ACCESS_KEYS = ("constraint", "account", "qos", "reservation", "gres", "mem")
"""Keys of a class that are options of sbatch, as in the role nodes."""


@dataclass
class Facts:
    """The lines that a probe printed: values by subject and name.

    A subject is `login`, `class NAME` or `stack NAME`. `sent` and `received` are this
    machine's clock, UTC seconds. `error` is ssh's if the probe did not end.
    """

    token: str
    values: dict[tuple[str, str], list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )
    sent: float = 0.0
    received: float = 0.0
    error: str = ""

    def all(self, name: str, subject: str = "login") -> list[str]:
        """Return the values of a name."""
        return self.values.get((subject, name), [])

    def first(self, name: str, subject: str = "login") -> str:
        """Return the first value of a name; '' if there is none."""
        return next(iter(self.all(name, subject)), "")


def probe(remote: Remote, settings: Mapping[str, Any]) -> Facts:
    """Run the probe on the login node; nothing stays there but an empty prefix."""
    token = secrets.token_hex(8)
    return run_probe(remote, probe_script(remote.prefix, token, settings), token)


def run_probe(remote: Remote, script: str, token: str = "") -> Facts:
    """Run a script of facts on the login node, in a login shell."""
    facts = Facts(token, sent=time.time())
    text, reason = run_script(remote.ssh(SHELL), script, TIMEOUT_S)
    facts.received = time.time()
    read_facts(text, facts)
    if not facts.first("end"):
        facts.error = reason
    return facts


def probe_script(prefix: str, token: str, settings: Mapping[str, Any]) -> str:
    """Return the script for the login node, with its variables."""
    scripts = files("seatrial.system.doctor")
    variables = {
        "prefix": prefix,
        "token": token,
        "python": str(settings["python"]),
        "commands": " ".join(COMMANDS),
        "node_script": scripts.joinpath("node.sh").read_text(),
        "classes": "\n".join(
            f"{node_class['name']}|{host_list(node_class, settings['groups'])}|"
            f"{shlex.join(access(node_class))}"
            for node_class in settings["classes"]
        ),
        "stacks": "\n".join(map(_stack, settings["stacks"])),
    }
    lines = [f"{name}={shlex.quote(text)}" for name, text in variables.items()]
    parts = (scripts.joinpath(name).read_text() for name in ("facts.sh", "login.sh"))
    return "\n".join([*lines, *parts])


def access(node_class: Mapping[str, Any]) -> list[str]:
    """Return the options of sbatch of a class."""
    options = [f"--partition={node_class.get('partition', node_class['name'])}"]
    options += [
        f"--{key}={node_class[key]}"
        for key in ACCESS_KEYS
        if node_class.get(key) not in (None, "")
    ]
    return [*options, *node_class.get("access", ())]


def host_list(node_class: Mapping[str, Any], groups: Mapping[str, list[str]]) -> str:
    """Return the host list of a class."""
    hosts = groups.get(node_class.get("group", "compute"), [])
    return str(node_class.get("nodes") or ",".join(hosts))


def _stack(stack: Mapping[str, Any]) -> str:
    programs = []
    if stack.get("provider") == "distribution":
        programs += [stack.get("compiler", "")]
        programs += ["mpirun"] if stack.get("launcher") == "mpirun" else []
    parts = (stack.get("module_folders", ()), stack.get("modules", ()), programs)
    return "|".join((stack["name"], *(" ".join(map(str, part)) for part in parts)))


def read_facts(text: str, facts: Facts) -> None:
    """Read the lines that the probe printed; others are of the site's profile."""
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 3:
            subject, name, value = fields
            facts.values[subject, name].append(value.strip())
