"""Findings on whole devices: absent, not planned, or in the place of another."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from seatrial.audit.rows import Verdict
from seatrial.fabric.cables import Situation
from seatrial.fabric.descriptions import name_host, name_switch
from seatrial.fabric.findings import Finding, Spot, pair, spots_of
from seatrial.fabric.matching import Matched
from seatrial.fabric.plan import Cable, Plan
from seatrial.fabric.records import Device, End, Fabric
from seatrial.names import node_set

_MOST_LINKS = 4


def same_names(fabric: Fabric) -> Iterator[Finding]:
    """Yield names that several devices have: an image was cloned with its name."""
    named: dict[str, list[Device]] = defaultdict(list)
    for device in fabric.devices:
        name = name_host if device.kind == "host" else name_switch
        if device.guid and device.name == device.guid and name(device.description).name:
            named[device.description].append(device)
    for text, devices in named.items():
        if len(devices) > 1:
            guids = ", ".join(sorted(device.guid for device in devices))
            yield Finding(
                "switch" if devices[0].kind == "switch" else "device",
                "drift",
                (),
                "one device of a name",
                f"{len(devices)} devices call themselves {text}: {guids}",
                "correct the node description of all but one",
            )


def replaced(matched: Matched, known: Situation) -> Iterator[Finding]:
    """Yield switches that stand in the place of planned ones."""
    for actual, planned in matched.replaced.items():
        yield Finding(
            "switch",
            "drift",
            (Spot(planned, "", known.racks.get(planned, "")),),
            planned,
            actual,
            "most of its cables end at this switch; correct its name, or the plan",
        )


def absent_devices(
    fabric: Fabric, plan: Plan, matched: Matched, known: Situation
) -> Iterator[tuple[Finding, set[str]]]:
    """Yield planned devices that do not answer, each with those in its place.

    A device behind a GUID that exists twice is left out.
    """
    present = {device.name for device in fabric.devices}
    nameless = {one.name for one in fabric.devices if one.guid and not one.description}
    cables: dict[str, list[Cable]] = defaultdict(list)
    for cable in matched.cables:
        for end in (cable.a, cable.b):
            if end.device not in present:
                cables[end.device].append(cable)
    fars = {
        name: [cable.b if cable.a.device == name else cable.a for cable in own]
        for name, own in cables.items()
    }
    behind: dict[str, list[str]] = defaultdict(list)
    for name, ends in fars.items():
        if plan.kinds.get(name) == "host" and all(e.device in cables for e in ends):
            behind[ends[0].device].append(name)
    hidden = {name for names in behind.values() for name in names}
    for name, own in cables.items():
        ends = fars[name]
        if known.spoiled.issuperset(ends) or name in hidden:
            continue
        linked = {known.links[end].device for end in ends if end in known.links}
        instead = linked.difference(plan.kinds)
        finding = _absent(plan, known, name, own, ends, instead)
        if instead and instead <= nameless:
            finding = replace(
                finding, verdict="unknown", reason="the device did not tell its name"
            )
        if name in behind:
            reasons = (finding.reason, f"behind it: {node_set(behind[name])}")
            finding = replace(finding, reason="; ".join(filter(None, reasons)))
        yield finding, instead


def _absent(
    plan: Plan,
    known: Situation,
    name: str,
    cables: list[Cable],
    ends: list[End],
    instead: set[str],
) -> Finding:
    verdict: Verdict = "absent"
    states = [known.open_ports[end] for end in ends if end in known.open_ports]
    linked = any(end in known.links for end in ends)
    if any(one.silent for one in states) or (
        known.incomplete and not states and not linked
    ):
        verdict = "unknown"
    shown = [f"{port.end} {port.state}/{port.physical}" for port in states]
    spots = dict.fromkeys(spot for cable in cables for spot in spots_of(cable))
    return Finding(
        "device" if plan.kinds.get(name) == "host" else "switch",
        verdict,
        (
            Spot(name, "", known.racks.get(name, "")),
            *(spot for spot in spots if spot.device != name),
        ),
        name,
        f"{', '.join(sorted(instead))} in its place" if instead else "no answer",
        "; ".join(shown[:_MOST_LINKS]),
        tuple(cable.cable for cable in cables if cable.cable),
        tuple(cable.line for cable in cables),
    )


def unplanned_devices(
    fabric: Fabric, plan: Plan, matched: Matched, instead: Collection[str]
) -> Iterator[Finding]:
    """Yield devices with a link that no cable of the plan names."""
    links: dict[str, list[tuple[End, End]]] = defaultdict(list)
    for end, far in matched.links.items():
        links[end.device].append((end, far))
    kinds = {device.name: device.kind for device in fabric.devices}
    for name, own in links.items():
        if name in plan.kinds or name in matched.replaced or name in instead:
            continue
        shown = "; ".join(pair(*ends) for ends in sorted(own)[:_MOST_LINKS])
        more = f"; and {len(own) - _MOST_LINKS} more" if own[_MOST_LINKS:] else ""
        yield Finding(
            "device" if kinds.get(name) == "host" else "switch",
            "drift",
            (Spot(name),),
            "not in the plan",
            shown + more,
            "add it to the plan, or correct its name",
        )
