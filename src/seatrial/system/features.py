"""Features of partitions and MPI stacks that checks need, and their providers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PROGRAMS = {
    "imb": "the Intel MPI Benchmarks",
    "osu": "the OSU Micro-Benchmarks",
    "hpcc": "HPCC",
    "hpcg": "HPCG",
    "hpl": "HPL",
    "npb": "the NAS Parallel Benchmarks",
    "lammps": "LAMMPS",
    "ior": "IOR with mdtest",
}
"""Features that a stack has by its `programs` in the inventory."""


_NO_RDMA = (
    "no class of nodes has an RDMA device (feature verbs): where nodes have one, state "
    "the feature and the rails of the class in node_classes"
)
_BUILT = ("osu", "npb", "ior", "hpl", "hpcg")
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
    features counts. Without RDMA devices, programs that need them are not asked for.
    `not_built` are from `reasons_not_built`.
    """
    wanted = [need[1:] for need in needs if need.startswith("+")]
    lacks = [[name for name in wanted if name not in pair] for pair in offered]
    missing = min(lacks, key=len, default=wanted)
    if not missing:
        asked = " ".join(needs) or "what valid_systems and valid_prog_environs ask for"
        return f"no partition and MPI stack together are {asked}"
    if "verbs" in missing:
        return _NO_RDMA
    named = [name for name in missing if name in PROGRAMS or name in not_built]
    reasons = [not_built.get(name) or _no_program(name) for name in named]
    if others := [name for name in missing if name not in named]:
        reasons.append(
            "no partition with an MPI stack has the "
            f"feature{'s' * (len(others) > 1)} {', '.join(others)}: our own programs "
            "are built for each stack with a compiler, node_classes states the others"
        )
    return "; ".join(reasons)


def _no_program(feature: str) -> str:
    return (
        f"no MPI stack has {PROGRAMS[feature]} (feature {feature}): install them "
        f"and name what was installed in programs.{feature} of mpi_stacks, or have "
        "them built by Spack (provider spack; spack_only)"
        + (_BY_SITE_YML if feature in _BUILT else "")
    )
