"""ReFrame's settings for a replay: only values that identify cases, of known types.

The settings come with the recordings, maybe from another person. ReFrame writes their
environment variables, modules and commands into job scripts; none of them is taken.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

_MOST = 1_000_000
"""Nodes, cores or MiB of one kind: more is a mistake."""

_Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z")]
_Word = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.:@/+-]{0,199}\Z")]
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


def replay_settings(described: Any) -> dict[str, Any]:
    """Return ReFrame's settings of a replay.

    All partitions are local, without scheduler and modules; the launcher is only
    written into job scripts. Raises ValueError if a value has another type; unknown
    keys are left out.
    """
    settings = msgspec.convert(described, _Settings)
    if not settings.systems:
        raise ValueError("no system in it")
    kept = msgspec.to_builtins(settings)
    system = kept["systems"][0]
    for partition in system["partitions"]:
        partition["scheduler"] = "local"
    return {
        "systems": [{**system, "hostnames": [".*"]}],
        "environments": kept["environments"],
    }
