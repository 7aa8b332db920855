"""Names of parts that explain slow pairs, as a technician needs them."""

from collections.abc import Mapping, Sequence

from seatrial.fabric.findings import Spot, cable_text, spots_of
from seatrial.fabric.locate import Part
from seatrial.fabric.plan import Cable
from seatrial.fabric.records import End
from seatrial.fabric.routes import Graph

Cables = Mapping[frozenset[End], Cable]
"""Planned cables by their ends."""

HIDDEN = (
    "adaptive routing hides which: measure pairs without it, or read counters "
    "(docs/fabric.md)"
)
"""The way out if pairs under adaptive routing do not tell parts apart."""

_MOST = 3


def part_text(graph: Graph, part: Part, cables: Cables) -> str:
    """Return a part as a technician finds it."""
    if part.kind == "switch":
        return f"switch {graph.switches[part.number]}"
    link = graph.links[part.number]
    cable = cables.get(frozenset((link.a, link.b)))
    ends = (link.a, link.b)
    spots = spots_of(cable) if cable else [Spot(one.device, one.port) for one in ends]
    text = cable_text(cable.cable if cable else "", *spots)
    if part.kind == "node":
        return f"node {graph.hosts[int(graph.ends[part.number].min())]}, or its {text}"
    return text if cable and cable.cable else f"cable {text}"


def parts_text(graph: Graph, parts: Sequence[Part], cables: Cables) -> str:
    """Return a part, or of several that they are: `one of 16 cables of leaf07: ...`."""
    names = [part_text(graph, part, cables) for part in parts[:_MOST]]
    if len(parts) == 1:
        return names[0]
    more = len(parts) - len(names)
    listed = "; ".join([*names, *([f"{more} more"] if more else [])])
    return f"one of {len(parts)} {_noun(graph, parts)}: {listed}"


def _noun(graph: Graph, parts: Sequence[Part]) -> str:
    """Return the kind of parts; of cables also the switch that all are at."""
    kinds = {part.kind for part in parts}
    if kinds == {"switch"}:
        return "switches"
    if kinds != {"cable"}:
        return "parts"
    links = [graph.links[part.number] for part in parts]
    common = set[str].intersection(*({one.a.device, one.b.device} for one in links))
    return f"cables of {min(common)}" if common else "cables"
