"""The system of a replay, as it was recorded, with settings that need no Slurm.

The settings come with the recordings, maybe from another person. ReFrame writes their
environment variables, modules and commands into job scripts; none of them is taken: a
replay takes only values that identify cases, of known types.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seatrial.errors import SeatrialError
from seatrial.model.manifest import MANIFEST, read_manifest
from seatrial.model.yaml_file import YamlFile, yaml_bytes
from seatrial.plain_files import write_exclusively
from seatrial.runs.closed_run import SYSTEM_FOLDER
from seatrial.runs.raw_output import Source, beside, source_of
from seatrial.runs.run_contents import read_contents
from seatrial.system.description import (
    SETTINGS_FILE,
    SYSTEM_FILE,
    NodeState,
    System,
    is_provisioned,
    load_system,
    lock_files,
    read_system,
)

_MOST = 1_000_000
"""Nodes, cores or MiB of one kind: more is a mistake."""

_NAME = r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z"
_WORD = r"\A[A-Za-z0-9_][A-Za-z0-9_.:@/+-]{0,199}\Z"
_Name = Annotated[str, Meta(pattern=_NAME, description="a name of a-z, 0-9, _ . -")]
_Word = Annotated[str, Meta(pattern=_WORD, description="a word of a-z, 0-9, _.:@/+-")]
_Words = tuple[_Word, ...] | UnsetType
_Count = Annotated[int, Meta(ge=1, le=_MOST)] | UnsetType
_Kilohertz = Annotated[int, Meta(ge=1, le=10**9)]


class _Processor(msgspec.Struct):
    num_cpus: _Count = UNSET
    num_cpus_per_core: _Count = UNSET
    num_cpus_per_socket: _Count = UNSET
    num_sockets: _Count = UNSET


class _PartitionExtras(msgspec.Struct):
    nodes: tuple[_Name, ...] | UnsetType = UNSET
    rails: _Words = UNSET
    gid_indexes: dict[_Word, Annotated[int, Meta(ge=0, le=65535)]] | UnsetType = UNSET
    cpu_frequencies: tuple[_Kilohertz, ...] | UnsetType = UNSET
    memory_mib: Annotated[int, Meta(ge=1, le=10**10)] | UnsetType = UNSET
    demonstration: bool | UnsetType = UNSET


class _Partition(msgspec.Struct):
    name: _Name
    environs: tuple[_Name, ...]
    launcher: _Word
    features: _Words = UNSET
    extras: _PartitionExtras | UnsetType = UNSET
    processor: _Processor | UnsetType = UNSET


class _Emptied(msgspec.Struct):
    """A set of variables, none of them taken: a replay starts no program."""


class _EnvironmentExtras(msgspec.Struct):
    srun_mpi: _Word | UnsetType = UNSET
    programs: _Words = UNSET
    lammps_inputs: _Words = UNSET
    rail_variable: _Name | UnsetType = UNSET
    tuning: dict[_Name, _Emptied] | UnsetType = UNSET
    registration_cache: dict[Literal["on", "off"], _Emptied] | UnsetType = UNSET


class _Environment(msgspec.Struct):
    name: _Name
    features: _Words = UNSET
    extras: _EnvironmentExtras | UnsetType = UNSET


class _System(msgspec.Struct):
    name: _Name
    partitions: tuple[_Partition, ...]


class _Settings(msgspec.Struct):
    systems: tuple[_System, ...]
    environments: tuple[_Environment, ...]


@contextmanager
def recorded_system(home: Path, name: str, recordings: Path) -> Iterator[System]:
    """Return the system of some recordings for the time of a replay.

    It is that of their run, else the provisioned one. Raises SeatrialError if there is
    neither, if the run is of another system, or differs from its manifest.
    """
    source = source_of(recordings)
    if source.checksums is not None:
        read_contents(source.root).require_whole()
    kept = beside(recordings, f"{SYSTEM_FOLDER}/{SYSTEM_FILE}")
    with TemporaryDirectory(prefix="seatrial-replay-") as folder:
        if kept is not None:
            origin = kept.parent
            system = _copy_system(source, origin, Path(folder, SYSTEM_FOLDER), name)
        elif is_provisioned(home, name):
            system = load_system(home, name)
            origin = system.folder
        else:
            raise SeatrialError(
                f"{recordings} does not say what system {name!r} is like, and it is "
                f"not provisioned here; expected {SYSTEM_FILE} and {SETTINGS_FILE} in "
                f"{recordings / SYSTEM_FOLDER}; copy them from etc/{name} of its login "
                "node"
            )
        if system.name != name:
            raise SeatrialError(
                f"{recordings}: recorded on system {system.name!r}, expected {name!r}"
            )
        settings = Path(folder, "settings.json")
        file = YamlFile(origin / SETTINGS_FILE, yaml_bytes(system.settings))
        described = replay_settings(file)
        settings.write_text(json.dumps(described), encoding="utf-8")
        yield replace(system, settings=settings, uses_slurm=False, only_slurm=False)


def _copy_system(source: Source, kept: Path, folder: Path, name: str) -> System:
    """Read the system of a run from a copy of its files, each read once."""
    folder.mkdir()
    for file in (SYSTEM_FILE, SETTINGS_FILE):
        write_exclusively(folder / file, [source.read(kept / file)])
    try:
        for lock in lock_files(folder):
            write_exclusively(folder / lock, [source.read(kept / lock)])
        return read_system(folder, name)
    except SeatrialError as error:
        raise SeatrialError(f"{kept}: {error}") from error


def recorded_states(system: System, recordings: Path) -> tuple[NodeState, ...]:
    """Return the states of the delivered nodes in the recorded run, else present.

    Their facts are those of the run: it may have leafs from Slurm.
    """
    manifest = beside(recordings, MANIFEST)
    nodes = read_manifest(manifest.parent)["nodes"] if manifest else []
    absent = {
        node["name"]: node["reason"] for node in nodes if node["state"] != "present"
    }
    facts = {node["name"]: node["facts"] for node in nodes if node.get("facts")}
    return tuple(
        NodeState(
            replace(node, facts=facts.get(node.name, node.facts)),
            node.name not in absent,
            absent.get(node.name, ""),
        )
        for node in system.nodes
    )


def replay_settings(file: YamlFile) -> dict[str, Any]:
    """Return ReFrame's settings of a replay.

    All partitions are local, without scheduler and modules; the launcher is only
    written into job scripts. Raises SeatrialError if a value has another type;
    unknown keys are left out.
    """
    settings = file.convert(_Settings)
    if not settings.systems:
        file.expected("a system", (), ("systems",))
    kept = msgspec.to_builtins(settings)
    system = kept["systems"][0]
    for partition in system["partitions"]:
        partition["scheduler"] = "local"
    return {
        "systems": [{**system, "hostnames": [".*"]}],
        "environments": kept["environments"],
    }
