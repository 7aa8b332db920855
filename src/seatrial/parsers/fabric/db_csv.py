"""Parse `ibdiagnet2.db_csv` of ibdiagnet: sections with columns by name.

Codes of widths, speeds and states: InfiniBand Architecture Specification, volume 1,
PortInfo; ibdiagnet writes the extended speeds above bit 8.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.seen import Conflict, Kind, Seen, SeenDevice, guid_of

_KINDS: dict[str, Kind] = {"1": "host", "2": "switch", "3": "router"}
_WIDTHS = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_SPEEDS = {1: "SDR", 2: "DDR", 4: "QDR", 1 << 16: "FDR10"}
_SPEEDS |= {1 << 8: "FDR", 1 << 9: "EDR", 1 << 10: "HDR", 1 << 11: "NDR"}
_SPEEDS |= {1 << 12: "XDR"}
_STATES = {1: "Down", 2: "Initialize", 3: "Armed", 4: "Active"}
_PHYSICAL = {1: "Sleep", 2: "Polling", 3: "Disabled", 4: "Training", 5: "LinkUp"}
_PHYSICAL |= {6: "ErrorRecovery", 7: "PhyTest"}
_NEEDED = ("NODES", "PORTS", "LINKS")
_NONE = ("", "N/A", "NA")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row: its line, and its cells by column."""

    line: int
    cells: Mapping[str, str]

    def text(self, *names: str) -> str:
        """Return the first of the columns; '' if the file has none of them."""
        for name in names:
            if name in self.cells:
                value = self.cells[name].strip()
                return "" if value in _NONE else value
        return ""

    def number(self, *names: str) -> int:
        """Return a whole number, decimal or hexadecimal; 0 without the column."""
        text = self.text(*names) or "0"
        try:
            return int(text, 0)
        except ValueError as error:
            reason = f"{names[0]} is {text}, expected a whole number"
            raise ParseError(self.line, reason) from error

    def guid(self, *names: str) -> str:
        """Return a GUID; ParseError if the columns are missing or hold none."""
        text = self.text(*names)
        try:
            return guid_of(text)
        except ValueError as error:
            reason = f"{names[0]} is {text or 'missing'}, expected a GUID"
            raise ParseError(self.line, reason) from error


def parse_db_csv(text: str) -> Seen:
    """Return devices, ports with their cables, and links.

    Raises ParseError if a section has no end, a row lacks columns, or NODES, PORTS or
    LINKS is missing.
    """
    sections = _sections(text)
    for name in _NEEDED:
        if name not in sections:
            last = text.count("\n")
            raise ParseError(
                last,
                f"no section START_{name}; the file is cut off or not db_csv. Run "
                "ibdiagnet again.",
            )
    seen = Seen()
    firmware = {row.guid("NodeGUID", "NodeGuid"): row for row in _info(sections)}
    first: dict[str, int] = {}
    for row in sections["NODES"]:
        guid = row.guid("NodeGUID", "NodeGuid")
        if guid in first:
            place = (guid, "1")
            seen.conflicts.append(Conflict(guid, (place, place), row.line))
            continue
        first[guid] = row.line
        seen.devices[guid] = _device(row, guid, firmware.get(guid))
    for row in sections["PORTS"]:
        _port(seen, row)
    for row in sections.get("CABLE_INFO", ()):
        place = (row.guid("NodeGuid", "NodeGUID"), str(row.number("PortNum")))
        if place in seen.ports:
            seen.ports[place].part = row.text("PN")
            seen.ports[place].serial = row.text("SN")
    for row in sections["LINKS"]:
        _link(seen, row)
    return seen


