"""Join what several tools say to one fabric, and name its devices."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

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


def infiniband(
    base: Seen,
    others: Iterable[tuple[str, Seen]] = (),
    managers: Sequence[SeenManager] | None = None,
    sources: Sequence[Source] = (),
    problems: Iterable[str] = (),
) -> Fabric:
    """Return the fabric of `base`; states, cables and firmware come from all.

    `others` are tools by name. A link that one tool shows and another does not is a
    problem of the fabric: it changed between both, or did not answer.
    """
    found = [*problems]
    for tool, other in others:
        found += _add(base, other, tool)
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
        None if managers is None else _managers(managers),
        leafs_of(tuple(devices.values()), links),
        tuple(sources),
        tuple(found),
    )


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
            name = other.devices[place[0]].description or "a device"
            problems.append(f"only {tool} shows {name} ({place[0]})")
            continue
        known_port = base.port(at)
        for field in ("state", "physical", "part", "serial", "speed"):
            if value := getattr(port, field):
                setattr(known_port, field, value)
        known_port.width = port.width or known_port.width
        known_port.silent = known_port.silent or (port.silent and at not in base.links)
    both = dict(_own_links(other, own))
    for at, far in both.items():
        if base.links.get(at) not in (None, far):
            problems.append(f"{tool} shows another cable at {at[0]} port {at[1]}")
    return [*dict.fromkeys(problems)]


def _own_links(other: Seen, own: object) -> Iterable[tuple[Place, Place]]:
    assert callable(own)
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


def _managers(managers: Sequence[SeenManager]) -> tuple[Manager, ...]:
    """Return each manager once."""
    unique = {manager.guid: manager for manager in managers}
    return tuple(
        Manager(one.guid, one.priority, one.state, one.lid) for one in unique.values()
    )


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
