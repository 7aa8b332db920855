"""Read the system under test, rendered by Ansible: system.json and settings.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from seatrial.errors import SeatrialError
from seatrial.limits import MANIFEST_SIZE
from seatrial.model.manifest import Facts, Software, decoded
from seatrial.model.records import Node
from seatrial.model.yaml_file import YamlFile
from seatrial.names import checked_name
from seatrial.paths import OPTIONAL_FILES, etc_dir
from seatrial.system import slurm

SYSTEM_FILE, SETTINGS_FILE = "system.json", "settings.yaml"

SLURM = ("slurm", "squeue")
"""ReFrame's names of Slurm as a scheduler."""


@dataclass(frozen=True)
class NodeClass:
    """A class of nodes: its delivered nodes, and Slurm's partition that has them.

    `access` are the options of sbatch that its jobs need; None if it is not Slurm's.
    `cores` and `memory_mib` are those of a node; 0: unknown. `rack_nodes` are those of
    the largest rack; 0: the class names no racks.
    """

    nodes: tuple[str, ...]
    partition: str
    access: tuple[str, ...] | None = None
    cores: int = 0
    memory_mib: float = 0
    rack_nodes: int = 0


@dataclass(frozen=True)
class System:
    """A provisioned system: its delivered nodes, software and ReFrame settings.

    `folder` has its files; `settings` is what ReFrame reads. `classes` of nodes are
    ReFrame's partitions; `features` those of a class and one of its environments.
    `audit_root` is the folder of a node with the sys, proc and etc that an audit reads.
    `model`: its programs are stand-ins, which print the numbers of a model machine.
    `uses_slurm`: some partition is one of Slurm; `only_slurm`: all are.
    """

    name: str
    folder: Path
    description: str
    demonstration: bool
    nodes: tuple[Node, ...]
    software: dict[str, Any]
    suite: dict[str, Any]
    settings: Path
    classes: Mapping[str, NodeClass]
    features: tuple[frozenset[str], ...]
    uses_slurm: bool
    only_slurm: bool
    audit_root: str = "/"
    model: bool = False

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the files of its description, with Spack's lock files if it built.

        Those of hardware and fabric are among them if there are any.
        """
        names = [SYSTEM_FILE, SETTINGS_FILE, *_lock_names(self.software)]
        names += [name for name in OPTIONAL_FILES if (self.folder / name).is_file()]
        return tuple(self.folder / name for name in names)


@dataclass(frozen=True)
class NodeState:
    """A delivered node at the start of a run: present, or absent for a reason."""

    node: Node
    present: bool
    reason: str


def known_systems(home: Path) -> list[str]:
    """Return the systems with an inventory (inventories/) or provisioned (etc/)."""
    inventories = {file.parent.name for file in home.glob("inventories/*/hosts*")}
    provisioned = {file.parent.name for file in home.glob("etc/*/system.json")}
    return sorted(inventories | provisioned)


def is_provisioned(home: Path, name: str) -> bool:
    """Return True if this machine submits the system's jobs."""
    return (etc_dir(home, name) / SYSTEM_FILE).is_file()


def load_system(home: Path, name: str) -> System:
    """Read a provisioned system.

    Raises SeatrialError if it is unknown (naming the known ones), not provisioned,
    or if one of its files is missing or damaged.
    """
    folder = etc_dir(home, name)
    if not (folder / SYSTEM_FILE).is_file():
        raise unknown_system(home, name)
    return read_system(folder, name)


def read_system(folder: Path, name: str) -> System:
    """Read a system from the folder of its files; SeatrialError as above."""
    facts = _described(folder)
    file = folder / SETTINGS_FILE
    _expect(file, name)
    settings = YamlFile(file)
    content = settings.convert(_Settings)
    environments = {stack.name: stack.features for stack in content.environments}
    partitions = content.systems[0].partitions
    for index, partition in enumerate(partitions):
        for stack in partition.environs:
            place = ("systems", 0, "partitions", index, "environs")
            settings.one_of("environments", environments, stack, place)
    system = System(
        name=facts["system"],
        folder=folder,
        description=facts.get("description", ""),
        demonstration=facts.get("demonstration", False),
        nodes=tuple(Node(n["name"], n.get("facts") or {}) for n in facts["nodes"]),
        software=facts["software"],
        suite=facts.get("suite") or {},
        settings=file,
        classes={
            partition.name: NodeClass(
                partition.extras.nodes,
                partition.extras.partition or partition.name,
                partition.access if partition.scheduler in SLURM else None,
                partition.processor.cores,
                partition.extras.memory_mib,
                max(map(len, partition.extras.racks.values()), default=0),
            )
            for partition in partitions
        },
        features=tuple(
            frozenset((*partition.features, *environments[stack]))
            for partition in partitions
            for stack in partition.environs
        ),
        uses_slurm=any(partition.scheduler in SLURM for partition in partitions),
        only_slurm=all(partition.scheduler in SLURM for partition in partitions),
        audit_root=facts.get("audit_root", "/"),
        model=facts.get("model", False),
    )
    for file in system.files:
        _expect(file, name)
    return system


