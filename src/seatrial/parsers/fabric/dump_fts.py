"""Parse `dump_fts` (also `dump_lfts.sh`): the unicast forwarding tables of switches.

Source of the format: infiniband-diags/dump_fts.c of rdma-core.
"""

import re
from collections.abc import Mapping

from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.seen import guid_of

_SWITCH = re.compile(
    r"Unicast lids \[0x[0-9a-f]+-0x[0-9a-f]+\] of switch .*guid (0x[0-9a-f]+) \(.*\):"
)
_ROW = re.compile(r"(0x[0-9a-f]+) (\d+) :.*")
_END = re.compile(r"(\d+) (?:valid )?lids dumped\s*")
_HEADINGS = ("", "Lid  Out   Destination", "Port     Info")

Tables = Mapping[str, Mapping[int, str]]


def parse_dump_fts(text: str) -> Tables:
    """Return by GUID of the switch the port, as text, that leads to each LID.

    LIDs that the switch itself has (port 0) are left out. Raises ParseError if the
    output is damaged or cut off: each table ends with the number of its rows.
    """
    tables: dict[str, dict[int, str]] = {}
    rows: dict[int, str] | None = None
    count = 0
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if match := _SWITCH.fullmatch(line):
            if rows is not None:
                raise ParseError(number, "a table begins before the end of another")
            guid = guid_of(match[1])
            if guid in tables:
                raise ParseError(number, f"a second table of switch {guid}")
            rows = tables[guid] = {}
            count = 0
        elif rows is None:
            if line.strip():
                raise ParseError(number, f"{line!r} is no line of dump_fts")
        elif match := _ROW.fullmatch(line):
            count += 1
            if port := int(match[2]):
                rows[int(match[1], 16)] = str(port)
        elif match := _END.fullmatch(line):
            if int(match[1]) != count:
                raise ParseError(number, f"{match[1]} rows announced, got {count}")
            rows = None
        elif line.strip() not in _HEADINGS:
            raise ParseError(number, f"{line!r} is no line of dump_fts")
    if rows is not None or not tables:
        raise ParseError(len(lines), "cut off: a table without its number of LIDs")
    return tables