def _sections(text: str) -> dict[str, list[_Row]]:
    """Split the file; ParseError if a section has no end or a row has too few cells."""
    lines = text.split("\n")
    if lines[-1]:
        raise ParseError(
            len(lines), f"cut off in {lines[-1][:60]!r}. Run ibdiagnet again."
        )
    sections: dict[str, list[_Row]] = {}
    name, start, columns = "", 0, list[str]()
    for number, line in enumerate(lines, 1):
        if line.startswith("START_"):
            if name:
                raise ParseError(number, f"START_{name} of line {start} has no end")
            name, start, columns = line.strip()[6:], number, []
            sections.setdefault(name, [])
        elif line.startswith("END_"):
            if line.strip()[4:] != name:
                raise ParseError(number, f"{line.strip()} without its start")
            name = ""
        elif name and line.strip():
            cells = next(csv.reader([line]))
            if not columns:
                columns = [cell.strip() for cell in cells]
            elif len(cells) < len(columns):
                raise ParseError(
                    number,
                    f"{len(cells)} of {len(columns)} columns of {name}; cut off?",
                )
            else:
                row = dict(zip(columns, cells, strict=False))
                sections[name].append(_Row(number, row))
    if name:
        reason = f"START_{name} of line {start} has no end: the file is cut off. Run "
        raise ParseError(len(lines) - 1, reason + "ibdiagnet again.")
    return sections


def _info(sections: Mapping[str, list[_Row]]) -> Iterator[_Row]:
    yield from sections.get("NODES_INFO", ())


def _device(row: _Row, guid: str, info: _Row | None) -> SeenDevice:
    kind = _KINDS.get(row.text("NodeType"))
    if kind is None:
        raise ParseError(row.line, f"NodeType is {row.text('NodeType')}, expected 1-3")
    parts = [0, 0, 0]
    if info is not None:
        names = ("Major", "Minor", "SubMinor")
        parts = [info.number(f"FWInfo_Extended_{name}") for name in names]
        if not any(parts):
            parts = [info.number(f"FWInfo_{name}") for name in names]
    return SeenDevice(
        guid,
        kind,
        row.text("NodeDesc"),
        row.number("NumPorts"),
        None,
        info.text("FWInfo_PSID") if info else "",
        f"{parts[0]}.{parts[1]}.{parts[2]:04d}" if any(parts) else "",
    )


def _port(seen: Seen, row: _Row) -> None:
    guid, number = row.guid("NodeGuid", "NodeGUID"), row.number("PortNum")
    device = seen.devices.get(guid)
    if device is None:
        raise ParseError(row.line, f"a port of {guid}, which is not in NODES")
    lid = row.number("LID")
    if lid and device.lid is None:
        seen.devices[guid] = SeenDevice(
            guid,
            device.kind,
            device.description,
            device.ports,
            lid,
            device.psid,
            device.firmware,
        )
    if number == 0:  # the management port of a switch
        return
    port = seen.port((guid, str(number)))
    port.state = _STATES.get(row.number("PortState"), "")
    port.physical = _PHYSICAL.get(row.number("PortPhyState"), "")
    if port.physical == "LinkUp" or not port.physical:
        port.width = _WIDTHS.get(row.number("LinkWidthActv"))
        port.speed = _SPEEDS.get(row.number("LinkSpeedActv"), "")
    if device.kind != "switch" and row.text("PortGuid", "PortGUID"):
        place = (guid, str(number))
        seen.port_guids[row.guid("PortGuid", "PortGUID")] = place


def _link(seen: Seen, row: _Row) -> None:
    ends = [
        (
            row.guid(f"NodeGuid{side}", f"NodeGUID{side}"),
            str(row.number(f"PortNum{side}")),
        )
        for side in (1, 2)
    ]
    for guid, _ in ends:
        if guid not in seen.devices:
            raise ParseError(row.line, f"a link of {guid}, which is not in NODES")
    for place, far in (ends, ends[::-1]):
        known = seen.links.get(place)
        if known is not None and known != far:
            seen.conflicts.append(Conflict(place[0], (known, far), row.line))
            return
    seen.port(ends[0])
    seen.port(ends[1])
    seen.links[ends[0]] = ends[1]
    seen.links[ends[1]] = ends[0]
