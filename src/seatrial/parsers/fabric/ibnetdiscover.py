"""Parse `ibnetdiscover` in its default form: a block for each device.

The form of `-p` lacks the devices without a link, and the GUIDs of HCAs. Source of the
format: infiniband-diags/ibnetdiscover.c of rdma-core.
"""

import re
from dataclasses import dataclass, field

from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.seen import (
    SPEEDS,
    Conflict,
    Kind,
    Place,
    Seen,
    SeenDevice,
    guid_of,
)

_START = "# Topology file: generated on "
_DEVICE = re.compile(r'(Switch|Ca|Rt)\t(\d+) "[SHR]-([0-9a-f]+)"\t+# "(.*)"(.*)')
_LID = re.compile(r" lid (\d+)")
_PORT = re.compile(
    r'\[(\d+)\](?:\[ext \d+\])?(?:\(([0-9a-f]+)\))? ?\t"[SHR]-([0-9a-f]+)"\[(\d+)\]'
    r"(?:\[ext \d+\])?(?:\([0-9a-f]+\))? ?\t+# (.*)"
)
_RATE = re.compile(r" (?:(\d+)x([A-Z]+\d*|\?+)|\?\S+)$")
_KINDS: dict[str, Kind] = {"Switch": "switch", "Ca": "host", "Rt": "router"}
_ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid|(switch|ca|rt)guid)=0x[0-9a-f]+.*")
_GROUPING = re.compile(r"(Chassis|Non-Chassis|Spine Nodes|Line Nodes| )")
_PORTS_FORM = re.compile(r"(CA|SW|RT) +\d+ +\d+ 0x")


@dataclass
class _Block:
    """A device and its ports: number -> line and far end."""

    guid: str
    line: int
    ends: dict[str, tuple[int, Place]] = field(default_factory=dict)


def parse_ibnetdiscover(text: str) -> Seen:
    """Return devices, ports and links.

    Raises ParseError if the output is cut off or damaged: a device that a link leads to
    has no block, or a link is in the block of one of its ends only. Two links that lead
    to one port are a `Conflict`: devices with the same GUID.
    """
    lines = text.split("\n")
    if not text.startswith("#") or not any(_START in line for line in lines[:5]):
        if _PORTS_FORM.match(text):
            raise ParseError(1, "output of `ibnetdiscover -p`; run it without -p")
        raise ParseError(1, f"expected {_START!r}, the start of ibnetdiscover's output")
    if lines[-1]:
        raise ParseError(
            len(lines), f"cut off in {lines[-1]!r}. Run ibnetdiscover again."
        )
    seen, blocks = Seen(), dict[str, _Block]()
    block: _Block | None = None
    for number, line in enumerate(lines, 1):
        if match := _PORT.fullmatch(line):
            if block is None:
                raise ParseError(number, "a port before the line of its device")
            _port(seen, block, number, match)
        elif match := _DEVICE.fullmatch(line):
            block = _device(seen, blocks, number, match)
        elif not line:
            block = None
        elif not (
            line.startswith("#") or _ATTRIBUTE.fullmatch(line) or _GROUPING.match(line)
        ):
            raise ParseError(number, f"{line!r} is no line of ibnetdiscover")
    if not blocks:
        raise ParseError(len(lines) - 1, "no device; expected at least one")
    _check_both_sides(seen, blocks, len(lines) - 1)
    return seen


def _device(
    seen: Seen, blocks: dict[str, _Block], number: int, match: re.Match[str]
) -> _Block:
    guid = guid_of(match[3])
    if guid in blocks:
        first = blocks[guid].line
        raise ParseError(number, f"device {guid} of line {first} again")
    lid = _LID.search(match[5])
    seen.devices[guid] = SeenDevice(
        guid, _KINDS[match[1]], match[4], int(match[2]), int(lid[1]) if lid else None
    )
    blocks[guid] = _Block(guid, number)
    return blocks[guid]


def _port(seen: Seen, block: _Block, number: int, match: re.Match[str]) -> None:
    own, port_guid, far, far_port, comment = match.groups()
    rate = _RATE.search(comment)
    if rate is None:
        raise ParseError(number, f"expected a rate such as 4xHDR after {comment!r}")
    place = (block.guid, own)
    if own in block.ends:
        first = block.ends[own][0]
        raise ParseError(number, f"port {own} of line {first} again")
    if not 0 < int(own) <= seen.devices[block.guid].ports:
        count = seen.devices[block.guid].ports
        raise ParseError(number, f"port {own} of a device with {count} ports")
    block.ends[own] = (number, (guid_of(far), far_port))
    port = seen.port(place)
    port.width = int(rate[1]) if rate[1] else None  # ????? if it did not answer
    port.speed = rate[2] if rate[2] in SPEEDS else ""
    if port_guid:
        seen.port_guids[guid_of(port_guid)] = place
        lid = _LID.search(f" {comment}")
        device = seen.devices[block.guid]
        if lid and device.lid is None:
            seen.devices[block.guid] = SeenDevice(
                device.guid, device.kind, device.description, device.ports, int(lid[1])
            )


def _check_both_sides(seen: Seen, blocks: dict[str, _Block], last: int) -> None:
    """Fill in the links; ParseError for one that only one of its ends shows."""
    for block in blocks.values():
        if not block.ends:
            raise ParseError(
                block.line,
                f"device {block.guid} without a link; the output is cut off, or no "
                "cable is connected. Run ibnetdiscover again.",
            )
        for own, (number, far) in block.ends.items():
            place = (block.guid, own)
            other = blocks.get(far[0])
            if other is None:
                raise ParseError(
                    last,
                    f"cut off: line {number} leads to device {far[0]}, but the output "
                    "ends without it. Run ibnetdiscover again.",
                )
            back = other.ends.get(far[1])
            if back is None:
                raise ParseError(
                    number,
                    f"this link is not in the block of its other end (line "
                    f"{other.line}, port {far[1]}); the output is cut off or damaged. "
                    "Run ibnetdiscover again.",
                )
            if back[1] == place:
                seen.links[place] = far
            else:
                ends = (back[1], place)
                seen.conflicts.append(Conflict(far[0], ends, number))
