"""Compare a discovered fabric with its plan and declaration."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from seatrial.audit.rows import Verdict
from seatrial.fabric.cables import Situation, cable_findings
from seatrial.fabric.declaration import Declaration
from seatrial.fabric.devices import (
    absent_devices,
    replaced,
    same_names,
    unplanned_devices,
)
from seatrial.fabric.findings import Finding, Kind, Spot, ordered, spots_of
from seatrial.fabric.matching import Matched, match
from seatrial.fabric.plan import Cable, Plan
from seatrial.fabric.records import Device, End, Fabric, Link, Manager
from seatrial.fabric.uplinks import even_uplinks, planned_uplinks
from seatrial.names import node_set

_UP = ("", "Active")
_MOST_PROBLEMS = 4


def compare(
    fabric: Fabric,
    plan: Plan | None,
    declaration: Declaration,
    nodes: Callable[[], Collection[str]] = tuple,
) -> list[Finding]:
    """Return all findings; without a plan, only those that do not need it.

    `nodes` returns the nodes of the system, if it knows them. Raises SeatrialError as
    `match`.
    """
    findings = [
        *_discovery(fabric),
        *_managers(fabric, declaration),
        *_duplicates(fabric),
        *same_names(fabric),
        *_firmware(fabric, declaration),
        *_routes(fabric),
    ]
    leaderless = fabric.managers is not None and not _masters(fabric.managers)
    if plan is None:
        findings += [*_states(fabric.links, {}, leaderless), *even_uplinks(fabric)]
        return ordered(findings)
    matched = match(fabric, plan, nodes)
    known = _situation(fabric, plan, matched)
    absent, instead = [], set[str]()
    for finding, devices in absent_devices(fabric, plan, matched, known):
        absent.append(finding)
        instead |= devices
    unplanned = [*unplanned_devices(fabric, plan, matched, instead)]
    without = frozenset(one.spots[0].device for one in (*absent, *unplanned)) | instead
    findings += [*replaced(matched, known), *absent, *unplanned]
    findings += cable_findings(known, without)
    findings += _rates(fabric.links, known.planned)
    findings += _states(fabric.links, known.planned, leaderless)
    findings += planned_uplinks(known, {*known.links}, plan)
    return ordered(findings)


def _situation(fabric: Fabric, plan: Plan, matched: Matched) -> Situation:
    planned = {end: cable for cable in matched.cables for end in (cable.a, cable.b)}
    back = {actual: plan.kinds[was] for actual, was in matched.replaced.items()}
    kinds = {**plan.kinds, **back}
    spoiled = {end for one in fabric.duplicates for end in one.ends}
    spoiled |= {matched.links[end] for end in spoiled if end in matched.links}
    silent = any(port.silent for port in fabric.open_ports)
    return Situation(
        planned,
        matched.links,
        {port.end: port for port in fabric.open_ports},
        frozenset(name for name, kind in kinds.items() if kind == "host")
        | {one.name for one in fabric.devices if one.kind == "host"},
        plan.racks,
        frozenset(spoiled),
        silent or bool(fabric.problems),
    )


def _discovery(fabric: Fabric) -> Iterator[Finding]:
    for problem in fabric.problems[:_MOST_PROBLEMS]:
        yield _problem(problem)
    more = len(fabric.problems) - _MOST_PROBLEMS
    if more > 0:
        yield _problem(f"and {more} more messages")


def _problem(text: str) -> Finding:
    return Finding(
        "discovery", "unknown", (), "all devices answer", text, "discover again"
    )


def _routes(fabric: Fabric) -> Iterator[Finding]:
    """Yield one finding if the kept forwarding tables do not fit."""
    if fabric.routes:
        remedy = "run dump_fts beside the discovery; slow pairs are not located"
        yield Finding(
            "routes", "odd", (), "tables of this fabric", fabric.routes, remedy
        )


def _managers(fabric: Fabric, declaration: Declaration) -> Iterator[Finding]:
    """Yield what is wrong with the subnet managers; nothing on Ethernet."""
    wanted = declaration.fabric_sm
    about = f"master {wanted.guid}" if wanted and wanted.guid else "one master"
    if fabric.managers is None:
        if wanted is not None:
            yield _manager("unknown", about, "no source tells it")
        return
    masters = _masters(fabric.managers)
    for subnet in fabric.subnets:
        own = [one for one in masters if one.subnet == subnet]
        where = f" in {subnet}" if fabric.subnets[1:] else ""
        if not own:
            yield _manager("absent", about, f"no subnet manager answers{where}")
        elif len(own) > 1:
            listed = ", ".join(one.guid for one in own)
            yield _manager(
                "drift", "one master", f"{len(own)} masters{where}: {listed}"
            )
    if wanted is None or not masters:
        return
    guids = {one.guid for one in masters}
    if wanted.guid and wanted.guid not in guids:
        yield _manager("drift", about, f"master {', '.join(sorted(guids))}")
    priorities = {one.priority for one in masters}
    if wanted.priority is not None and priorities != {wanted.priority}:
        found = ", ".join(map(str, sorted(priorities)))
        yield _manager("drift", f"priority {wanted.priority}", f"priority {found}")


def _masters(managers: Iterable[Manager]) -> list[Manager]:
    return [one for one in managers if one.state == "master"]


def _manager(verdict: Verdict, declared: str, actual: str) -> Finding:
    return Finding("manager", verdict, (), declared, actual)


def _duplicates(fabric: Fabric) -> Iterator[Finding]:
    names = {device.guid: device for device in fabric.devices}
    for one in fabric.duplicates:
        device = names.get(one.guid)
        yield Finding(
            "guid",
            "drift",
            tuple(Spot(end.device, end.port) for end in one.ends),
            "one device",
            f"GUID {one.guid} ({device.name if device else 'unknown'}) at "
            f"{len(one.ends)} ports",
            "cables of these ports are not compared; correct the GUID of one device",
        )


def _firmware(fabric: Fabric, declaration: Declaration) -> Iterator[Finding]:
    """Yield switches with other firmware than declared, or than most of their type."""
    types: dict[str, list[Device]] = defaultdict(list)
    for device in fabric.devices:
        if device.kind == "switch" and device.firmware:
            types[device.psid or device.model].append(device)
    for name, devices in types.items():
        models = {device.model for device in devices} - {""}
        keys = [name, *sorted(models)]
        wanted = next(
            (
                declaration.fabric_firmware[key]
                for key in keys
                if key in declaration.fabric_firmware
            ),
            None,
        )
        counts = Counter(device.firmware for device in devices)
        usual = wanted or counts.most_common(1)[0][0]
        for version in sorted(counts):
            if version != usual:
                others = [one.name for one in devices if one.firmware == version]
                yield Finding(
                    "firmware",
                    "drift" if wanted else "odd",
                    tuple(Spot(one) for one in sorted(others)),
                    usual if wanted else "",
                    version,
                    f"{counts[usual]} of {len(devices)} switches {name} have {usual}",
                )


def _rates(links: Iterable[Link], planned: Mapping[End, Cable]) -> Iterator[Finding]:
    """Yield links with another width or speed; those of unknown rate in one finding."""
    untold: list[Link] = []
    for link in links:
        cable = planned.get(link.a)
        if cable is None or {cable.a, cable.b} != {link.a, link.b}:
            continue
        wanted = _rate(cable.width, cable.speed)
        pairs = ((cable.width, link.width), (cable.speed, link.speed))
        if any(one and other and one != other for one, other in pairs):
            yield _of_link("rate", cable, wanted, _rate(link.width, link.speed))
        elif any(one and not other for one, other in pairs):
            untold.append(link)
    if untold:
        devices = node_set({end.device for one in untold for end in (one.a, one.b)})
        yield Finding(
            "rate",
            "unknown",
            (),
            "width and speed as planned",
            f"no source tells those of {len(untold)} links",
            devices if len(devices) < 200 else "",
        )


def _rate(width: int | None, speed: str) -> str:
    return " ".join(filter(None, (f"{width}x" if width else "", speed)))


def _states(
    links: Iterable[Link], planned: Mapping[End, Cable], without_master: bool
) -> Iterator[Finding]:
    """Yield links that are not Active: planned ones, or all without a plan.

    Without a master, all links wait for one: they are one finding.
    """
    waiting = [link for link in links if link.state not in _UP]
    if without_master and waiting:
        states = sorted({f"{link.state}/{link.physical}" for link in waiting})
        count = f"{len(waiting)} links {', '.join(states)}"
        yield Finding("state", "drift", (), "Active", count, "no subnet manager")
        return
    for link in waiting:
        cable = planned.get(link.a) or Cable(link.a, link.b)
        if {cable.a, cable.b} == {link.a, link.b}:
            state = f"{link.state}/{link.physical}"
            yield _of_link("state", cable, "Active", state)


def _of_link(kind: Kind, cable: Cable, declared: str, actual: str) -> Finding:
    return Finding(
        kind,
        "drift",
        spots_of(cable),
        declared,
        actual,
        "",
        (cable.cable,) if cable.cable else (),
        (cable.line,) if cable.line else (),
    )
