"""Firmware of HCAs, as `mlxfwmanager --query --query-format XML` prints it.

Source of the format: Mellanox/mstflint, mlxfwupdate/mlxfwmanager.cpp.
"""

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import whole_lines

_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,5}\.[0-9]{3,5}")
_NONE = ("", "--", "N/A")


@dataclass(frozen=True)
class ManagedHca:
    """An HCA: the version in its flash; PSID and part are None if it has none."""

    stored_version: str
    psid: str | None
    part_number: str | None


def parse_mlxfwmanager(text: str) -> tuple[ManagedHca, ...]:
    """Parse the XML, after lines such as `Querying Mellanox devices firmware ...`.

    Raises ParseError if it is not whole, has no device, or one that did not answer.
    """
    whole_lines(text)
    start = text.find("<Devices>")
    if start < 0:
        raise ParseError(0, f"mlxfwmanager: {text.strip().splitlines()[-1].strip()}")
    if "<!" in text:
        raise ParseError(0, "mlxfwmanager: a declaration in its XML")
    try:
        root = ElementTree.fromstring(text[start:])
    except ElementTree.ParseError as error:
        raise ParseError(0, f"mlxfwmanager: {error}") from None
    found = tuple(_device(device) for device in root.iter("Device"))
    if not found:
        raise ParseError(0, "mlxfwmanager: no devices")
    return found


def _device(device: ElementTree.Element) -> ManagedHca:
    firmware = device.find("Versions/FW")
    version = "" if firmware is None else firmware.get("current", "")
    if not _VERSION.fullmatch(version):
        said = (device.findtext("Status") or f"version {version!r}").strip()
        raise ParseError(0, f"mlxfwmanager: {device.get('pciName')}: {said}")
    psid, part = device.get("psid", ""), device.get("partNumber", "")
    return ManagedHca(
        stored_version=version,
        psid=None if psid in _NONE else psid,
        part_number=None if part in _NONE else part,
    )
