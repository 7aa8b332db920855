"""RDMA devices and their ports, as `ibv_devinfo` prints them.

Source of the format: rdma-core, libibverbs/examples/devinfo.c.
"""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import Fields, whole_lines

_LINE = re.compile(r"(\t*)([a-z_]+):\s*(\S.*)")
_NOTE = re.compile(r"(?:libibverbs: |libnl: )")
_STATE = r"PORT_[A-Z]+ \(\d\)|invalid state.*"
_MTU = r"\d+ \(\d+\)|invalid MTU.*"


@dataclass(frozen=True)
class IbvPort:
    """One port; MTUs in bytes, None for one that verbs has no name for."""

    state: str | None
    max_mtu: int | None
    active_mtu: int | None
    link_layer: str | None


@dataclass(frozen=True)
class IbvDevice:
    """One device; ports by number."""

    transport: str | None
    firmware: str | None
    board_id: str | None
    ports: dict[int, IbvPort]


@dataclass(frozen=True)
class IbvDevinfo:
    """All devices by name (`mlx5_0`)."""

    devices: dict[str, IbvDevice]


def parse_ibv_devinfo(text: str) -> IbvDevinfo:
    """Parse the output without `-v`; ParseError if it is not whole."""
    devices: dict[str, tuple[Fields, dict[int, Fields]]] = {}
    device: tuple[Fields, dict[int, Fields]] | None = None
    port: Fields | None = None
    for number, line in enumerate(whole_lines(text), start=1):
        if not line or _NOTE.match(line):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            raise ParseError(number, f"{line[:80]!r}, expected a line of ibv_devinfo")
        depth, name, value = len(match[1]), match[2], match[3]
        if (depth, name) == (0, "hca_id") and value not in devices:
            device = devices[value] = Fields(f"ibv_devinfo: {value}", number), {}
            port = None
        elif depth == 1 and device is not None and port is None:
            device[0].add(number, name, value)
        elif (
            (depth, name) == (2, "port")
            and device
            and re.fullmatch("[1-9][0-9]?", value)
        ):
            if int(value) in device[1]:
                raise ParseError(number, f"ibv_devinfo: a second port {value}")
            port = device[1][int(value)] = Fields(f"port {value}", number)
        elif depth == 3 and port is not None:
            port.add(number, name, value)
        else:
            raise ParseError(number, f"ibv_devinfo: {name} in the wrong place")
    if not devices:
        raise ParseError(0, "ibv_devinfo: no devices")
    return IbvDevinfo({name: _device(*found) for name, found in devices.items()})


def _device(fields: Fields, ports: dict[int, Fields]) -> IbvDevice:
    count = fields.need_count("phys_port_cnt")
    if count != len(ports):
        raise ParseError(0, f"ibv_devinfo: {len(ports)} of {count} ports")
    return IbvDevice(
        transport=fields.get("transport"),
        firmware=fields.get("fw_ver"),
        board_id=fields.get("board_id"),
        ports={number: _port(port) for number, port in ports.items()},
    )


def _port(fields: Fields) -> IbvPort:
    state = fields.get("state", _STATE)
    return IbvPort(
        state=state and state.removeprefix("PORT_").split()[0],
        max_mtu=_mtu(fields.get("max_mtu", _MTU)),
        active_mtu=_mtu(fields.get("active_mtu", _MTU)),
        link_layer=fields.get("link_layer"),
    )


def _mtu(text: str | None) -> int | None:
    word = (text or "").split(" ")[0]
    return int(word) if word.isdecimal() else None
