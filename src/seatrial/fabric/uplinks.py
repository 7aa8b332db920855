"""Up-links of leafs: their number, and how evenly they reach the switches above."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping

from seatrial.fabric.cables import Situation
from seatrial.fabric.findings import Finding, Spot
from seatrial.fabric.plan import Plan
from seatrial.fabric.records import End, Fabric


def planned_uplinks(
    known: Situation, ends: Collection[End], plan: Plan
) -> Iterator[Finding]:
    """Yield leafs whose links to a switch differ in number from the plan.

    The cables have findings of their own: this one is what a job feels.
    """
    wanted = _uplinks(
        {
            end: (cable.b if cable.a == end else cable.a)
            for end, cable in known.planned.items()
        },
        known.hosts,
    )
    actual = _uplinks({end: known.links[end] for end in ends}, known.hosts)
    for leaf, switches in wanted.items():
        found = actual.get(leaf, Counter[str]())
        if found == switches or not found:
            continue
        parts = [
            f"{found[name]} of {switches[name]} to {name}"
            for name in sorted(switches | found)
            if found[name] != switches[name]
        ]
        yield Finding(
            "uplinks",
            "odd",
            (Spot(leaf, "", plan.racks.get(leaf, "")),),
            f"{switches.total()} up-links",
            f"{found.total()} up-links: {', '.join(parts)}",
        )


def even_uplinks(fabric: Fabric) -> Iterator[Finding]:
    """Yield leafs with fewer up-links than most, or unevenly spread; without a plan."""
    hosts = frozenset(one.name for one in fabric.devices if one.kind == "host")
    inside = {one.name for one in fabric.devices if one.kind == "aggregation"}
    links: dict[End, End] = {}
    for link in fabric.links:
        if not {link.a.device, link.b.device} & inside:
            links |= {link.a: link.b, link.b: link.a}
    found = _uplinks(links, hosts)
    totals = Counter(switches.total() for switches in found.values())
    if not totals:
        return
    usual, number = totals.most_common(1)[0]
    for leaf, switches in found.items():
        few = switches.total() != usual and number * 2 > totals.total()
        if few or max(switches.values()) - min(switches.values()) > 1:
            spread = ", ".join(
                f"{switches[name]} to {name}" for name in sorted(switches)
            )
            yield Finding(
                "uplinks",
                "odd",
                (Spot(leaf),),
                "",
                f"{switches.total()} up-links: {spread}",
                f"{number} of {totals.total()} leafs have {usual} up-links",
            )


def _uplinks(
    links: Mapping[End, End], hosts: Collection[str]
) -> dict[str, Counter[str]]:
    """Count the links of each leaf (a switch with hosts) by the switch above."""
    leafs = {
        end.device
        for end, far in links.items()
        if far.device in hosts and end.device not in hosts
    }
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for end, far in links.items():
        if end.device in leafs and far.device not in hosts:
            found[end.device][far.device] += 1
    return found
