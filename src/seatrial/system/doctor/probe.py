"""Facts of a login node and of one node of each class, collected over ssh."""

import secrets
import shlex
import subprocess
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from seatrial.system.login_node import Remote

TIMEOUT_S = 600
SETTINGS = {
    "classes": "{{ node_classes | default([]) }}",
    "stacks": "{{ mpi_stacks | default([]) }}",
    "python": "{{ suite_python | default('/usr/bin/python3') }}",
}
"""Ansible templates of the variables that the probe needs."""

OPTIONS = ("constraint", "account", "qos", "reservation", "gres", "mem")
"""Keys of a class that are options of sbatch."""


@dataclass
class Facts:
    """What a login node printed: values by name, and those of a node by class.

    `sent` and `received` are this machine's clock, UTC seconds. `error` is ssh's if the
    probe did not end.
    """

    token: str
    values: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    errors: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    sent: float = 0.0
    received: float = 0.0
    error: str = ""

    def first(self, name: str) -> str:
        """Return the first value of a name; '' if there is none."""
        return next(iter(self.values.get(name, ())), "")


def probe(remote: Remote, settings: Mapping[str, Any]) -> Facts:
    """Run the probe on the login node; nothing stays there but an empty prefix."""
    token = secrets.token_hex(8)
    script = probe_script(remote.prefix, token, settings)
    facts = Facts(token, sent=time.time())
    try:
        done = subprocess.run(
            remote.ssh(["bash", "-l", "-s"]),
            input=script,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        facts.error = f"no end within {TIMEOUT_S} s"
        return facts
    facts.received = time.time()
    read_facts(done.stdout, facts)
    if not facts.first("end"):
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        facts.error = lines[-1] if lines else f"exit status {done.returncode}"
    return facts


def probe_script(prefix: str, token: str, settings: Mapping[str, Any]) -> str:
    """Return the script for the login node, with its variables."""
    scripts = files("seatrial.system.doctor")
    variables = {
        "prefix": prefix,
        "token": token,
        "python": str(settings["python"]),
        "node_script": scripts.joinpath("node.sh").read_text(),
        "classes": "\n".join(
            f"{described['name']}|{shlex.join(access(described))}"
            for described in settings["classes"]
        ),
        "stacks": "\n".join(map(_stack, settings["stacks"])),
    }
    lines = [f"{name}={shlex.quote(text)}" for name, text in variables.items()]
    return "\n".join([*lines, scripts.joinpath("login.sh").read_text()])


def access(described: Mapping[str, Any]) -> list[str]:
    """Return the options of sbatch of a class."""
    options = [f"--partition={described.get('partition', described['name'])}"]
    options += [f"--{key}={described[key]}" for key in OPTIONS if described.get(key)]
    return [*options, *described.get("access", ())]


def _stack(stack: Mapping[str, Any]) -> str:
    is_there = stack.get("provider") == "distribution"
    parts = (
        stack["name"],
        " ".join(stack.get("module_folders", ())),
        " ".join(stack.get("modules", ())),
        str(stack.get("compiler", "")) if is_there else "",
    )
    return "|".join(parts)


def read_facts(text: str, facts: Facts) -> None:
    """Read the lines that the probe printed; others are of the site's profile."""
    for line in text.splitlines():
        name, tab, value = line.partition("\t")
        if not tab:
            continue
        kind, _, node_class = name.partition(" ")
        if kind != "class":
            facts.values[name].append(value.strip())
            continue
        # `tr` of the login node made a space of the tab.
        key, _, content = value.partition(" ")
        if key in NODE_KEYS:
            facts.nodes.setdefault(node_class, {})[key] = content.strip()
        else:
            facts.errors[node_class].append(value.strip())


NODE_KEYS = (
    *("clock", "node", "host", "architecture", "memlock", "token", "writable", "locks"),
    *("python", "suite", "tmp_runs", "tmp_free_mib", "end"),
)
"""Names of the facts of a node; other lines are srun's errors."""
