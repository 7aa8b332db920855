"""Driver and interrupt coalescing of an interface: `ethtool -i` and `ethtool -c`.

Source of the format: ethtool, ethtool.c and netlink/coalesce.c.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import Fields, whole_lines

_FIELD = re.compile(r"([a-z][a-z-]+):(?: (.*))?")
_HEAD = re.compile(r"Coalesce parameters for (\S+):")
_SWITCHES = re.compile(
    r"(Adaptive|CQE mode) RX: (on|off|n/a)  TX: (on|off|n/a)", re.IGNORECASE
)
_COUNT = re.compile(r"([a-z][a-z-]+):\s+(\d{1,9}|n/a)")


@dataclass(frozen=True)
class EthtoolDriver:
    """Driver, its version and that of the firmware, PCI address."""

    driver: str
    version: str | None
    firmware: str | None
    address: str | None


@dataclass(frozen=True)
class EthtoolCoalescing:
    """Settings by name: `adaptive-rx` is `on` or `off`, `rx-usecs` a number."""

    interface: str
    settings: dict[str, str]


def parse_ethtool_driver(text: str) -> EthtoolDriver:
    """Parse `ethtool -i INTERFACE`; ParseError if it is not whole."""
    fields = Fields("ethtool -i")
    for number, line in enumerate(whole_lines(text), start=1):
        match = _FIELD.fullmatch(line)
        if not match:
            raise ParseError(number, f"{line[:80]!r}, expected a field of ethtool -i")
        fields.add(number, match[1], (match[2] or "").strip())
    return EthtoolDriver(
        driver=fields.need("driver"),
        version=fields.get("version"),
        firmware=fields.get("firmware-version"),
        address=fields.get("bus-info"),
    )


def parse_ethtool_coalescing(text: str) -> EthtoolCoalescing:
    """Parse `ethtool -c INTERFACE`; settings that the driver lacks (n/a) are left out.

    Raises ParseError if it is not whole.
    """
    fields = Fields("ethtool -c")
    names: list[str] = []
    for number, line in enumerate(whole_lines(text), start=1):
        if not line:
            continue
        if match := _HEAD.fullmatch(line):
            pairs = [("interface", match[1])]
        elif match := _SWITCHES.fullmatch(line):
            what = match[1].lower().replace(" ", "-")
            pairs = [(f"{what}-rx", match[2]), (f"{what}-tx", match[3])]
        elif match := _COUNT.fullmatch(line):
            pairs = [(match[1], match[2])]
        else:
            raise ParseError(number, f"{line[:80]!r}, expected a line of ethtool -c")
        for name, value in pairs:
            fields.add(number, name, value)
        names += [name for name, value in pairs if value != "n/a"]
    interface = fields.need("interface")
    names.remove("interface")
    return EthtoolCoalescing(interface, {name: fields.need(name) for name in names})
