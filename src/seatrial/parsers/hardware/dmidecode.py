"""Memory modules of a node, as `dmidecode -t memory` prints them.

Source of the format: dmidecode.c; DMTF, SMBIOS specification, types 16 and 17.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import Fields, whole_lines

_HANDLE = re.compile(r"Handle 0x[0-9A-F]{4}, DMI type ([0-9]+), [0-9]+ bytes")
_FIELD = re.compile(r"\t([^\t:]+): (\S.*)")
_SIZE = r"([1-9][0-9]*) (MB|MiB|GB|GiB|TB|TiB)"
_GIB = {"M": 1 / 1024, "G": 1.0, "T": 1024.0}
_ARRAY, _DEVICE = 16, 17


@dataclass(frozen=True)
class Dimm:
    """A memory module: GiB, type (DDR5), and configured speed as printed, if known."""

    gib: float
    kind: str
    speed: str | None


def parse_dmidecode_memory(text: str) -> tuple[Dimm, ...]:
    """Parse the modules that are plugged in.

    Raises ParseError if there are fewer slots than the arrays of memory say.
    """
    blocks: list[tuple[int, Fields]] = []
    for number, line in enumerate(whole_lines(text), start=1):
        if match := _HANDLE.fullmatch(line):
            blocks.append((int(match[1]), Fields("dmidecode", number)))
        elif blocks and (match := _FIELD.fullmatch(line)):
            blocks[-1][1].add(number, match[1], match[2])
    slots = [block for kind, block in blocks if kind == _DEVICE]
    arrays = [block for kind, block in blocks if kind == _ARRAY]
    said = sum(array.need_count("Number Of Devices") for array in arrays)
    if not arrays or said != len(slots):
        raise ParseError(0, f"dmidecode: {len(slots)} memory devices, expected {said}")
    return tuple(
        _dimm(slot) for slot in slots if slot.need("Size") != "No Module Installed"
    )


def _dimm(slot: Fields) -> Dimm:
    size = re.fullmatch(_SIZE, slot.need("Size", _SIZE))
    assert size is not None
    speed = slot.get("Configured Memory Speed") or slot.get("Configured Clock Speed")
    known = None if speed in (None, "Unknown") else speed
    return Dimm(int(size[1]) * _GIB[size[2][0]], slot.need("Type"), known)
