"""Findings of the doctor: what holds, what is missing, and its remedy."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.system.doctor.class_findings import class_findings
from seatrial.system.doctor.finding import Diagnosis, finding, number_of, version_of
from seatrial.system.doctor.node_findings import SUITE_PYTHON
from seatrial.system.doctor.probe import Facts

_ANSIBLE_PYTHON = (3, 8)
_GLIBC = (2, 28)
_SLURM = (22, 5)
_FREE_MIB = 2_000


def diagnose(facts: Facts, settings: Mapping[str, Any]) -> list[Diagnosis]:
    """Return all findings, in the order in which a first run would meet them."""
    if facts.error:
        remedy = (
            "try `ssh` to the login node yourself; see ansible_host in the inventory"
        )
        return [Diagnosis("ssh", "login", "fail", facts.error, remedy)]
    return [
        Diagnosis("ssh", "login", "ok", f"{facts.first('user')}@{facts.first('host')}"),
        *_slurm(facts),
        *_python(facts, str(settings["python"])),
        *_prefix(facts),
        *class_findings(facts, settings["classes"]),
        *_stacks(facts, settings),
    ]


def _slurm(facts: Facts) -> Iterator[Diagnosis]:
    missing = facts.all("missing")
    yield finding(
        "slurm commands",
        "login",
        holds=not missing,
        text=f"not on PATH: {', '.join(missing)}" if missing else "all on PATH",
        remedy="the first host of the group login must be one that submits jobs",
    )
    if missing:
        return
    yield finding(
        "slurm version",
        "login",
        holds=version_of(facts.first("slurm")) >= _SLURM,
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
    error = facts.first("sacct")
    yield finding(
        "accounting",
        "login",
        holds=not error,
        text=error or "sacct answers",
        remedy="ReFrame reads the end of jobs from sacct: set AccountingStorageType",
    )


def _python(facts: Facts, suite: str) -> Iterator[Diagnosis]:
    versions = dict(line.split(" ", 1) for line in facts.all("python"))
    newest = max(map(version_of, versions.values()), default=())
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    yield finding(
        "python of Ansible",
        "login",
        holds=newest >= _ANSIBLE_PYTHON,
        text=listed or "no python3",
        remedy="install Python 3.8 or newer (RHEL 8: `dnf install python3.11`), and "
        "name it in ansible_python_interpreter",
    )
    if suite == "bundled":
        text = "site.yml brings a relocatable one"
        yield finding("python of the suite", "login", holds=True, text=text, remedy="")
        return
    new_enough = [
        name for name, text in versions.items() if version_of(text) >= SUITE_PYTHON
    ]
    remedy = "install Python 3.11 or newer on the login and compute nodes, or set "
    remedy += "suite_python to bundled"
    if new_enough:
        remedy = f"set suite_python to the path of {new_enough[0]}"
    yield finding(
        "python of the suite",
        "login",
        holds=suite in new_enough,
        text=f"{suite} {versions.get(suite, 'is missing')}",
        remedy=remedy,
    )
    libc = facts.first("libc")
    yield finding(
        "C library",
        "login",
        holds=libc.startswith("glibc ") and version_of(libc) >= _GLIBC,
        text=libc or "no glibc",
        remedy="the pinned wheels need glibc 2.28 (RHEL 8) or newer",
    )


def _prefix(facts: Facts) -> Iterator[Diagnosis]:
    kind = facts.first("prefix_type")
    yield finding(
        "shared folder",
        "login",
        holds=bool(kind),
        text=f"seatrial_prefix is {'' if kind else 'not '}writable",
        remedy="choose a seatrial_prefix below which the user may write",
    )
    if not kind:
        return
    free = number_of(facts.first("prefix_free_mib"))
    yield finding(
        "free space",
        "login",
        holds=free >= _FREE_MIB,
        text=f"{free} MiB ({kind})",
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


def _stacks(facts: Facts, settings: Mapping[str, Any]) -> Iterator[Diagnosis]:
    stacks = settings["stacks"]
    if any(stack.get("modules") for stack in stacks):
        yield _module_system(facts, settings["modules_system"])
    offered = re.findall(r"[\w.-]+", facts.first("mpi"))
    for stack in stacks:
        name = stack["name"]
        manager = stack.get("srun_mpi")
        if manager and stack.get("launcher") != "mpirun":
            yield finding(
                "srun --mpi",
                name,
                holds=manager in offered,
                text=manager,
                remedy=f"set srun_mpi; {facts.first('mpi')}",
            )
        errors = facts.all("error", f"stack {name}")
        yield finding(
            "modules",
            name,
            holds=not errors,
            text=errors[0] if errors else "loaded" if stack.get("modules") else "none",
            remedy="see modules, compiler, launcher of mpi_stacks, and `module avail`",
        )


def _module_system(facts: Facts, expected: str) -> Diagnosis:
    present = facts.first("modules")
    names = {"lmod": "Lmod", "envmod": "Environment Modules", "": "no command module"}
    kind, _, version = present.partition(" ")
    remedy = "stacks name modules: the login shell of the user must define `module`"
    if present:
        remedy = f"set suite_modules_system: {kind}"
    return finding(
        "module system",
        "login",
        holds=kind == expected,
        text=f"{names[kind]} {version}".strip(),
        remedy=remedy,
    )
