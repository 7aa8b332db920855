"""The leaf switches of nodes, by the fabric that a system keeps."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from seatrial.fabric.records import read_fabric
from seatrial.names import node_set
from seatrial.paths import DISCOVERED_FILE


def kept_leafs(folder: Path, nodes: Iterable[str]) -> dict[str, str]:
    """Return the leaf of each node in fabric.json of a folder; none without the file.

    Nodes with several rails have the switches of all, joined by +. SeatrialError if
    the file is damaged.
    """
    file = folder / DISCOVERED_FILE
    if not file.is_file():
        return {}
    leafs = read_fabric(file).leafs
    return {node: "+".join(leafs[node]) for node in nodes if leafs.get(node)}


def by_leaf(leafs: Mapping[str, str]) -> dict[str, str]:
    """Return the host list of each leaf."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for node, leaf in leafs.items():
        nodes[leaf].append(node)
    return {leaf: node_set(nodes[leaf]) for leaf in sorted(nodes)}
