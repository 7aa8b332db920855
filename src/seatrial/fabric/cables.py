"""Findings on cables: missing, additional, moved and swapped.

A port has at most one planned and one found cable. Of the cables that differ, those
that share ports form paths and rings, in which planned and found ones alternate. Each
of them is one finding: a ring is a swap of two cables, or a rotation of more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seatrial.audit.rows import Verdict
from seatrial.fabric.findings import Finding, Kind, Spot, pair, spots_of
from seatrial.fabric.plan import Cable
from seatrial.fabric.records import End, OpenPort

_MOST_SHOWN = 8


@dataclass(frozen=True)
class Situation:
    """The plan and the discovered fabric, by ports.

    `planned` has each cable at both of its ends, `links` the far end of each port with
    a link. `spoiled` are ports that are not compared, as their GUID exists twice.
    `incomplete`: some devices did not answer.
    """

    planned: Mapping[End, Cable]
    links: Mapping[End, End]
    open_ports: Mapping[End, OpenPort]
    hosts: frozenset[str]
    racks: Mapping[str, str]
    spoiled: frozenset[End] = frozenset()
    incomplete: bool = False


def cable_findings(known: Situation, without: frozenset[str]) -> list[Finding]:
    """Return a finding for each group of cables that differ.

    Cables of the devices in `without` have findings of their own.
    """
    groups = _groups(known, without)
    return [_finding(known, planned, found) for planned, found in groups]


def _groups(
    known: Situation, without: frozenset[str]
) -> Iterable[tuple[list[Cable], list[tuple[End, End]]]]:
    """Yield the planned and the found cables of each path or ring."""
    planned = {
        end: cable
        for end, cable in known.planned.items()
        if known.links.get(cable.a) != cable.b
        and not {cable.a, cable.b} & known.spoiled
        and not _is_without(cable, known, without)
    }
    links = {
        end: far
        for end, far in known.links.items()
        if not _is_planned(known, end, far)
        and not {end, far} & known.spoiled
        and end.device not in without
        and far.device not in without
    }
    seen: set[End] = set()
    for start in (*planned, *links):
        if start in seen:
            continue
        ends, waiting = set[End](), [start]
        while waiting:
            end = waiting.pop()
            if end not in ends:
                ends.add(end)
                cable, far = planned.get(end), links.get(end)
                waiting += [cable.a, cable.b] if cable else []
                waiting += [far] if far else []
        seen |= ends
        own = {planned[end] for end in ends if end in planned}
        found = {tuple(sorted((end, links[end]))) for end in ends if end in links}
        yield (
            sorted(own, key=lambda cable: cable.line),
            sorted((a, b) for a, b in found),
        )


def _is_planned(known: Situation, end: End, far: End) -> bool:
    cable = known.planned.get(end)
    return cable is not None and {cable.a, cable.b} == {end, far}


def _is_without(cable: Cable, known: Situation, without: frozenset[str]) -> bool:
    """Return True for a cable of such a device whose other port is free."""
    for own, far in ((cable.a, cable.b), (cable.b, cable.a)):
        if own.device in without:
            there = known.links.get(far)
            return there is None or there.device in without
    return False


def _finding(
    known: Situation, planned: list[Cable], found: list[tuple[End, End]]
) -> Finding:
    if not planned:
        ((a, b),) = found[:1]
        return Finding(
            "additional",
            "drift",
            (_spot(known, a), _spot(known, b)),
            "no cable",
            "; ".join(pair(*ends) for ends in found),
            "remove the cable, or add it to the plan",
        )
    if not found:
        return _missing(known, planned[0])
    kind: Kind = "swapped" if len(planned) > 1 else "moved"
    verdict: Verdict = "drift"
    spots = tuple(dict.fromkeys(spot for one in planned for spot in spots_of(one)))
    reasons = [_remedy(planned, found), *_leafs(known, planned, found)]
    if len(found) < len(planned):
        reasons.append(f"{len(planned) - len(found)} of them has no link")
    return Finding(
        kind,
        verdict,
        spots,
        _listed([pair(one.a, one.b) for one in planned]),
        _listed([pair(*ends) for ends in found]),
        "; ".join(filter(None, reasons)),
        tuple(one.cable for one in planned if one.cable),
        tuple(one.line for one in planned),
    )


def _missing(known: Situation, cable: Cable) -> Finding:
    """Return the finding of a cable without a link: absent, or unknown if not seen."""
    states = []
    silent = False
    for end in (cable.a, cable.b):
        port = known.open_ports.get(end)
        if port is not None:
            silent = silent or port.silent
            state = f"{port.state}/{port.physical}" if port.state else "no link"
            states.append(f"{end} {state}")
    verdict: Verdict = "absent"
    reason = ""
    if silent:
        verdict, reason = "unknown", "the link is up, but the other end did not answer"
    elif not states and known.incomplete:
        verdict, reason = "unknown", "the discovery did not reach it"
    return Finding(
        "missing",
        verdict,
        spots_of(cable),
        "a link",
        ", ".join(states) or "no link",
        reason,
        (cable.cable,) if cable.cable else (),
        (cable.line,),
    )


def _remedy(planned: list[Cable], found: list[tuple[End, End]]) -> str:
    """Return what to do with the plugs: exchange two, or move one."""
    far = {end: other for a, b in found for end, other in ((a, b), (b, a))}
    ends = {end for cable in planned for end in (cable.a, cable.b)}
    if len(planned) == 2 and ends == far.keys():
        one = planned[0]
        pairs = ((one.b, far[one.a]), (one.a, far[one.b]))
        for a, b in pairs:
            if a.device == b.device:
                return f"exchange the plugs at {a.device}, ports {a.port} and {b.port}"
        a, b = pairs[0]
        return f"exchange the plugs at {a} and {b}"
    if len(planned) == len(found) == 1:
        (cable,) = planned
        stays = cable.a if cable.a in far else cable.b
        wrong = far[stays]
        right = cable.b if stays == cable.a else cable.a
        return f"move the plug from {wrong} to {right}"
    return "put the plugs back as planned"


def _leafs(
    known: Situation, planned: list[Cable], found: list[tuple[End, End]]
) -> Iterable[str]:
    """Yield the nodes that are on another leaf than planned."""
    wanted: dict[str, set[str]] = {}
    actual: dict[str, set[str]] = {}
    for cable in planned:
        _note(known, wanted, cable.a, cable.b)
    for a, b in found:
        _note(known, actual, a, b)
    for host, leafs in wanted.items():
        there = actual.get(host, set()) - leafs
        if there:
            absent = ", ".join(sorted(leafs - actual[host]))
            yield f"{host} is on {', '.join(sorted(there))}, not {absent}"


def _note(known: Situation, leafs: dict[str, set[str]], a: End, b: End) -> None:
    for own, far in ((a, b), (b, a)):
        if own.device in known.hosts and far.device not in known.hosts:
            leafs.setdefault(own.device, set()).add(far.device)


def _spot(known: Situation, end: End) -> Spot:
    return Spot(end.device, end.port, known.racks.get(end.device, ""))


def _listed(texts: list[str]) -> str:
    more = len(texts) - _MOST_SHOWN
    shown = "; ".join(texts[:_MOST_SHOWN])
    return f"{shown}; and {more} more" if more > 0 else shown
