"""Write a survey as an inventory: files as those of inventories/sample."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.names import node_set
from seatrial.output import one_line
from seatrial.system.doctor.finding import version_of
from seatrial.system.survey.class_lines import class_lines
from seatrial.system.survey.mpi_stacks import Stack
from seatrial.system.survey.node_classes import SurveyedClass, unreachable
from seatrial.system.survey.survey import Folder, Survey
from seatrial.system.survey.yaml_lines import TO_DECIDE, comment, value

_ANSIBLE_PYTHON = (3, 8)
_WHEEL_ARCHITECTURE = "x86_64"
_FREE_MIB = 2_000


@dataclass(frozen=True)
class Order:
    """A new system: its name, its login node as ssh knows it, and what the user chose.

    Empty `user` and `prefix` are chosen from the survey.
    """

    name: str
    login: str
    user: str = ""
    prefix: str = ""


def stack_names(survey: Survey) -> tuple[str, ...]:
    """Return the names of the stacks that the inventory has."""
    return tuple(stack["name"] for stack in _stacks(survey))


def inventory_files(
    order: Order, survey: Survey, classes: Sequence[SurveyedClass]
) -> dict[str, str]:
    """Return the text of each file by its path below the inventory."""
    return {
        "hosts.yml": _text(_hosts(order, survey)),
        "group_vars/all/main.yml": _text(_main(order, survey, classes)),
        "group_vars/all/mpi.yml": _text(_mpi(survey)),
        "group_vars/all/suite.yml": _text(_suite(survey, classes)),
    }


def _text(lines: Iterator[str]) -> str:
    return "\n".join(["---", *lines, ""])


def _hosts(order: Order, survey: Survey) -> Iterator[str]:
    host = re.sub(r"[^A-Za-z0-9_-]", "-", survey.host)
    host = f"{host}-node" if host == "login" else host  # the name of the group
    yield f"# Inventory of {order.name}, which `seatrial new system` read from"
    yield comment(f"{order.login}. Lines with `{TO_DECIDE}` need an answer.")
    yield "# inventories/sample explains all variables."
    yield from ("all:", "  children:")
    yield "    login: # the first host submits the jobs, and gets the suite"
    yield f"      hosts:\n        {value(host)}:"
    yield f"          ansible_host: {value(order.login)} # --login"
    path, version = next(iter(survey.pythons.items()), ("", ""))
    if version_of(version) >= _ANSIBLE_PYTHON:
        yield f"          ansible_python_interpreter: {value(path)} # Python {version}"
    else:
        yield (
            f"          # ansible_python_interpreter: # {TO_DECIDE} Ansible needs "
            f"Python 3.8, the newest is {version or 'none'} (RHEL 8: python3.11)"
        )


def _main(
    order: Order, survey: Survey, classes: Sequence[SurveyedClass]
) -> Iterator[str]:
    source = "--user" if order.user else "`id -un` on the login node"
    yield f"ansible_user: {value(order.user or survey.user)} # {source}"
    yield ""
    yield f"seatrial_system: {value(order.name)}"
    yield from _prefix(order, survey)
    yield "seatrial_demonstration: false"
    yield ""
    yield "# Nodes that are alike in cores, sockets, memory, gres and features of Slurm"
    yield "# (`scontrol show node`). Join classes that differ only in a feature that is"
    yield "# no hardware, such as a rack. Lost nodes stay in: a delivered node that is"
    yield "# absent fails the acceptance."
    if without := unreachable(survey):
        yield comment(f"In no partition, and in no class: {without}")
    future = node_set(node.name for node in survey.nodes if not node.is_delivered)
    if future:
        yield comment(f"In the state FUTURE, and in no class: {future}")
    yield "node_classes:"
    for node_class in classes:
        yield from class_lines(node_class, survey)


def _prefix(order: Order, survey: Survey) -> Iterator[str]:
    """Yield the folder of the suite, and other folders that could be it."""
    if order.prefix:
        yield f"seatrial_prefix: {value(order.prefix)} # --prefix"
        return
    for folder in survey.folders:
        text = f"{folder.variable} is {folder.path}: {folder.kind}"
        yield comment(f"{text}, {folder.free_mib} MiB free")
    for mount in survey.mounts:
        yield comment(f"mounted: {mount}")
    ranked = sorted(survey.folders, key=_unfitness)
    path = f"{ranked[0].path}/seatrial" if ranked else "/shared/seatrial"
    fits = bool(ranked) and not any(_unfitness(ranked[0])[:2])
    reason = f"{ranked[0].variable}, on {ranked[0].kind}" if ranked else ""
    if not fits:
        reason = f"{TO_DECIDE} a folder that all nodes share, with 2 GB free"
    yield f"seatrial_prefix: {value(path)} # {one_line(reason)}"


def _unfitness(folder: Folder) -> tuple[bool, bool, bool]:
    """Return a sort key: shared folders first, large ones, scratch last."""
    is_scratch = folder.variable == "SCRATCH"
    return (not folder.is_shared, folder.free_mib < _FREE_MIB, is_scratch)


def _mpi(survey: Survey) -> Iterator[str]:
    yield "# The MPI stacks to test; inventories/sample explains the keys. site.yml"
    yield "# builds OSU, NPB, HPL and HPCG for each stack with a compiler."
    offered = ", ".join(survey.mpi_types) or "none"
    yield comment(f"`srun --mpi=list`: {offered}")
    if survey.mpi_modules:
        yield comment(f"MPI modules: {', '.join(survey.mpi_modules)}")
    for failure in survey.failures:
        wanted, _, module = failure.partition("|")
        yield comment(f"`module load {wanted.strip()}` failed at {module}")
    stacks = _stacks(survey)
    if not stacks:
        yield f"mpi_stacks: [] # {TO_DECIDE} no MPI compiler in modules or on PATH"
        return
    yield "mpi_stacks:"
    for stack in stacks:
        notes = stack.pop("notes")
        lead = "  - "
        for key, content in stack.items():
            note = f" # {one_line(notes[key])}" if key in notes else ""
            yield f"{lead}{key}: {value(content)}{note}"
            lead = "    "


def _stacks(survey: Survey) -> list[dict[str, Any]]:
    """Return the stacks as in the inventory; `notes` are comments by key."""
    if survey.stacks:
        return [_stack(stack, survey) for stack in survey.stacks]
    if survey.architecture != _WHEEL_ARCHITECTURE:
        return []
    manager = next((m for m in ("pmi2", "pmix") if m in survey.mpi_types), "pmi2")
    note = f"{TO_DECIDE} no MPI compiler in modules or on PATH: Intel MPI as a wheel"
    return [
        {
            **{"name": "intelmpi", "provider": "wheels", "wheel": "impi-rt"},
            **{"srun_mpi": manager, "programs": {"imb": "IMB-MPI1"}},
            "notes": {"provider": note},
        }
    ]


def _stack(stack: Stack, survey: Survey) -> dict[str, Any]:
    manager = stack.manager(survey.mpi_types)
    keys: dict[str, Any] = {"name": stack.name, "provider": "distribution"}
    notes = {}
    if stack.modules:
        keys["modules"] = list(stack.modules)
    keys["compiler"] = stack.compiler
    keys["srun_mpi"] = manager or "pmi2"
    if not manager:
        notes["srun_mpi"] = f"{TO_DECIDE} `srun --mpi=list` offers none that fits"
    if stack.pmi2:
        keys["environment"] = {"I_MPI_PMI_LIBRARY": stack.pmi2}
        notes["environment"] = "Slurm's library, for srun"
    elif stack.family == "intelmpi":
        notes["srun_mpi"] = (
            f"{TO_DECIDE} I_MPI_PMI_LIBRARY: no libpmi2.so of Slurm on the login node"
        )
    if stack.imb:
        keys["programs"] = {"imb": stack.imb}
        notes["programs"] = "beside the compiler"
    return {**keys, "notes": notes}


def _suite(survey: Survey, classes: Sequence[SurveyedClass]) -> Iterator[str]:
    nodes = sum(len(node_class.nodes) for node_class in classes)
    cores = sorted({node_class.nodes[0].cores for node_class in classes})
    sizes = " to ".join(dict.fromkeys((str(cores[0]), str(cores[-1]))))
    text = f"{nodes} nodes with {sizes} cores, Slurm {survey.slurm}"
    yield f"suite_description: {value(text)} # for the report"
    if survey.suite_python:
        version = survey.pythons[survey.suite_python]
        yield f"suite_python: {value(survey.suite_python)} # Python {version}"
    else:
        listed = ", ".join(survey.pythons.values()) or "no Python"
        yield (
            f"suite_python: /usr/bin/python3.11 # {TO_DECIDE} install Python 3.11 or "
            f"later on the login and compute nodes; the login node has {listed}"
        )
    if survey.modules:
        yield f"suite_modules_system: {value(survey.modules)} # of the login shell"
    else:
        yield (
            f"# suite_modules_system: lmod # {TO_DECIDE} the login shell has no "
            "command module; install Lmod or Environment Modules"
        )
