"""Names of nodes and switches in the descriptions of InfiniBand devices."""

import re
from typing import NamedTuple

_MANAGED = re.compile(r"MF0;(?P<name>[^:;]+):(?P<model>[^/]+)(?:/(?P<part>.+))?")
_HCA = re.compile(
    r"(?P<node>[\w.-]+) (?P<hca>(?:mlx\d_|hfi\d_|qib|ibp|bnxt_re|HCA-)\S*)"
)
_AGGREGATION = "Aggregation Node"
_SINGLE_CHIP = "U1"


class Named(NamedTuple):
    """Name of a node or switch, its HCA and model; '' where nothing tells."""

    name: str
    hca: str = ""
    model: str = ""


def is_aggregation(description: str) -> bool:
    """Return True for the HCA inside a switch that reduces messages (SHARP)."""
    return _AGGREGATION in description


def name_host(description: str) -> Named:
    """Return node and HCA: `cn01 mlx5_0`, `cn01 HCA-1`, or a node alone.

    An HCA whose node has set no description has the vendor's, which names no node.
    """
    if match := _HCA.fullmatch(description.strip()):
        return Named(match["node"], match["hca"])
    words = description.split()
    return Named(words[0]) if len(words) == 1 else Named("")


def name_switch(description: str) -> Named:
    """Return name and model: `MF0;leaf01:MQM8700/U1`, or a name that the site has set.

    A chip of a director keeps its place: `MF0;core1:CS8500/L07/U1` is core1/L07/U1.
    """
    text = description.strip()
    if match := _MANAGED.fullmatch(text):
        part = match["part"] or _SINGLE_CHIP
        name = match["name"] if part == _SINGLE_CHIP else f"{match['name']}/{part}"
        return Named(name, "", match["model"])
    return Named(text) if text and " " not in text else Named("")
