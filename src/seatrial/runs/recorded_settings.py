"""ReFrame's settings for a replay: only what tells cases apart, of known shape.

The settings come with the recordings, maybe from somebody else. ReFrame writes
environment variables, modules and commands of its settings into job scripts; none of
them is taken over.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seatrial.model.yaml_file import YamlFile

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


class _EnvironmentExtras(msgspec.Struct):
    """Of sets of variables only their names: a replay starts no program."""

    srun_mpi: _Word | UnsetType = UNSET
    programs: _Words = UNSET
    lammps_inputs: _Words = UNSET
    rail_variable: _Name | UnsetType = UNSET
    tuning: dict[_Name, Any] | UnsetType = UNSET
    registration_cache: dict[Literal["on", "off"], Any] | UnsetType = UNSET


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


def replay_settings(file: YamlFile) -> dict[str, Any]:
    """Return ReFrame's settings of a replay.

    All partitions are local: neither scheduler nor modules need to be there. The
    launcher is only written into job scripts. Raises SeatrialError if a value that is
    taken over has another shape; everything else is left out.
    """
    settings = file.convert(_Settings)
    if not settings.systems:
        file.expected("a system", (), ("systems",))
    for environment in settings.environments:
        extras = environment.extras
        if isinstance(extras, _EnvironmentExtras):
            if isinstance(extras.tuning, dict):
                extras.tuning = {name: {} for name in extras.tuning}
            if isinstance(extras.registration_cache, dict):
                extras.registration_cache = {
                    name: {} for name in extras.registration_cache
                }
    kept = msgspec.to_builtins(settings)
    system = kept["systems"][0]
    return {
        "systems": [
            {
                "name": system["name"],
                "hostnames": [".*"],
                "partitions": [
                    {**partition, "scheduler": "local"}
                    for partition in system["partitions"]
                ],
            }
        ],
        "environments": kept["environments"],
    }
