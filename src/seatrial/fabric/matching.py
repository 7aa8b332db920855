"""Match the names and ports of a plan with those of a discovered fabric."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from seatrial.fabric.plan import Cable, Plan
from seatrial.fabric.planned_names import check_names
from seatrial.fabric.records import End, Fabric
from seatrial.names import natural_key

_HCA_PORT = re.compile(r"(?:(?P<hca>.+):)?(?P<port>\d+)")


@dataclass
class Matched:
    """A plan in the fabric's own names.

    `replaced` has the planned name of each switch that stands in the place of another.
    """

    cables: list[Cable]
    links: dict[End, End]
    replaced: dict[str, str] = field(default_factory=dict)


def match(
    fabric: Fabric, plan: Plan, nodes: Callable[[], Collection[str]] = tuple
) -> Matched:
    """Return the planned cables by the fabric's ports.

    `nodes` returns the nodes of the system, if it knows them; it is called only for a
    planned host that is not in the fabric. Raises SeatrialError, with the line of the
    plan, for a name that differs from the fabric's only in case or domain, and for a
    host, neither a node nor in the fabric, that looks like a misspelling of one.
    """
    known = {device.name for device in fabric.devices}
    links = _links(fabric)
    check_names(plan, known, links, nodes)
    renamed = _host_ports(fabric, plan)
    cables = [
        replace(one, a=renamed.get(one.a, one.a), b=renamed.get(one.b, one.b))
        for one in plan.cables
    ]
    replaced = _replaced_switches(cables, plan, links, known)
    if replaced:
        back = {planned: actual for actual, planned in replaced.items()}
        cables = [
            replace(one, a=_moved(one.a, back), b=_moved(one.b, back)) for one in cables
        ]
    return Matched(cables, links, replaced)


def _links(fabric: Fabric) -> dict[End, End]:
    """Return the links in both directions, without those inside of switches."""
    inside = {one.name for one in fabric.devices if one.kind == "aggregation"}
    links = {}
    for link in fabric.links:
        if link.a.device not in inside and link.b.device not in inside:
            links[link.a] = link.b
            links[link.b] = link.a
    return links


def _host_ports(fabric: Fabric, plan: Plan) -> dict[End, End]:
    """Return the fabric's labels of the ports of hosts.

    A plan may number the ports of a host with one HCA, leave out port 1, or call HCAs
    in another way than the description does: then they are taken in their order.
    """
    actual: dict[str, set[str]] = defaultdict(set)
    for device in fabric.devices:
        if device.kind == "host" and device.guid:
            actual[device.name].add(device.hca)
    ends = {end for cable in plan.cables for end in (cable.a, cable.b)}
    planned: dict[str, dict[End, tuple[str, str]]] = defaultdict(dict)
    for end in ends:
        if end.device in actual:
            found = _HCA_PORT.fullmatch(end.port)
            hca, port = (
                (found["hca"] or "", found["port"]) if found else (end.port, "1")
            )
            planned[end.device][end] = (hca, port)
    renamed = {}
    for host, own in planned.items():
        hcas = sorted({hca for hca, _ in own.values()}, key=natural_key)
        names = sorted(actual[host], key=natural_key)
        same = dict(zip(hcas, names, strict=False))
        if not actual[host].isdisjoint(hcas) or len(hcas) != len(names):
            same = {hca: hca for hca in hcas}
        for end, (hca, port) in own.items():
            label = f"{same[hca]}:{port}" if same[hca] else port
            renamed[end] = End(host, label)
    return renamed


def _replaced_switches(
    cables: Iterable[Cable],
    plan: Plan,
    links: Mapping[End, End],
    known: Collection[str],
) -> dict[str, str]:
    """Return switches that are not planned, each with the planned one it replaces.

    More than half of the cables of the planned switch end at it, at the same ports.
    """
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    counts: Counter[str] = Counter()
    for cable in cables:
        for own, far in ((cable.a, cable.b), (cable.b, cable.a)):
            if own.device in known or plan.kinds[own.device] != "switch":
                continue
            counts[own.device] += 1
            there = links.get(far)
            if there and there.device not in plan.kinds and there.port == own.port:
                votes[own.device][there.device] += 1
    replaced: dict[str, str] = {}
    for planned, found in votes.items():
        actual, number = found.most_common(1)[0]
        if number * 2 > counts[planned] and actual not in replaced:
            replaced[actual] = planned
    return replaced


def _moved(end: End, names: Mapping[str, str]) -> End:
    name = names.get(end.device)
    return End(name, end.port) if name else end
