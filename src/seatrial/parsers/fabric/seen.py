"""Devices, ports and links as one tool prints them: by GUID, without our names."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["host", "switch", "router"]

SPEEDS = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.3125,
    "FDR": 14.0625,
    "EDR": 25.78125,
    "HDR": 53.125,
    "NDR": 106.25,
    "XDR": 212.5,
}
"""Signalling rate of one lane in Gbit/s, as infiniband-diags prints it."""

WIDTHS = (1, 2, 4, 8, 12)
"""Lanes of a link."""

Place = tuple[str, str]
"""A port: GUID of its device (or the name, on Ethernet), and number or interface."""


@dataclass(frozen=True, slots=True)
class SeenDevice:
    """A device; `ports` is the number of its ports, 0 if unknown."""

    guid: str
    kind: Kind
    description: str
    ports: int = 0
    lid: int | None = None
    psid: str = ""
    firmware: str = ""


@dataclass(slots=True)
class SeenPort:
    """A port: state and physical state as ibstat spells them, '' if unknown.

    `speed` is a name of `SPEEDS`, or on Ethernet Gbit/s such as 100G; '' if unknown.
    `part` and `serial` are those of the cable. `silent`: the link is up, but the device
    at its other end did not answer.
    """

    width: int | None = None
    speed: str = ""
    state: str = ""
    physical: str = ""
    part: str = ""
    serial: str = ""
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two cables that lead to one port: its GUID exists twice."""

    guid: str
    ends: tuple[Place, Place]
    line: int


@dataclass
class Seen:
    """Devices by GUID, ports, links (in both directions), and the port of each GUID.

    `ambiguous` is the first line whose other end could be several ports; 0: none.
    """

    devices: dict[str, SeenDevice] = field(default_factory=dict)
    ports: dict[Place, SeenPort] = field(default_factory=dict)
    links: dict[Place, Place] = field(default_factory=dict)
    port_guids: dict[str, Place] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    ambiguous: int = 0

    def port(self, place: Place) -> SeenPort:
        """Return the record of a port; make one if there is none."""
        return self.ports.setdefault(place, SeenPort())


def guid_of(digits: str) -> str:
    """Return a GUID as `0x` and 16 hexadecimal digits; from 1234 or 0x1234."""
    return f"0x{int(digits, 16):016x}"


def speed_of(gbit_s: float) -> str:
    """Return the name of a rate of one lane; '' if there is none within 2 %.

    iblinkinfo prints 25.78125, older versions 25.78 or 26.
    """
    name, rate = min(SPEEDS.items(), key=lambda item: abs(item[1] - gbit_s))
    return name if abs(rate - gbit_s) <= 0.02 * rate else ""
