"""PCI functions, as root's `lspci -D -n -vv -s ADDRESS` prints them, one after another.

Source of the format: pciutils, lspci.c, ls-caps.c, ls-ecaps.c and ls-vpd.c.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import Fields, whole_lines

_HEAD = re.compile(r"([0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) \S.*")
_NOTE = re.compile(r"(?:lspci|pcilib): ")
_DENIED = "Capabilities: <access denied>"
_LINES = (
    (re.compile(r"DevCap:\s*MaxPayload (\d+) bytes\b.*"), ("able_payload",)),
    (
        re.compile(r"MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes"),
        ("max_payload", "max_read_request"),
    ),
    (
        re.compile(r"LnkCap:\s*Port #\d+, Speed ([\d.]+)GT/s, Width x(\d+)\b.*"),
        ("able_speed", "able_width"),
    ),
    (
        re.compile(r"LnkSta:\s*Speed ([\d.]+)GT/s\b.*?, Width x(\d+)\b.*"),
        ("speed", "width"),
    ),
    (re.compile(r"ACSCtl:\s*SrcValid([-+])( .*)?"), ("acs",)),
    (re.compile(r"\[PN\] Part number: (\S.*)"), ("part",)),
    (re.compile(r"\[SN\] Serial number: (\S.*)"), ("serial",)),
)


@dataclass(frozen=True)
class PciFunction:
    """One function; None for what it lacks.

    Payloads and read requests are in bytes, speeds in GT/s, widths in lanes. `acs` is
    True if access control checks the source of requests. `part` and `serial` come from
    the vital product data.
    """

    max_payload: int | None
    able_payload: int | None
    max_read_request: int | None
    speed: str | None
    width: str | None
    able_speed: str | None
    able_width: str | None
    acs: bool | None
    part: str | None
    serial: str | None


@dataclass(frozen=True)
class Lspci:
    """All functions by PCI address, with domain."""

    functions: dict[str, PciFunction]


def parse_lspci(text: str) -> Lspci:
    """Parse the output for one or more functions.

    Raises ParseError if capabilities were denied ("needs root"), or if the output is
    not whole.
    """
    found: dict[str, Fields] = {}
    fields: Fields | None = None
    for number, line in enumerate(whole_lines(text), start=1):
        if not line:
            fields = None
        elif match := _HEAD.fullmatch(line):
            if fields is not None or match[1] in found:
                raise ParseError(number, f"lspci: {match[1]} in the middle of another")
            fields = found[match[1]] = Fields(f"lspci: {match[1]}", number)
        elif line.startswith("\t") and fields is not None:
            _add(fields, number, line.strip())
        elif not _NOTE.match(line):
            raise ParseError(number, f"{line[:80]!r}, expected a line of lspci")
    if not found:
        raise ParseError(0, "lspci: no functions")
    return Lspci({address: _function(one) for address, one in found.items()})


def _add(fields: Fields, number: int, line: str) -> None:
    if line == _DENIED:
        raise ParseError(0, "needs root")
    for pattern, names in _LINES:
        if match := pattern.fullmatch(line):
            for name, value in zip(names, match.groups(), strict=False):
                fields.add(number, name, value)


def _function(fields: Fields) -> PciFunction:
    acs = fields.get("acs")
    return PciFunction(
        max_payload=fields.count("max_payload"),
        able_payload=fields.count("able_payload"),
        max_read_request=fields.count("max_read_request"),
        speed=fields.get("speed"),
        width=fields.get("width"),
        able_speed=fields.get("able_speed"),
        able_width=fields.get("able_width"),
        acs=None if acs is None else acs == "+",
        part=fields.get("part"),
        serial=fields.get("serial"),
    )