def _expect(file: Path, name: str) -> None:
    if not file.is_file():
        raise SeatrialError(
            f"{file}: missing: system {name!r} is not provisioned; run "
            f"`ansible-playbook -i inventories/{name} playbooks/site.yml`"
        )


def unknown_system(home: Path, name: str) -> SeatrialError:
    """Return the error for a system name that is unknown below home."""
    known = ", ".join(known_systems(home)) or "none"
    return SeatrialError(
        f"unknown system {name!r}; known systems: {known} (folders of "
        f"{home / 'inventories'} and {home / 'etc'})"
    )


def node_states(system: System) -> tuple[NodeState, ...]:
    """Return the delivered nodes with their states in Slurm.

    Without Slurm all nodes are present. Raises SeatrialError if Slurm does not answer
    or no node is left.
    """
    if not system.uses_slurm:
        return tuple(NodeState(node, True, "") for node in system.nodes)
    known, unknown = slurm.node_states(), (False, "unknown to Slurm")
    states = tuple(NodeState(n, *known.get(n.name, unknown)) for n in system.nodes)
    if not any(state.present for state in states):
        listed = "\n".join(f"  {state.node.name}: {state.reason}" for state in states)
        raise SeatrialError(
            f"no delivered node of system {system.name!r} is up:\n{listed}\n"
            "start slurmd on them, then `scontrol update nodename=NAME state=resume`"
        )
    return states


def usable_nodes(system: System, states: tuple[NodeState, ...]) -> dict[str, int]:
    """Count the present nodes of each class that lacks some."""
    present = {state.node.name for state in states if state.present}
    counts = {
        name: len(present.intersection(described.nodes))
        for name, described in system.classes.items()
    }
    all_nodes = {name: len(known.nodes) for name, known in system.classes.items()}
    return {name: count for name, count in counts.items() if count < all_nodes[name]}


def lock_files(folder: Path) -> list[str]:
    """Return the names of Spack's lock files beside the file of a system."""
    return _lock_names(_described(folder)["software"])


def _lock_names(software: dict[str, Any]) -> list[str]:
    environments = (software.get("spack") or {}).get("environments", ())
    return [environment["lock"] for environment in environments]


class _Node(msgspec.Struct):
    name: str
    facts: Facts | None = None


class _Suite(msgspec.Struct):
    git_commit: str | None = None
    dirty: bool | None = None


class _Extras(msgspec.Struct):
    nodes: tuple[str, ...] = ()
    partition: str | None = None
    memory_mib: float = 0
    racks: dict[str, tuple[str, ...]] = {}


class _Processor(msgspec.Struct):
    num_cpus: int | None = None
    num_cpus_per_core: int | None = None

    @property
    def cores(self) -> int:
        return (self.num_cpus or 0) // (self.num_cpus_per_core or 1)


class _Partition(msgspec.Struct):
    name: str
    scheduler: str
    environs: tuple[str, ...]
    access: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    extras: _Extras = msgspec.field(default_factory=_Extras)
    processor: _Processor = msgspec.field(default_factory=_Processor)


class _Environment(msgspec.Struct):
    name: str
    features: tuple[str, ...] = ()


class _Partitions(msgspec.Struct):
    partitions: tuple[_Partition, ...]


class _Settings(msgspec.Struct):
    """Keys of settings.yaml that the suite reads."""

    systems: Annotated[
        tuple[_Partitions, ...],
        Meta(min_length=1, description="a list of systems"),
    ]
    environments: tuple[_Environment, ...]


class _Described(msgspec.Struct):
    """Keys of system.json that the suite reads; others are not checked."""

    system: str
    nodes: tuple[_Node, ...]
    description: str = ""
    demonstration: bool = False
    audit_root: str = "/"
    model: bool = False
    software: Software | None = None
    suite: _Suite | None = None


def _described(folder: Path) -> dict[str, Any]:
    """Read system.json; SeatrialError if a value has another type, or is no name."""
    file = folder / SYSTEM_FILE
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SeatrialError(f"{file}: {error.strerror}") from error
    MANIFEST_SIZE.check(len(content), file)
    checked = decoded(content, file, _Described, "a system as site.yml describes it")
    described: dict[str, Any] = msgspec.json.decode(content)
    described["software"] = described.get("software") or {}
    locks = _lock_names(described["software"])
    for name in (checked.system, *(node.name for node in checked.nodes), *locks):
        checked_name(name, str(file))
    return described
