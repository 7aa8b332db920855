"""The configuration of a run as a few readable texts."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from seatrial.names import node_set

_OF_SETTINGS, _BETWEEN = " settings", " | "


def fingerprint(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the configuration of nodes, software and settings, sorted by key.

    Where nodes differ, each value has its nodes: `6.1.0-25 (cn[01-03]); 6.1.0-28
    (cn04)`. Unknown values are left out. The settings of a subject are one text:
    `cpu settings` is `boost=on | governor=performance`.
    """
    return dict(sorted((nodes_and_software(manifest) | _settings(manifest)).items()))


def nodes_and_software(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprint without the settings."""
    nodes = manifest["nodes"]
    software = manifest.get("software", {})
    spack = software.get("spack") or {}
    environments = [
        f"{environment['name']} {environment['sha256'][:12]}"
        for environment in spack.get("environments", [])
    ]
    texts = {name: _of_nodes(nodes, text) for name, text in _FACTS.items()} | {
        "mpi": ", ".join(sorted(map(_stack, software.get("stacks") or []))),
        "nodes": node_set(node["name"] for node in nodes),
        "slurm": software.get("slurm") or "",
        "spack": ", ".join(sorted(environments)),
    }
    return {name: text for name, text in sorted(texts.items()) if text}


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """List the differences to an old fingerprint, for the keys that it has.

    A setting that is not known now is none: a busy node says nothing.
    """
    changed = []
    for name, was in old.items():
        if name.endswith(_OF_SETTINGS):
            before, after = _parts(was), _parts(new.get(name, ""))
            pairs = ((key, before[key], after[key]) for key in before.keys() & after)
            changed += [
                f"{key} of {name.removesuffix(_OF_SETTINGS)} was {a}, is {b}"
                for key, a, b in sorted(pairs)
                if a != b
            ]
        elif new.get(name) != was:
            changed.append(f"{name} was {was}, is {new.get(name, 'not known')}")
    return changed


def _settings(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return a text for each subject; nvconfig, of hundreds of values, as a digest."""
    texts = {}
    for subject, values in manifest.get("settings", {}).items():
        flash = {k: v for k, v in values.items() if k.startswith("nvconfig.")}
        plain = {k: v for k, v in values.items() if k not in flash}
        if flash:
            digest = hashlib.sha256(repr(sorted(flash.items())).encode()).hexdigest()
            plain["nvconfig"] = f"{len(flash)} values, {digest[:12]}"
        parts = (f"{key}={text}" for key, text in sorted(plain.items()))
        texts[subject + _OF_SETTINGS] = _BETWEEN.join(parts)
    return texts


def _parts(text: str) -> dict[str, str]:
    parts = (part.partition("=") for part in text.split(_BETWEEN))
    return {key: value for key, _, value in parts}


def _of_nodes(
    nodes: Iterable[Mapping[str, Any]], format_fact: Callable[[Mapping[str, Any]], str]
) -> str:
    """Return the value of all nodes, or each value with its nodes."""
    values: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        text = format_fact(node.get("facts") or {})
        if text:
            values[text].append(node["name"])
    if len(values) == 1:
        return next(iter(values))
    return "; ".join(
        f"{text} ({node_set(names)})" for text, names in sorted(values.items())
    )


def _cpu(facts: Mapping[str, Any]) -> str:
    if "cpu_model" not in facts:
        return ""
    cores, sockets = facts.get("cores_per_socket"), facts.get("sockets")
    return f"{sockets} x {facts['cpu_model']} with {cores} cores"


def _memory(facts: Mapping[str, Any]) -> str:
    # The last MiB differ between starts of a node.
    return f"{facts['memory_mib'] / 1024:.0f} GiB" if "memory_mib" in facts else ""


def _firmware(facts: Mapping[str, Any]) -> str:
    return ", ".join(
        " ".join(filter(None, (hca["name"], hca["firmware"], hca["board"])))
        for hca in facts.get("hcas", [])
    )


def _driver(facts: Mapping[str, Any]) -> str:
    return ", ".join(sorted({hca["driver"] for hca in facts.get("hcas", [])} - {""}))


def _stack(stack: Mapping[str, Any] | str) -> str:
    if isinstance(stack, str):  # in older manifests
        return stack
    name = str(stack["name"])
    parts = [name, stack.get("version"), stack.get("compiler")]
    return " ".join(filter(None, parts))


_FACTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "cpu": _cpu,
    "driver": _driver,
    "firmware": _firmware,
    "kernel": lambda facts: str(facts.get("kernel") or ""),
    "memory": _memory,
    "os": lambda facts: str(facts.get("os") or ""),
}
