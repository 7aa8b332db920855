"""An audit: the settings of all nodes of a system, each with its verdict."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.audit.collect import Collected, collect, login_script, of_folder
from seatrial.audit.expected import expected, rails, sysctls
from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.readings import readings
from seatrial.audit.rows import NodeClass, Row, rows_of
from seatrial.errors import Exit, SeatrialError
from seatrial.system.doctor.probe import access, host_list
from seatrial.system.login_node import Remote
from seatrial.system.login_shell import SHELL
from seatrial.system.playbooks import playbook

SETTINGS = {
    "classes": "{{ node_classes | default([]) }}",
    "groups": "{{ groups }}",
    "root": "{{ audit_root | default('/') }}",
}
"""Ansible templates of the variables that an audit needs."""


def through_slurm(
    remote: Remote, settings: Mapping[str, Any], declaration: HardwareFile
) -> Collected:
    """Read all nodes by srun, from the login node; SeatrialError if that fails."""
    classes = [
        (one["name"], host_list(one, settings["groups"]), access(one))
        for one in settings["classes"]
    ]
    names = " ".join(sysctls(declaration))
    script, token = login_script(remote.prefix, classes, names, settings["root"])
    return collect(remote.ssh(SHELL), script, token)


def through_ssh(home: Path, system: str, declaration: HardwareFile) -> Collected:
    """Read the hosts of the classes' groups by playbooks/audit.yml.

    Raises SeatrialError if the playbook fails.
    """
    folder = home / "build" / "audit" / system
    shutil.rmtree(folder, ignore_errors=True)
    options = {"audit_folder": str(folder), "audit_sysctls": sysctls(declaration)}
    log = home / "build" / "log" / f"audit-{system}.log"
    playbook(home, system, "audit", log, "-e", json.dumps(options))
    return of_folder(folder)


def audit(collected: Collected, declaration: HardwareFile) -> list[Row]:
    """Return the rows of all classes."""
    found: dict[str, list[Any]] = {}
    for node, text in collected.raw.items():
        try:
            found[node] = [*readings(text)]
        except SeatrialError as error:
            collected.missing[node] = str(error)
    rows: list[Row] = []
    for name, nodes in collected.classes.items():
        troubles = [
            error for error in collected.errors if error.startswith(f"{name}: ")
        ]
        reasons = {node: troubles[0] for node in nodes if troubles}
        node_class = NodeClass(
            name,
            tuple(nodes),
            tuple(expected(declaration, name)),
            rails(declaration, name),
        )
        rows += rows_of(node_class, found, reasons | collected.missing)
    return rows


def exit_status(rows: Sequence[Row]) -> Exit:
    """Return FAILED with drift, a pending value or an absent HCA.

    UNDECIDED if a declared value is unknown.
    """
    if any(row.verdict in ("absent", "drift", "pending") for row in rows):
        return Exit.FAILED
    if any(row.verdict == "unknown" and row.declared is not None for row in rows):
        return Exit.UNDECIDED
    return Exit.PASS
