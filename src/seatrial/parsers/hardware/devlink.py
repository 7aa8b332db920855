"""Devices and versions of their firmware, as `devlink -j dev info` prints them.

Source of the names: Linux, Documentation/networking/devlink/devlink-info.rst.
"""

from dataclasses import dataclass

from msgspec import Struct, field

from seatrial.parsers.hardware.printed_text import read_json, whole_lines


class Versions(Struct, frozen=True):
    """Versions by name (`fw.version`): of the board, those that run, those stored."""

    fixed: dict[str, str] = {}
    running: dict[str, str] = {}
    stored: dict[str, str] = {}


class DevlinkDevice(Struct, frozen=True):
    """One device."""

    driver: str | None = None
    serial_number: str | None = None
    board_serial_number: str | None = field(name="board.serial_number", default=None)
    versions: Versions = Versions()


class _Output(Struct):
    info: dict[str, DevlinkDevice]


@dataclass(frozen=True)
class Devlink:
    """All devices by PCI address; those of other buses are left out."""

    devices: dict[str, DevlinkDevice]


def parse_devlink_info(text: str) -> Devlink:
    """Parse the JSON; ParseError if it is not whole."""
    whole_lines(text)
    info = read_json(text, _Output).info
    devices = {
        name.removeprefix("pci/"): device
        for name, device in info.items()
        if name.startswith("pci/")
    }
    return Devlink(devices)
