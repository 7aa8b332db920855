"""A site's topology of Slurm against the fabric's, by nodes."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from seatrial.audit.rows import Verdict
from seatrial.fabric.findings import Finding, Spot
from seatrial.fabric.topology import Switch
from seatrial.names import natural_key, node_set

_MOST_SHOWN = 200


def check(site: Sequence[Switch], fabric: Sequence[Switch]) -> list[Finding]:
    """Compare a site's topology with the fabric's, by nodes: names may differ."""
    wanted = {node: one.name for one in fabric for node in one.nodes}
    listed: dict[str, list[Switch]] = defaultdict(list)
    for one in site:
        for node in one.nodes:
            listed[node].append(one)
    findings = []
    names = _leaf_names(site, wanted)
    for node in sorted({*wanted, *listed}, key=natural_key):
        own, leaf = listed[node], wanted.get(node)
        if leaf is None:
            findings.append(_node("odd", node, own, "not in the fabric"))
        elif not own:
            findings.append(_node("absent", node, own, f"leaf {leaf}"))
        elif [names.get(one.name) for one in own] != [leaf]:
            findings.append(_node("drift", node, own, f"leaf {leaf}"))
    return findings + _groups(site, fabric)


def _node(verdict: Verdict, node: str, leafs: Sequence[Switch], actual: str) -> Finding:
    lines = tuple(one.line for one in leafs)
    declared = " and ".join(f"leaf {one.name}" for one in leafs) or "not listed"
    reason = f"line {', '.join(map(str, lines))}" if lines else ""
    return Finding("leaf", verdict, (Spot(node),), declared, actual, reason, (), lines)


def _leaf_names(site: Sequence[Switch], wanted: Mapping[str, str]) -> dict[str, str]:
    """Pair leafs of the site with those of the fabric, by the most common nodes.

    Each is in one pair at most.
    """
    common = Counter(
        (one.name, wanted[node]) for one in site for node in one.nodes if node in wanted
    )
    names: dict[str, str] = {}
    taken: set[str] = set()
    for (own, leaf), _ in sorted(common.items(), key=lambda one: (-one[1], one[0])):
        if own not in names and leaf not in taken:
            names[own] = leaf
            taken.add(leaf)
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
    below: dict[str, set[str]] = {}
    for name in TopologicalSorter(
        {one.name: one.children for one in switches}
    ).static_order():
        own = by_name[name]
        below[name] = {*own.nodes}.union(*(below[child] for child in own.children))
    return below
