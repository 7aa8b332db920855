"""Programs that any user may ask about HCAs and their links.

lspci tells PCIe settings and the part (only as root), devlink firmware that is stored,
ibv_devinfo the MTU of ports. What sysfs tells, too, is read from there.
"""

from collections.abc import Iterator

from seatrial.audit.driver_tools import DRIVER_TOOLS
from seatrial.audit.hca_readings import (
    device_addresses,
    gaps,
    hca_addresses,
    hca_readings,
    link_reading,
)
from seatrial.audit.pcie import ADDRESS, links_of
from seatrial.audit.raw import Block, Raw
from seatrial.audit.reading import Reading
from seatrial.audit.tool import Tool
from seatrial.parsers.hardware.devlink import DevlinkDevice, parse_devlink_info
from seatrial.parsers.hardware.ibv_devinfo import parse_ibv_devinfo
from seatrial.parsers.hardware.lspci import PciFunction, parse_lspci

_PCIE = ("pcie.max_read_request", "pcie.max_payload", "pcie.acs")
_FIRMWARE = ("fw.version", "fw", "fw.mgmt")
"""Names of devlink: of mlx5, of the whole card, of the part that serves the driver."""


def _hcas(_block: Block, raw: Raw) -> list[tuple[str, str]]:
    return [("hca", address) for address in hca_addresses(raw)]


def _ports(_block: Block, raw: Raw) -> list[tuple[str, str]]:
    """Return the ports whose state sysfs tells."""
    return [(one.kind, one.subject) for one in hca_readings(raw) if one.key == "state"]


# ---- lspci


def _lspci(block: Block, raw: Raw) -> Iterator[Reading]:
    functions = parse_lspci(block.text).functions
    for address, folder in hca_addresses(raw).items():
        names = [part for part in folder.split("/") if ADDRESS.fullmatch(part)]
        path = {name: functions[name] for name in names if name in functions}
        untold = [name for name in names if name not in path]
        if not untold and path[address].max_read_request is None:
            untold = [address]
        if untold:
            reason = f"lspci: no settings of {untold[0]}"
            for key in _PCIE:
                yield Reading("hca", address, key, None, block, reason=reason)
            continue
        yield from _settings(block, address, path)
        yield from gaps(_links(block, address, folder, path), raw)


def _settings(
    block: Block, address: str, path: dict[str, PciFunction]
) -> Iterator[Reading]:
    """Yield the settings of an HCA; `path` has it and the ports above it."""
    hca = path[address]
    request = str(hca.max_read_request)
    yield Reading("hca", address, "pcie.max_read_request", request, block)
    yield _payload(block, address, path)
    checked = [name for name, one in path.items() if one.acs and name != address]
    acs = "on" if checked else "off"
    yield Reading("hca", address, "pcie.acs", acs, block, reason=" ".join(checked))
    for key, text in (("part", hca.part), ("serial", hca.serial)):
        if text is not None:
            yield Reading("hca", address, key, text, block)


def _payload(block: Block, address: str, path: dict[str, PciFunction]) -> Reading:
    """Return the payload of the path; several if hops differ, which no path supports.

    `able` is what all hops support; a path with one payload is as the BIOS set it.
    """
    payloads = {
        name: one.max_payload
        for name, one in path.items()
        if one.max_payload is not None
    }
    most = [one.able_payload for one in path.values() if one.able_payload is not None]
    able = str(min(most)) if len(most) == len(payloads) else None
    sizes = sorted(set(payloads.values()))
    several = [f"{size} at {name}" for name, size in payloads.items()]
    return Reading(
        "hca",
        address,
        "pcie.max_payload",
        " ".join(map(str, sizes)),
        block,
        able=able if len(sizes) > 1 else None,
        reason=", ".join(several) if len(sizes) > 1 else "",
    )


def _links(
    block: Block, address: str, folder: str, path: dict[str, PciFunction]
) -> Iterator[Reading]:
    """Yield speed and width of the links, as sysfs tells them (not in old kernels)."""
    values = {}
    for name, one in path.items():
        place = f"{folder.partition(name)[0]}{name}"
        for what, text in (
            ("current_link_speed", one.speed),
            ("current_link_width", one.width),
            ("max_link_speed", one.able_speed),
            ("max_link_width", one.able_width),
        ):
            values[f"{place}/{what}"] = text or ""
    if links := links_of(folder, values):
        yield from (link_reading(block, address, links, w) for w in ("speed", "width"))


# ---- devlink


def _devlink(block: Block, raw: Raw) -> Iterator[Reading]:
    devices = parse_devlink_info(block.text).devices
    sysfs = {
        one.subject: one.value for one in hca_readings(raw) if one.key == "firmware"
    }
    for address in hca_addresses(raw):
        if address in devices:
            yield from _board(block, address, devices[address])
            flint = raw.get("mstflint", address)
            if flint is None or flint.trouble:
                yield from _firmware(
                    block, address, devices[address], sysfs.get(address)
                )


def _board(block: Block, address: str, device: DevlinkDevice) -> Iterator[Reading]:
    fixed = device.versions.fixed
    values = {
        "part": fixed.get("board.id"),
        "serial": device.board_serial_number or device.serial_number,
        "psid": fixed.get("fw.psid"),  # of Broadcom it runs: a version of settings
    }
    for key, text in values.items():
        if text:
            yield Reading("hca", address, key, text, block)


def _firmware(
    block: Block, address: str, device: DevlinkDevice, of_sysfs: str | None
) -> Iterator[Reading]:
    """Yield the version that sysfs shows, if it is one of these, and what waits."""
    running = device.versions.running
    names = [name for name in _FIRMWARE if name in running]
    same = [name for name in names if running[name] == of_sysfs]
    for name in (same or names)[:1]:
        stored = device.versions.stored.get(name, running[name])
        pending = None if stored == running[name] else stored
        yield Reading("hca", address, "firmware", running[name], block, pending=pending)


# ---- ibv_devinfo


def _ibv_devinfo(block: Block, raw: Raw) -> Iterator[Reading]:
    yield from gaps(_devices(block, raw), raw)


def _devices(block: Block, raw: Raw) -> Iterator[Reading]:
    addresses = device_addresses(raw)
    for name, device in parse_ibv_devinfo(block.text).devices.items():
        address = addresses.get(name, name)
        for key, text in (("psid", device.board_id), ("firmware", device.firmware)):
            if text and text.strip("0."):
                yield Reading("hca", address, key, text, block)
        for number, port in device.ports.items():
            subject = f"{address}/{number}" if len(device.ports) > 1 else address
            mtu = None if port.active_mtu is None else str(port.active_mtu)
            reason = "ibv_devinfo: no MTU" if mtu is None else ""
            if port.active_mtu and port.max_mtu and port.active_mtu < port.max_mtu:
                reason = f"the port supports {port.max_mtu}"
            yield Reading("hca", subject, "mtu", mtu, block, reason=reason)
            for key, text in (("state", port.state), ("link_layer", port.link_layer)):
                if text is not None:
                    yield Reading("hca", subject, key, text, block)


LINK_TOOLS = {
    "devlink": Tool((), _devlink),
    "ibv_devinfo": Tool(("mtu",), _ibv_devinfo, _ports),
    "lspci": Tool(_PCIE, _lspci, _hcas),
    **DRIVER_TOOLS,
}
