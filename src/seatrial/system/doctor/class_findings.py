"""Findings on the classes of nodes: partition, nodes, QOS, a job."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.system.doctor.finding import Diagnosis, finding
from seatrial.system.doctor.node_findings import node_findings
from seatrial.system.doctor.probe import Facts

_READY = ("idle", "allocated", "mixed", "completing", "planned", "reserved")


def class_findings(
    facts: Facts, classes: list[Mapping[str, Any]]
) -> Iterator[Diagnosis]:
    """Yield the findings on each class."""
    if not classes:
        text, remedy = "node_classes is empty", "name the classes of nodes there"
        yield Diagnosis("node classes", "inventory", "fail", text, remedy)
    states = dict(line.split("|", 1) for line in facts.all("partition"))
    for node_class in classes:
        name = node_class["name"]
        partition = node_class.get("partition", name)
        yield _partition(facts, name, partition, states)
        if partition in states:
            yield from _nodes(facts, node_class, partition)
            yield from _qos(facts, node_class)
            yield from node_findings(facts, name, node_class.get("features", ()))


def _partition(
    facts: Facts, name: str, partition: str, states: Mapping[str, str]
) -> Diagnosis:
    if partition not in states:
        present = ", ".join(sorted(states)) or "none"
        remedy = f"set partition of the class; Slurm has {present}"
        return Diagnosis("partition", name, "fail", f"no {partition}", remedy)
    hidden = "" if partition in facts.all("visible") else " (hidden)"
    state, _, limit = states[partition].partition("|")
    return finding(
        "partition",
        name,
        holds=state == "up",
        text=f"{partition}{hidden} is {state}, time limit {limit}",
        remedy="set its state to up, or choose another partition",
    )


def _nodes(
    facts: Facts, node_class: Mapping[str, Any], partition: str
) -> Iterator[Diagnosis]:
    """Compare the delivered nodes of a class with those of its partition in Slurm."""
    name = node_class["name"]
    ready = (*_READY, "maint") if node_class.get("reservation") else _READY
    delivered = facts.all("delivered", f"class {name}")
    present = {
        node: state
        for node, of, state in (line.split("|", 2) for line in facts.all("node"))
        if of == partition
    }
    unknown = [node for node in delivered if node not in present]
    yield finding(
        "nodes",
        name,
        holds=bool(delivered) and not unknown,
        text=f"{_some(unknown)} not in partition {partition} of Slurm"
        if unknown
        else f"Slurm has all {len(delivered)}"
        if delivered
        else "no node, or a host list that Slurm cannot read",
        remedy="correct nodes of the class; a node that was delivered and is not in "
        "Slurm fails the acceptance as absent",
        warn=len(unknown) < len(delivered),
    )
    away = [
        f"{node} {present[node]}"
        for node in delivered
        if node in present and present[node].rstrip("*~#!%$@^-+") not in ready
    ]
    if away:
        text = f"{_some(away)} of {len(delivered)}"
        remedy = "`scontrol show node` prints the reason; absent nodes fail"
        yield Diagnosis("node states", name, "warn", text, remedy)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _qos(facts: Facts, node_class: Mapping[str, Any]) -> Iterator[Diagnosis]:
    """Compare the limits of the class's QOS with the number of its nodes."""
    count = len(facts.all("delivered", f"class {node_class['name']}"))
    for line in facts.all("qos"):
        name, *limits = line.split("|")
        if name != node_class.get("qos"):
            continue
        nodes = [int(n) for n in re.findall(r"\bnode=(\d+)", "|".join(limits[:2]))]
        yield finding(
            "qos",
            node_class["name"],
            holds=min(nodes, default=count) >= count,
            text=f"{name}: " + (", ".join(filter(None, limits)) or "no limit"),
            remedy=f"jobs take up to {count} nodes: raise MaxTRES of the QOS, choose "
            "another, or run with fewer nodes",
            warn=True,
        )
