"""The system under test as Ansible rendered it: system.json and settings.yaml."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from seatrial import slurm
from seatrial.errors import SeatrialError
from seatrial.paths import etc_dir
from seatrial.records import Node

SYSTEM_FILE = "system.json"
SETTINGS_FILE = "settings.yaml"

SLURM = ("slurm", "squeue")
"""ReFrame's names of Slurm as a scheduler."""


@dataclass(frozen=True)
class System:
    """A provisioned system: its delivered nodes, software and ReFrame settings.

    `folder` has its files; `settings` is what ReFrame reads. `features` are those of
    each partition together with one of its environments. `uses_slurm`: some partition
    is one of Slurm; `only_slurm`: all are.
    """

    name: str
    folder: Path
    description: str
    demonstration: bool
    nodes: tuple[Node, ...]
    software: dict[str, Any]
    suite: dict[str, Any]
    settings: Path
    partitions: tuple[tuple[str, ...], ...]
    features: tuple[frozenset[str], ...]
    uses_slurm: bool
    only_slurm: bool

    @property
    def files(self) -> tuple[Path, ...]:
        """Give the files that describe it, with the lock files of Spack if it built."""
        environments = self.software.get("spack", {}).get("environments", [])
        names = [SYSTEM_FILE, SETTINGS_FILE, *(each["lock"] for each in environments)]
        return tuple(self.folder / name for name in names)


@dataclass(frozen=True)
class NodeState:
    """A delivered node at the start of a run: present, or absent and why."""

    node: Node
    present: bool
    reason: str


def known_systems(home: Path) -> list[str]:
    """Name the systems that are described (inventories/) or provisioned (etc/)."""
    inventories = {file.parent.name for file in home.glob("inventories/*/hosts*")}
    provisioned = {file.parent.name for file in home.glob("etc/*/system.json")}
    return sorted(inventories | provisioned)


def is_provisioned(home: Path, name: str) -> bool:
    """Tell whether this is the machine on which the system's jobs are submitted."""
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
    facts = _read(folder / SYSTEM_FILE)
    settings = folder / SETTINGS_FILE
    _expect(settings, name)
    try:
        content = _read(settings)
        config = content["systems"][0]
        environments = {each["name"]: each for each in content["environments"]}
        by_slurm = [each["scheduler"] in SLURM for each in config["partitions"]]
        system = System(
            name=facts["system"],
            folder=folder,
            description=facts.get("description", ""),
            demonstration=bool(facts.get("demonstration", False)),
            nodes=tuple(
                Node(node["name"], node.get("facts", {})) for node in facts["nodes"]
            ),
            software=facts.get("software", {}),
            suite=facts.get("suite", {}),
            settings=settings,
            partitions=tuple(
                tuple(partition.get("extras", {}).get("nodes", ()))
                for partition in config["partitions"]
            ),
            features=tuple(
                frozenset(partition.get("features", []))
                | frozenset(environments[name].get("features", []))
                for partition in config["partitions"]
                for name in partition["environs"]
            ),
            uses_slurm=any(by_slurm),
            only_slurm=all(by_slurm),
        )
        for file in system.files:
            _expect(file, name)
        return system
    except (KeyError, IndexError, TypeError) as error:
        raise SeatrialError(
            f"{folder}: system.json or settings.yaml is damaged: {error!r}; run "
            f"`ansible-playbook -i inventories/{name} playbooks/site.yml` again"
        ) from error


def _expect(file: Path, name: str) -> None:
    if not file.is_file():
        raise SeatrialError(
            f"{file}: missing: system {name!r} is not provisioned; run "
            f"`ansible-playbook -i inventories/{name} playbooks/site.yml`"
        )


def unknown_system(home: Path, name: str) -> SeatrialError:
    """Make the error of a system name that is known nowhere below home."""
    known = ", ".join(known_systems(home)) or "none"
    return SeatrialError(
        f"unknown system {name!r}; known systems: {known} (folders of "
        f"{home / 'inventories'} and {home / 'etc'})"
    )


def node_states(system: System) -> tuple[NodeState, ...]:
    """Compare the delivered nodes with what Slurm says of them now.

    A system without Slurm has all its nodes present. Raises SeatrialError if Slurm
    does not answer or no node is left.
    """
    if not system.uses_slurm:
        return tuple(NodeState(node, True, "") for node in system.nodes)
    seen = slurm.node_states()
    states = tuple(
        NodeState(node, *slurm.availability(seen.get(node.name)))
        for node in system.nodes
    )
    if not any(state.present for state in states):
        listed = "\n".join(f"  {state.node.name}: {state.reason}" for state in states)
        raise SeatrialError(
            f"no delivered node of system {system.name!r} is up:\n{listed}\n"
            "start slurmd on them, then `scontrol update nodename=NAME state=resume`"
        )
    return states


def usable_nodes(system: System, states: tuple[NodeState, ...]) -> int | None:
    """Give the number of nodes to run on, or None if all are present.

    With several partitions it is that of the smallest one which has any.
    """
    if all(state.present for state in states):
        return None
    present = {state.node.name for state in states if state.present}
    counts = [len(present.intersection(nodes)) for nodes in system.partitions]
    return min((count for count in counts if count), default=len(present))


def _read(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SeatrialError(f"{file}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SeatrialError(f"{file}: not valid YAML: {error}") from error
