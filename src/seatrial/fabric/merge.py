"""Join what several tools say to one fabric, and name its devices."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seatrial.fabric.descriptions import (
    Named,
    is_aggregation,
    name_host,
    name_switch,
)
from seatrial.fabric.records import (
    Device,
    Duplicate,
    End,
    Fabric,
    Kind,
    Link,
    Manager,
    OpenPort,
    Source,
    leafs_of,
)
from seatrial.parsers.fabric.lldpctl import Neighbour
from seatrial.parsers.fabric.seen import Place, Seen, guid_of
from seatrial.parsers.fabric.sminfo import SeenManager

_TWICE = re.compile(r"Duplicate Port: Port with guid 0x([0-9a-f]+)")
_ABOUT_TWICE = re.compile(rf"{_TWICE.pattern}|trying to insert new port guid")
"""Messages of libibnetdisc, which prints no more of the second device."""


@dataclass
class Subnet:
    """The outputs of tools on one subnet, parsed.

    Devices and links come from `base`; `others` are those of further tools, with their
    names. `managers` is None if no tool was asked for them.
    """

    name: str
    base: Seen
    others: list[tuple[str, Seen]] = field(default_factory=list)
    managers: list[SeenManager] | None = None


def infiniband(
    subnets: Sequence[Subnet],
    sources: Sequence[Source] = (),
    problems: Iterable[str] = (),
) -> Fabric:
    """Return the fabric of all subnets, such as those of rails.

    Devices and links come from the `base` of each, states, cables and firmware from all
    tools. A link that one tool shows and another does not is a problem of the fabric:
    it changed between both, or did not answer.
    """
    found = [*problems]
    for subnet in subnets:
        for tool, other in subnet.others:
            found += _add(subnet.base, other, tool)
    names = _join(subnets)
    base = subnets[0].base
    devices = _devices(base)
    ends = {
        (guid, str(number)): _end(device, str(number))
        for guid, device in devices.items()
        for number in range(1, device.ports + 1)
    }
    links = tuple(
        _link(base, ends, place, far)
        for place, far in base.links.items()
        if ends[place] <= ends[far]
    )
    linked = {*base.links, *base.links.values()}
    twice = {guid_of(guid) for text in found for guid in _TWICE.findall(text)}
    found = [text for text in found if not _ABOUT_TWICE.search(text)]
    open_ports = tuple(
        OpenPort(
            ends[place],
            port.state,
            port.physical,
            port.silent or port.physical == "LinkUp",
        )
        for place, port in base.ports.items()
        if place not in linked and place in ends
    )
    return Fabric(
        tuple(devices.values()),
        links,
        open_ports,
        (*_duplicates(base, ends), *_told_twice(base, ends, twice, open_ports)),
        _managers(subnets, names),
        leafs_of(tuple(devices.values()), links),
        tuple(sources),
        tuple(found),
        subnets=tuple(dict.fromkeys(names)),
    )


def _join(subnets: Sequence[Subnet]) -> list[str]:
    """Add all subnets to the first one; return the name of each.

    Those that share a switch are one subnet, seen from two HCAs.
    """
    whole, owners, names = subnets[0].base, dict[str, str](), []
    for subnet in subnets:
        own = subnet.base
        shared = (owners[guid] for guid in own.devices if guid in owners)
        names.append(next(shared, subnet.name))
        owners |= {
            guid: names[-1] for guid, one in own.devices.items() if one.kind == "switch"
        }
        if own is not whole:
            whole.devices = own.devices | whole.devices
            whole.ports |= own.ports
            whole.links |= own.links
            whole.port_guids |= own.port_guids
            whole.conflicts += own.conflicts
    return names


def _add(base: Seen, other: Seen, tool: str) -> list[str]:
    """Add states, cables and firmware of another tool; return what contradicts."""
    problems = []

    def own(place: Place) -> Place | None:
        if place[0] in base.devices:
            return place
        return base.port_guids.get(place[0])

    for guid, device in other.devices.items():
        owner = own((guid, "1"))
        known = base.devices.get(owner[0]) if owner else None
        if known is not None:
            base.devices[known.guid] = replace(
                known,
                description=known.description or device.description,
                psid=known.psid or device.psid,
                firmware=known.firmware or device.firmware,
            )
    for place, port in other.ports.items():
        at = own(place)
        if at is None:
            text = other.devices[place[0]].description or "a device"
            problems.append(f"only {tool} shows {text} ({place[0]})")
            continue
        known_port = base.port(at)
        for name in ("state", "physical", "part", "serial", "speed"):
            if value := getattr(port, name):
                setattr(known_port, name, value)
        known_port.width = port.width or known_port.width
        known_port.silent = known_port.silent or (port.silent and at not in base.links)
    both = dict(_own_links(other, own))
    for at, far in both.items():
        if base.links.get(at) not in (None, far):
            problems.append(f"{tool} shows another cable at {at[0]} port {at[1]}")
    return [*dict.fromkeys(problems)]


def _own_links(
    other: Seen, own: Callable[[Place], Place | None]
) -> Iterable[tuple[Place, Place]]:
    """Yield the links of another tool, by our ports; `own` gives that of a port."""
    for place, far in other.links.items():
        at, to = own(place), own(far)
        if at is not None and to is not None:
            yield at, to


def _devices(seen: Seen) -> dict[str, Device]:
    """Name all devices; those whose name is not unique, or empty, by their GUID."""
    named: dict[str, tuple[Kind, Named]] = {}
    for guid, device in seen.devices.items():
        kind: Kind = device.kind
        if kind == "host" and is_aggregation(device.description):
            named[guid] = ("aggregation", Named(""))
        elif kind == "host":
            named[guid] = (kind, name_host(device.description))
        else:
            named[guid] = (kind, name_switch(device.description))
    counts = Counter((name.name, name.hca) for _, name in named.values())
    hosts = {name.name for kind, name in named.values() if kind == "host"}
    devices = {}
    for guid, (kind, name) in named.items():
        unique = counts[name.name, name.hca] == 1
        if not name.name or not unique or (kind != "host" and name.name in hosts):
            name = Named(guid, name.hca, name.model)
        device = seen.devices[guid]
        devices[guid] = Device(
            name.name,
            kind,
            guid,
            name.hca,
            device.description,
            name.model,
            device.psid,
            device.firmware,
            device.lid,
            device.ports,
        )
    return devices


def _end(device: Device, port: str) -> End:
    return End(device.name, f"{device.hca}:{port}" if device.hca else port)


def _link(seen: Seen, ends: Mapping[Place, End], place: Place, far: Place) -> Link:
    """Return a link; of what both ends say, the lower width and the worse state."""
    a, b = seen.port(place), seen.port(far)
    widths = [port.width for port in (a, b) if port.width]
    worse = next((port for port in (a, b) if port.state not in ("", "Active")), a)
    return Link(
        ends[place],
        ends[far],
        min(widths) if widths else None,
        a.speed or b.speed,
        worse.state or b.state,
        worse.physical or b.physical,
        a.part or b.part,
        a.serial or b.serial,
    )


def _told_twice(
    seen: Seen,
    ends: Mapping[Place, End],
    guids: Collection[str],
    open_ports: Sequence[OpenPort],
) -> Iterator[Duplicate]:
    """Yield the GUIDs that a tool complained about: of its devices it shows one only.

    The other one is behind the port that has no answer, if there is just one.
    """
    silent = [port.end for port in open_ports if port.silent]
    for guid in sorted(guids):
        place = seen.port_guids.get(guid)
        known = [] if place is None else [ends[seen.links.get(place, place)]]
        other = silent if len(guids) == len(silent) == 1 else []
        yield Duplicate(place[0] if place else guid, (*known, *other))


def _duplicates(seen: Seen, ends: Mapping[Place, End]) -> tuple[Duplicate, ...]:
    found: dict[str, list[End]] = {}
    for conflict in seen.conflicts:
        known = found.setdefault(conflict.guid, [])
        known += [ends.get(place, End(*place)) for place in conflict.ends]
    return tuple(
        Duplicate(guid, tuple(dict.fromkeys(places))) for guid, places in found.items()
    )


def _managers(
    subnets: Sequence[Subnet], names: Sequence[str]
) -> tuple[Manager, ...] | None:
    """Return each manager of each subnet once; None if no tool was asked for them."""
    found: dict[tuple[str, str], Manager] = {}
    for subnet, name in zip(subnets, names, strict=True):
        for one in subnet.managers or ():
            found[name, one.guid] = Manager(
                one.guid, one.priority, one.state, one.lid, name
            )
    asked = any(subnet.managers is not None for subnet in subnets)
    return tuple(found.values()) if asked else None


def ethernet(
    neighbours: Mapping[str, Sequence[Neighbour]], sources: Sequence[Source] = ()
) -> Fabric:
    """Return the fabric that the nodes' LLDP daemons see."""
    identities: dict[str, set[str]] = {}
    devices = {node: Device(node, "host") for node in neighbours}
    links = []
    problems = []
    for node, own in neighbours.items():
        if not own:
            problems.append(f"lldpctl of {node} shows no neighbour")
        for one in own:
            identities.setdefault(one.switch, set()).add(one.switch_id)
            devices.setdefault(one.switch, Device(one.switch, "switch"))
            links.append(Link(End(node, one.interface), End(one.switch, one.port)))
    for switch, known in identities.items():
        if len(known) > 1:
            listed = ", ".join(sorted(known))
            problems.append(f"{switch} is the name of several switches: {listed}")
    return Fabric(
        tuple(devices.values()),
        tuple(links),
        leafs=leafs_of(tuple(devices.values()), tuple(links)),
        sources=tuple(sources),
        problems=tuple(problems),
    )
