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


_BUILT = ("osu", "npb")
_BY_SITE_YML = ", or by site.yml (a stack with a compiler; mpi_built_programs)"


def needed(described: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the features that each check needs, from `describe_checks`."""
    needs: dict[str, list[str]] = {}
    for case in described:
        features = needs.setdefault(case["@class"], [])
        features += [need for need in case.get("needs", ()) if need not in features]
    return needs


def reasons_not_built(software: Mapping[str, Any]) -> dict[str, str]:
    """Return for each feature the reasons why site.yml built it for no stack."""
    texts: dict[str, dict[str, list[str]]] = {}
    for stack in software.get("stacks") or ():
        for feature, text in (stack.get("not_built") or {}).items():
            texts.setdefault(feature, {}).setdefault(text, []).append(stack["name"])
    return {
        feature: "; ".join(
            f"{text} (stack {', '.join(names)})" for text, names in reasons.items()
        )
        for feature, reasons in texts.items()
    }


def why_not(
    needs: Sequence[str],
    offered: Sequence[frozenset[str]],
    not_built: Mapping[str, str],
) -> str:
    """Return the missing features of a check without a case, and their remedies.

    `needs` are as ReFrame writes them ('+osu'); `offered` are the features of each
    partition together with one of its MPI stacks. The pair with the fewest missing
    features counts. `not_built` are from `reasons_not_built`.
    """
    wanted = [need[1:] for need in needs if need.startswith("+")]
    lacks = [[name for name in wanted if name not in pair] for pair in offered]
    missing = min(lacks, key=len, default=wanted)
    if not missing:
        asked = " ".join(needs) or "what valid_systems and valid_prog_environs ask for"
        return f"no partition and MPI stack together are {asked}"
    return "; ".join(not_built.get(name) or _remedy(name) for name in missing)


def _remedy(feature: str) -> str:
    if feature in PROGRAMS:
        return (
            f"no MPI stack has {PROGRAMS[feature]} (feature {feature}): install them "
            f"and name what was installed in programs.{feature} of mpi_stacks, or have "
            "them built by Spack (provider spack; spack_only)"
            + (_BY_SITE_YML if feature in _BUILT else "")
        )
    return (
        f"no partition with an MPI stack has the feature {feature}: our own programs "
        "are built for each stack with a compiler, node_classes states the others"
    )
