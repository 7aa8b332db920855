"""Slurm's topology of a fabric: its tree, as topology.conf and topology.yaml.

Formats: topology.conf(5) and topology.yaml(5) of Slurm.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import yaml

from seatrial.errors import SeatrialError
from seatrial.fabric.plan import Plan
from seatrial.fabric.records import End, Fabric
from seatrial.names import natural_key, node_set

_TOP = "fabric"


@dataclass(frozen=True)
class Switch:
    """A switch of the tree: its nodes if it is a leaf, else the switches below.

    `merged` are the switches that it stands for, if they have the same below them.
    """

    name: str
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    line: int = 0


def of_fabric(fabric: Fabric) -> list[Switch]:
    """Return the tree of a discovered fabric; SeatrialError if no node has a leaf."""
    inside = {one.name for one in fabric.devices if one.kind == "aggregation"}
    hosts = {one.name for one in fabric.devices if one.kind == "host"}
    links = [
        (link.a, link.b)
        for link in fabric.links
        if not {link.a.device, link.b.device} & inside
    ]
    return tree(links, hosts)


def of_plan(plan: Plan) -> list[Switch]:
    """Return the tree of a plan; SeatrialError if no node has a leaf."""
    hosts = {name for name, kind in plan.kinds.items() if kind == "host"}
    return tree([(cable.a, cable.b) for cable in plan.cables], hosts)


def tree(links: Iterable[tuple[End, End]], hosts: Collection[str]) -> list[Switch]:
    """Return a tree: leafs first, its root last.

    A node is at the leaf of its first port: Slurm allows one. Switches of a level that
    have the same switches below them are one switch, as each has one parent in a tree.
    Where levels end without a single root, one is added; above all leafs if these are
    connected to each other, as in a dragonfly or torus.
    """
    neighbours: dict[str, set[str]] = defaultdict(set)
    leaf_of: dict[str, str] = {}
    ports: list[tuple[End, str]] = []
    for a, b in links:
        for own, far in ((a, b), (b, a)):
            if own.device in hosts and far.device not in hosts:
                ports.append((own, far.device))
            elif own.device not in hosts and far.device not in hosts:
                neighbours[own.device].add(far.device)
    for own, switch in sorted(ports, key=lambda one: natural_key(str(one[0]))):
        leaf_of.setdefault(own.device, switch)
    if not leaf_of:
        raise SeatrialError("no node with a link to a switch; expected at least one")
    nodes: dict[str, list[str]] = defaultdict(list)
    for node, switch in leaf_of.items():
        nodes[switch].append(node)
    switches = [
        Switch(name, tuple(sorted(nodes[name], key=natural_key)))
        for name in sorted(nodes, key=natural_key)
    ]
    leafs = set(nodes)
    among = sum(len(neighbours[leaf] & leafs) for leaf in leafs)
    above = sum(len(neighbours[leaf] - leafs) for leaf in leafs)
    return [*switches, *_upper(leafs, {} if among > above else neighbours)]


def _upper(
    leafs: set[str], neighbours: Mapping[str, Collection[str]]
) -> Iterator[Switch]:
    """Yield the switches above, level by level, and the root."""
    group = {leaf: leaf for leaf in leafs}
    tops, seen = set(leafs), set(leafs)
    level = leafs
    while level:
        above = {far for name in level for far in neighbours.get(name, ())} - seen
        members: dict[frozenset[str], list[str]] = defaultdict(list)
        for name in above:
            below = {group[far] for far in neighbours[name] if far in level}
            members[frozenset(below)].append(name)
        for children, names in sorted(members.items(), key=_larger_first):
            names.sort(key=natural_key)
            group |= dict.fromkeys(names, names[0])
            free = tuple(sorted(children & tops, key=natural_key))
            if not free:  # another switch has all of them already
                continue
            tops -= children
            tops.add(names[0])
            merged = tuple(names) if names[1:] else ()
            yield Switch(names[0], (), free, merged)
        seen |= above
        level = above
    if len(tops) > 1:
        yield Switch(_TOP, (), tuple(sorted(tops, key=natural_key)))


def _larger_first(entry: tuple[frozenset[str], list[str]]) -> tuple[object, ...]:
    """Return a sort key: a switch that lacks a cable comes after those that do not."""
    children, names = entry
    return -len(children), min(map(natural_key, names))


def conf(switches: Iterable[Switch]) -> str:
    """Write topology.conf, for topology/tree."""
    lines = ["# Written by `seatrial fabric topology`. slurm.conf: topology/tree"]
    for one in switches:
        if one.merged:
            lines.append(f"# {one.name} stands for {node_set(one.merged)}")
        below = f"Nodes={node_set(one.nodes)}"
        if one.children:
            below = f"Switches={node_set(one.children)}"
        lines.append(f"SwitchName={one.name} {below}")
    return "\n".join(lines) + "\n"


def yaml_text(switches: Iterable[Switch]) -> str:
    """Write topology.yaml, of Slurm 25.05 and later."""
    rows = []
    for one in switches:
        row = {"switch": one.name}
        if one.children:
            row["children"] = node_set(one.children)
        else:
            row["nodes"] = node_set(one.nodes)
        rows.append(row)
    topology = {
        "topology": "default",
        "cluster_default": True,
        "tree": {"switches": rows},
    }
    head = "# Written by `seatrial fabric topology`.\n---\n"
    return head + yaml.safe_dump([topology], sort_keys=False, width=10**6)
