"""Name and version of an installed RDMA stack, as `ofed_info -s` prints them.

Source of the format: MLNX_OFED (`MLNX_OFED_LINUX-23.10-1.1.9.0:`) and DOCA-OFED
(`OFED-internal-24.10-1.1.4.0.200:`).
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import whole_lines

_STACK = re.compile(r"([A-Za-z][A-Za-z_-]*)-(\d+\.\d[\w.-]*):?")


@dataclass(frozen=True)
class OfedInfo:
    """`name` is `MLNX_OFED_LINUX`, `OFED-internal` or another one."""

    name: str
    version: str


def parse_ofed_info(text: str) -> OfedInfo:
    """Parse the one line; ParseError if it is another text."""
    lines = [line for line in whole_lines(text) if line]
    match = _STACK.fullmatch(lines[0])
    if not match or len(lines) > 1:
        raise ParseError(1, f"{text.strip()[:80]!r}, expected the line of ofed_info -s")
    return OfedInfo(match[1], match[2])
