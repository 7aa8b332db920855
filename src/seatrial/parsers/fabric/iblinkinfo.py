"""Parse `iblinkinfo`: the state of every port, in the default form or with `--line`.

Source of the format: infiniband-diags/iblinkinfo.c of rdma-core.
"""

import re
from collections import defaultdict

from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.seen import (
    Kind,
    Place,
    Seen,
    SeenDevice,
    SeenPort,
    guid_of,
    speed_of,
)

_SWITCH = re.compile(r"Switch: (0x[0-9a-f]+) (.*):")
_HOST = re.compile(r"(CA|RT): (.*):")
_LINE = re.compile(
    r"\s*(?:(0x[0-9a-f]+)\s+)?"  # GUID of a switch with --line, or of an HCA's port
    r'(?:"\s*(.*?)"\s+)?'
    r"(\d+)\s+(\d+)\[[^\]]*\] ==\(\s*(.*?)\)==>\s+(.*)"
)
_STATE = re.compile(
    r"(?:(\d+)X\s+([\d.]+) Gbps (?:\(\w+\) )?)?(\w+)\s*/\s*(\w+)(?:\s*\(.*)?"
)
_FAR = re.compile(r'(?:(0x[0-9a-f]+)\s+)?(\d+)\s+(\d+)\[[^\]]*\] "(.*)" \(.*\)')
_NO_FAR = re.compile(r'\[[^\]]*\] "" \(.*\)')
_MOST_HOST_PORTS = 4
_UNKNOWN = "Extended speed NoChange"  # what is printed of a port without an answer
_SILENT = '"Port not available"'
_STATES = ("Down", "Initialize", "Armed", "Active")


def parse_iblinkinfo(text: str) -> Seen:
    """Return devices, ports and links; the device of an HCA has the GUID of its port.

    Raises ParseError if the output is cut off or damaged.
    """
    lines = text.split("\n")
    if lines[-1]:
        raise ParseError(len(lines), f"cut off in {lines[-1]!r}. Run iblinkinfo again.")
    seen = Seen()
    fars: dict[Place, tuple[int, str, int, str]] = {}
    header: tuple[Kind, str, str] = ("host", "", "")
    for number, line in enumerate(lines, 1):
        if match := _LINE.fullmatch(line):
            _port(seen, fars, number, match, header)
        elif match := _SWITCH.fullmatch(line):
            header = ("switch", guid_of(match[1]), match[2])
        elif match := _HOST.fullmatch(line):
            header = ("host" if match[1] == "CA" else "router", "", match[2])
        elif line and not line.startswith("#"):
            raise ParseError(number, f"{line!r} is no line of iblinkinfo")
    if not seen.devices:
        raise ParseError(0, "no port; expected the output of iblinkinfo")
    _link(seen, fars, len(lines) - 1)
    return seen


def _port(
    seen: Seen,
    fars: dict[Place, tuple[int, str, int, str]],
    number: int,
    match: re.Match[str],
    header: tuple[Kind, str, str],
) -> None:
    guid, name, lid, port, state, far = match.groups()
    kind, owner, description = header
    if name is not None:  # --line does not say what a device is
        kind = "switch" if int(port) > _MOST_HOST_PORTS else "host"
        owner, description = guid, name
    owner = guid_of(guid) if guid else owner
    if not owner:
        raise ParseError(number, "a port before the line of its switch")
    known = seen.devices.get(owner)
    if known is None or known.ports < int(port):
        count = int(port)
        seen.devices[owner] = SeenDevice(owner, kind, description, count, int(lid))
    place = (owner, port)
    if place in seen.ports:
        raise ParseError(number, f"port {port} of {owner} again")
    record = seen.port(place)
    _read_state(record, number, state)
    if ends := _FAR.fullmatch(far):
        far_guid = guid_of(ends[1]) if ends[1] else ""
        fars[place] = (number, far_guid, int(ends[2]), ends[3])
    elif _SILENT in far or (
        _NO_FAR.fullmatch(far) and record.physical in ("", "LinkUp")
    ):
        record.silent = True
    elif not _NO_FAR.fullmatch(far):
        raise ParseError(number, f"expected the other end of the link, got {far!r}")


def _read_state(record: SeenPort, number: int, state: str) -> None:
    """Fill in rate and states; leave them empty for a port that did not answer."""
    states = _STATE.fullmatch(state)
    if states is None and _UNKNOWN in state:
        return
    if states is None or states[3] not in _STATES:
        raise ParseError(number, f"expected a state such as Active/LinkUp, got {state}")
    width, rate, record.state, record.physical = states.groups()
    if width:
        record.width = int(width)
        record.speed = "FDR10" if "(FDR10)" in state else speed_of(float(rate))


def _link(seen: Seen, fars: dict[Place, tuple[int, str, int, str]], last: int) -> None:
    """Fill in the links; ParseError for one that only one of its ends shows.

    The default form names the other end by its LID: without a subnet manager all are 0.
    """
    by_lid: dict[tuple[int | None, str], list[Place]] = defaultdict(list)
    for place in seen.ports:
        by_lid[seen.devices[place[0]].lid, place[1]].append(place)
    for place, (number, guid, lid, port) in fars.items():
        places = [(guid, port)] if guid else by_lid.get((lid, port), [])
        if len(places) > 1 or (lid == 0 and not guid):
            seen.ambiguous = seen.ambiguous or number
            continue
        far = places[0] if places else None
        if far is None or far not in seen.ports:
            raise ParseError(
                last,
                f"cut off: line {number} leads to port {port} of "
                f"{guid or f'LID {lid}'}, but the output ends without it. "
                "Run iblinkinfo again.",
            )
        seen.links[place] = far
