"""Features of partitions and MPI stacks that checks need, and their providers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PROGRAMS = {
    "imb": "the Intel MPI Benchmarks",
    "osu": "the OSU Micro-Benchmarks",
    "hpcc": "HPCC",
    "npb": "the NAS Parallel Benchmarks",
    "lammps": "LAMMPS",
}
"""Features that a stack has by its `programs` in the inventory."""


def needed(described: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the features that each check needs, from `describe_checks`."""
    needs: dict[str, list[str]] = {}
    for case in described:
        features = needs.setdefault(case["@class"], [])
        features += [need for need in case.get("needs", ()) if need not in features]
    return needs


def why_not(needs: Sequence[str], offered: Sequence[frozenset[str]]) -> str:
    """Return the missing features of a check without a case, and their remedies.

    `needs` are as ReFrame writes them ('+osu'); `offered` are the features of each
    partition together with one of its MPI stacks. The pair with the fewest missing
    features counts.
    """
    wanted = [need[1:] for need in needs if need.startswith("+")]
    lacks = [[name for name in wanted if name not in pair] for pair in offered]
    missing = min(lacks, key=len, default=wanted)
    if not missing:
        asked = " ".join(needs) or "what valid_systems and valid_prog_environs ask for"
        return f"no partition and MPI stack together are {asked}"
    return "; ".join(map(_remedy, missing))


def _remedy(feature: str) -> str:
    if feature in PROGRAMS:
        return (
            f"no MPI stack has {PROGRAMS[feature]} (feature {feature}): install them "
            f"and name what was installed in programs.{feature} of mpi_stacks, or have "
            "them built by Spack (provider spack; spack_only)"
        )
    return (
        f"no partition with an MPI stack has the feature {feature}: our own programs "
        "are built for each stack with a compiler, slurm_partitions states the others"
    )
