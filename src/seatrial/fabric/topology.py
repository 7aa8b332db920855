"""Slurm's topology of a fabric: topology.conf, topology.yaml, and a check of both.

Formats: topology.conf(5) and topology.yaml(5) of Slurm, `scontrol show topology`.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from seatrial.audit.rows import Verdict
from seatrial.errors import SeatrialError
from seatrial.fabric.findings import Finding, Spot
from seatrial.fabric.plan import Plan
from seatrial.fabric.records import End, Fabric
from seatrial.names import natural_key, node_set
from seatrial.standins.hostlist import expand

_TOP = "fabric"
_FIELD = re.compile(r"(\w+)=(\S+)")
_MOST_SHOWN = 200


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


def read_topology(text: str, file: str) -> list[Switch]:
    """Read a site's topology.conf, or what `scontrol show topology` prints.

    Raises SeatrialError with file and line.
    """
    switches: list[Switch] = []
    known: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = dict(_FIELD.findall(line.partition("#")[0]))
        name = fields.get("SwitchName") or fields.get("BlockName")
        if name is None:
            if line.strip() and not line.lstrip().startswith(("#", "BlockSizes")):
                raise SeatrialError(
                    f"{file}:{number}: expected SwitchName=, got {line!r}."
                )
            continue
        if name in known:
            raise SeatrialError(
                f"{file}:{number}: switch {name!r} of line {known[name]} again."
            )
        known[name] = number
        lists = [_expanded(fields, key, f"{file}:{number}") for key in _LISTS]
        leaf = "Level" not in fields or fields["Level"] == "0"
        nodes = lists[0] if leaf and not lists[1] else ()
        switches.append(Switch(name, nodes, lists[1], (), number))
    if not switches:
        raise SeatrialError(f"{file}: no switch; expected lines with SwitchName=")
    for one in switches:
        for child in one.children:
            if child not in known:
                raise SeatrialError(
                    f"{file}:{one.line}: Switches: unknown switch {child!r}. Add it."
                )
    return switches


_LISTS = ("Nodes", "Switches")


def _expanded(fields: Mapping[str, str], key: str, where: str) -> tuple[str, ...]:
    text = fields.get(key, "")
    try:
        return tuple(expand(text)) if text and text != "(null)" else ()
    except ValueError as error:
        raise SeatrialError(f"{where}: {key}: {error}.") from error


def check(site: Sequence[Switch], fabric: Sequence[Switch]) -> list[Finding]:
    """Compare a site's topology with the fabric's, by nodes: names may differ."""
    wanted = {node: one.name for one in fabric for node in one.nodes}
    listed = {node: one for one in site for node in one.nodes}
    findings = []
    names = _leaf_names(site, wanted)
    for node in sorted({*wanted, *listed}, key=natural_key):
        own, leaf = listed.get(node), wanted.get(node)
        if own is None:
            findings.append(_node("absent", node, f"leaf {leaf}", "not listed"))
        elif leaf is None:
            findings.append(
                _node("odd", node, f"leaf {own.name}", "not in the fabric", own.line)
            )
        elif names.get(own.name) != leaf:
            findings.append(
                _node("drift", node, f"leaf {own.name}", f"leaf {leaf}", own.line)
            )
    return findings + _groups(site, fabric)


def _node(
    verdict: Verdict, node: str, declared: str, actual: str, line: int = 0
) -> Finding:
    return Finding(
        "leaf",
        verdict,
        (Spot(node),),
        declared,
        actual,
        f"line {line}" if line else "",
        (),
        (line,) if line else (),
    )


def _leaf_names(site: Sequence[Switch], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the fabric's leaf that most nodes of each leaf of the site have."""
    names = {}
    for one in site:
        leafs = [wanted[node] for node in one.nodes if node in wanted]
        if leafs:
            names[one.name] = max(sorted(set(leafs)), key=leafs.count)
    return names


def _groups(site: Sequence[Switch], fabric: Sequence[Switch]) -> list[Finding]:
    """Return switches of the site above leafs that join other leafs than the fabric."""
    leafs = {node: one.name for one in fabric for node in one.nodes}
    families = {
        frozenset(leafs[node] for node in nodes if node in leafs)
        for nodes in _below(fabric).values()
    }
    families.add(frozenset(leafs.values()))
    below = _below(site)
    findings = []
    for one in site:
        group = frozenset(leafs[node] for node in below[one.name] if node in leafs)
        if one.children and group not in families:
            text = node_set(group)
            findings.append(
                Finding(
                    "leaf",
                    "drift",
                    (Spot(one.name),),
                    f"{one.name} joins {text[:_MOST_SHOWN]}",
                    "no switch of the fabric joins just these leafs",
                    f"line {one.line}",
                    (),
                    (one.line,),
                )
            )
    return findings


def _below(switches: Sequence[Switch]) -> dict[str, set[str]]:
    """Return the nodes below each switch."""
    by_name = {one.name: one for one in switches}
    found: dict[str, set[str]] = {}

    def nodes(name: str, above: frozenset[str]) -> set[str]:
        if name in found:
            return found[name]
        if name in above:
            raise SeatrialError(f"topology: switch {name!r} is above itself")
        own = by_name[name]
        below = set(own.nodes)
        for child in own.children:
            below |= nodes(child, above | {name})
        found[name] = below
        return below

    for name in by_name:
        nodes(name, frozenset())
    return found
