"""Findings of the doctor: what holds, what is missing, and its remedy."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.system.doctor.finding import Diagnosis, finding, version_of
from seatrial.system.doctor.node_findings import SUITE_PYTHON, node_findings
from seatrial.system.doctor.probe import Facts

_COMMANDS = ("sbatch", "srun", "squeue", "sinfo", "scontrol", "sacct", "scancel")
_ANSIBLE_PYTHON = (3, 8)
_SLURM = (20, 11)
_FREE_MIB = 2_000


def diagnose(facts: Facts, settings: Mapping[str, Any]) -> list[Diagnosis]:
    """Return all findings, in the order in which a first run would meet them."""
    if facts.error:
        remedy = (
            "try `ssh` to the login node yourself; see ansible_host in the inventory"
        )
        return [Diagnosis("ssh", "login", "fail", facts.error, remedy)]
    classes = settings["classes"]
    return [
        Diagnosis("ssh", "login", "ok", f"{facts.first('user')}@{facts.first('host')}"),
        *_slurm(facts),
        *_python(facts, str(settings["python"])),
        *_prefix(facts),
        *_classes(facts, classes),
        *_stacks(facts, settings["stacks"]),
    ]


def _slurm(facts: Facts) -> Iterator[Diagnosis]:
    missing = [name for name in _COMMANDS if not facts.first(f"command {name}")]
    yield finding(
        "slurm",
        "login",
        holds=not missing,
        text=f"not on PATH: {', '.join(missing)}" if missing else facts.first("slurm"),
        remedy="the first host of the group login must be one that submits jobs",
    )
    if missing:
        return
    version = version_of(facts.first("slurm"))
    yield finding(
        "slurm version",
        "login",
        holds=version >= _SLURM,
        text=facts.first("slurm"),
        remedy="tested with Slurm 22.05 and newer",
        warn=True,
    )
    yield finding(
        "slurmctld",
        "login",
        holds="is UP" in facts.first("ping"),
        text=facts.first("ping") or "no answer",
        remedy="start slurmctld; the login node needs its slurm.conf",
    )
    sacct = facts.first("sacct") == "works"
    yield finding(
        "accounting",
        "login",
        holds=sacct,
        text="sacct answers" if sacct else facts.first("sacct_error"),
        remedy="ReFrame reads the end of jobs from sacct: set AccountingStorageType",
    )


def _python(facts: Facts, suite: str) -> Iterator[Diagnosis]:
    versions = {
        name.partition(" ")[2]: values[0]
        for name, values in facts.values.items()
        if name.startswith("python ")
    }
    newest = max(map(version_of, versions.values()), default=())
    yield finding(
        "python of Ansible",
        "login",
        holds=newest >= _ANSIBLE_PYTHON,
        text=_listed(versions) or "no python3",
        remedy="install Python 3.8 or newer (RHEL 8: `dnf install python3.11`), and "
        "name it in ansible_python_interpreter",
    )
    enough = [
        name for name, text in versions.items() if version_of(text) >= SUITE_PYTHON
    ]
    chosen = version_of(versions.get(suite, ""))
    remedy = "install Python 3.11 or newer on the login and compute nodes"
    if enough:
        remedy = f"set suite_python to the path of {enough[0]}"
    yield finding(
        "python of the suite",
        "login",
        holds=chosen >= SUITE_PYTHON,
        text=f"{suite} {versions.get(suite, 'is missing')}",
        remedy=remedy,
    )


def _prefix(facts: Facts) -> Iterator[Diagnosis]:
    writable = facts.first("prefix") == "writable"
    yield finding(
        "shared folder",
        "login",
        holds=writable,
        text=f"seatrial_prefix is {'' if writable else 'not '}writable",
        remedy="choose a seatrial_prefix below which the user may write",
    )
    if not writable:
        return
    free = int(facts.first("prefix_free_mib") or 0)
    yield finding(
        "free space",
        "login",
        holds=free >= _FREE_MIB,
        text=f"{free} MiB ({facts.first('prefix_type')})",
        remedy=f"the suite needs {_FREE_MIB} MiB, and each run its output",
    )
    locks = facts.first("prefix_locks")
    yield finding(
        "file locks",
        "login",
        holds=locks == "yes",
        text="flock works" if locks == "yes" else locks or "flock fails",
        remedy="mount the file system with locks (Lustre: -o flock), or choose another",
    )


def _classes(facts: Facts, classes: list[Mapping[str, Any]]) -> Iterator[Diagnosis]:
    partitions = {text.split("|")[0] for text in facts.values.get("partition", ())}
    hidden = partitions - set(facts.values.get("visible", ()))
    if not classes:
        text, remedy = "node_classes is empty", "name the classes of nodes there"
        yield Diagnosis("node classes", "inventory", "fail", text, remedy)
    for described in classes:
        name = described["name"]
        partition = described.get("partition", name)
        state = " (hidden)" if partition in hidden else ""
        known = ", ".join(sorted(partitions)) or "none"
        yield finding(
            "partition",
            name,
            holds=partition in partitions,
            text=f"{partition}{state}"
            if partition in partitions
            else f"no {partition}",
            remedy=f"set partition of the class; Slurm has {known}",
        )
        if partition in partitions:
            yield from node_findings(facts, name)


def _stacks(facts: Facts, stacks: list[Mapping[str, Any]]) -> Iterator[Diagnosis]:
    offered = re.findall(r"[\w.-]+", facts.first("mpi"))
    for stack in stacks:
        name = stack["name"]
        manager = stack.get("srun_mpi")
        if manager:
            yield finding(
                "srun --mpi",
                name,
                holds=manager in offered,
                text=manager,
                remedy=f"set srun_mpi; {facts.first('mpi')}",
            )
        errors = facts.values.get(f"stack_error {name}", [])
        yield finding(
            "modules",
            name,
            holds=not errors,
            text=errors[0] if errors else "loaded",
            remedy="see modules and compiler of mpi_stacks, and `module avail`",
        )


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
