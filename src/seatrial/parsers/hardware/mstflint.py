"""Firmware of a device or of an image, as `mstflint query` prints it.

Source of the format: Mellanox/mstflint, flint/subcommands.cpp.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import Fields, whole_lines

_FIELD = re.compile(r"([A-Z][^:]*?):(?:\s+(.*))?")
_NOTE = re.compile(r"-[WI]- ")
_VERSION = r"[0-9]{1,3}\.[0-9]{1,5}\.[0-9]{3,5}"
_PSID = r"[A-Z][A-Z0-9_]{12,15}"
_DATE = r"[0-9a-f]{1,2}\.[0-9a-f]{1,2}\.[0-9a-f]{4}"
_NONE = ("N/A", "")


@dataclass(frozen=True)
class MstflintQuery:
    """What `mstflint query` prints of a device (`-d`) or of an image (`-i`).

    `running_version` is None if it is not printed: the stored version runs, or this is
    an image. `base_guid` is `0x` and 16 hex digits, `base_mac` 12 hex digits in pairs.
    `guids` and `macs` are all that FS2 prints: node, ports, system image, and ports.
    `security` is empty for N/A, None if not printed (FS2). `part_number` is printed by
    a full query.
    """

    image_type: str
    stored_version: str
    running_version: str | None
    release_date: str | None
    product_version: str | None
    psid: str
    original_psid: str | None
    base_guid: str | None
    base_mac: str | None
    guids: tuple[str, ...]
    macs: tuple[str, ...]
    security: tuple[str, ...] | None
    part_number: str | None


def parse_mstflint_query(text: str) -> MstflintQuery:
    """Parse `mstflint [-qq] query`, quick or full, of a device or an image.

    Raises ParseError with the text of an `-E-` line, or if the output is not whole.
    """
    fields = _fields(whole_lines(text))
    image_type = fields.need("Image type", r"FS[0-9A-Z_]+")
    security = fields.get("Security Attributes")
    if security is None and image_type not in ("FS2", "FS3"):
        raise ParseError(0, "mstflint: no Security Attributes, the output is cut off")
    guids = _uids(fields, "GUIDs", 16) or _uids(fields, "Base GUID", 16)
    macs = _uids(fields, "MACs", 12) or _uids(fields, "Base MAC", 12)
    if image_type == "FS2" and not guids:
        raise ParseError(0, "mstflint: no GUIDs")
    is_fs2 = "GUIDs" in fields
    return MstflintQuery(
        image_type=image_type,
        stored_version=fields.need("FW Version", _VERSION),
        running_version=fields.get("FW Version(Running)", _VERSION),
        release_date=fields.get("FW Release Date", _DATE),
        product_version=fields.get("Product Version"),
        psid=fields.need("PSID", _PSID),
        original_psid=fields.get("Orig PSID", rf"{_PSID}|N/A"),
        base_guid=guids[0] if guids else None,
        base_mac=macs[0] if macs else None,
        guids=guids if is_fs2 else (),
        macs=macs if is_fs2 else (),
        security=None if security is None else _attributes(security),
        part_number=fields.get("Part Number"),
    )


def _fields(lines: list[str]) -> Fields:
    """Read the lines `Name: value`; continued and repeated descriptions are skipped."""
    fields = Fields("mstflint")
    for number, line in enumerate(lines, start=1):
        if line.startswith("-E-"):
            raise ParseError(number, line.removeprefix("-E-").strip() or line)
        if not line or line[0].isspace() or _NOTE.match(line):
            continue
        match = _FIELD.fullmatch(line)
        if not match:
            raise ParseError(number, f"{line[:80]!r}, expected a field of mstflint")
        if match[1] != "Description":
            fields.add(number, match[1], match[2] or "")
    return fields


def _uids(fields: Fields, name: str, digits: int) -> tuple[str, ...]:
    """Read GUIDs or MACs: all of FS2, else the base, which its count follows."""
    is_base = name.startswith("Base")
    one = rf"[0-9a-f]{{{digits}}}"
    many = (
        rf"(?:{one}|N/A)(?:\s+(?:[0-9]+|N/A)){{1,2}}"
        if is_base
        else rf"{one}(?: +{one})*"
    )
    value = fields.get(name, many)
    if value is None or value.startswith("N/A"):
        return ()
    words = value.split()[:1] if is_base else value.split()
    if digits == 16:
        return tuple(f"0x{word}" for word in words)
    return tuple(":".join(re.findall("..", word)) for word in words)


def _attributes(text: str) -> tuple[str, ...]:
    return () if text in _NONE else tuple(re.split(r",\s*", text))
