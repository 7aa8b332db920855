"""Settings in the flash of an HCA, as `mstconfig -d DEVICE -e query` prints them.

Source of the format: Mellanox/mstflint, mlxconfig/mlxcfg_ui.cpp.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import Fields, whole_lines

_FIELD = re.compile(r"(Device type|Name|Description|Device):\s*(.*)")
_TABLE = re.compile(r"Configurations:\s+(.*)")
_ROW = re.compile(r"(\*?) {0,8}(RO)? +([A-Za-z][A-Za-z0-9_]*(?:\[[0-9]+\])?)\s+(\S.*)")
_COLUMNS = ["Default", "Current", "Next Boot"]


@dataclass(frozen=True)
class NvValue:
    """One value: `True(1)` is `True` and 1; `8` is `8` and 8; arrays have no number."""

    text: str
    number: int | None


@dataclass(frozen=True)
class NvParameter:
    """One parameter; None for a value that the firmware cannot show."""

    default: NvValue | None
    current: NvValue | None
    next: NvValue | None
    read_only: bool


@dataclass(frozen=True)
class MstconfigQuery:
    """All parameters of one device by name; `part` is what the tool calls Name."""

    device: str
    device_type: str | None
    part: str | None
    description: str | None
    parameters: dict[str, NvParameter]


def parse_mstconfig_query(text: str) -> MstconfigQuery:
    """Parse the output for one device.

    Raises ParseError with the text of an `-E-` line, if the table lacks the column of
    the current values (`-e` was not given), or if the output is not whole.
    """
    fields = Fields("mstconfig")
    columns: list[str] = []
    parameters: dict[str, NvParameter] = {}
    starred = explained = False
    for number, line in enumerate(whole_lines(text), start=1):
        if line.startswith("-E-"):
            raise ParseError(number, line.removeprefix("-E-").strip() or line)
        if match := re.fullmatch(r"Device #([0-9]+):", line):
            fields.add(number, "Device #", match[1])
        elif not columns and (match := _FIELD.fullmatch(line)):
            fields.add(number, match[1], match[2])
        elif not columns and (match := _TABLE.fullmatch(line)):
            columns = _columns(number, match[1])
        elif line.startswith("The '"):
            explained |= line.startswith("The '*'")
        elif columns and (match := _ROW.fullmatch(line)):
            name = match[3]
            if name in parameters:
                raise ParseError(number, f"mstconfig: a second {name}")
            parameters[name] = _parameter(number, match)
            starred |= match[1] == "*"
        elif line.strip("-") and not line.startswith("-W-"):
            raise ParseError(number, f"{line[:80]!r}, expected a row of mstconfig")
    if not parameters:
        raise ParseError(0, "mstconfig: no parameters")
    if starred and not explained:
        raise ParseError(0, "mstconfig: no line that explains '*': it is cut off")
    return MstconfigQuery(
        device=fields.need("Device"),
        device_type=fields.get("Device type"),
        part=fields.get("Name"),
        description=fields.get("Description"),
        parameters=parameters,
    )


def _columns(line: int, text: str) -> list[str]:
    """Return the names of the columns; ParseError without the current values."""
    columns = re.split(r"\s{2,}", text.strip())
    if columns != _COLUMNS:
        raise ParseError(
            line, f"mstconfig: columns {columns}, expected {_COLUMNS}: -e was not given"
        )
    return columns


def _parameter(line: int, row: re.Match[str]) -> NvParameter:
    values = row[4].split()
    if len(values) != len(_COLUMNS):
        raise ParseError(line, f"mstconfig: {row[3]} has {len(values)} values, not 3")
    default, current, after = map(_value, values)
    return NvParameter(default, current, after, read_only=row[2] is not None)


def _value(text: str) -> NvValue | None:
    """Read `True(1)`, `8`, or another text; None for N/A."""
    if text == "N/A":
        return None
    match = re.fullmatch(r"(\S+)\((\d+)\)", text)
    if match:
        return NvValue(match[1], int(match[2]))
    return NvValue(text, int(text) if text.isdecimal() else None)
