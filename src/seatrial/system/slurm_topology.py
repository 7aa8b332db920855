"""The leaf switches of nodes, by the topology that Slurm has loaded."""

from collections import defaultdict
from collections.abc import Iterable

from seatrial.system.slurm import host_names, printed
from seatrial.system.survey.slurm_records import parse_fields


def node_leafs(nodes: Iterable[str]) -> dict[str, str]:
    """Ask Slurm for the leaf switch of each node; none if it has no topology.

    A leaf is a switch of level 0 (topology/tree) or a block (topology/block). A node
    in no leaf, or in several, is left out.
    """
    leafs: dict[str, set[str]] = defaultdict(set)
    for fields in map(parse_fields, printed("scontrol", "show", "topology") or ()):
        lowest = fields.get("Level") == "0"
        leaf = fields.get("SwitchName" if lowest else "BlockName")
        if leaf and (members := fields.get("Nodes")):
            for node in host_names(members):
                leafs[node].add(leaf)
    return {node: min(leafs[node]) for node in nodes if len(leafs[node]) == 1}
