"""Drivers: their source and version, and what they tell of network interfaces."""

import re
from collections.abc import Iterator

from seatrial.audit.hca_readings import gaps, hca_addresses, interface_addresses
from seatrial.audit.raw import NO_PROGRAM, Block, Raw
from seatrial.audit.reading import Reading
from seatrial.audit.tool import Tool
from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.ethtool import (
    parse_ethtool_coalescing,
    parse_ethtool_driver,
)
from seatrial.parsers.hardware.ofed_info import parse_ofed_info

_FIRMWARE = re.compile(r"([0-9]+(?:\.[0-9]+)+) \(([A-Z][A-Z0-9_]{8,15})\)")
_COALESCING = (
    "adaptive-rx",
    "adaptive-tx",
    "rx-usecs",
    "rx-frames",
    "tx-usecs",
    "tx-frames",
)
_SOURCES = {"MLNX_OFED_LINUX": "OFED", "OFED-internal": "DOCA"}


# ---- Interfaces


def _subject(interface: str, raw: Raw) -> tuple[str, str]:
    """Return the HCA of an interface; the interface if the HCA has several."""
    addresses = interface_addresses(raw)
    address = addresses.get(interface)
    if address is None or list(addresses.values()).count(address) > 1:
        return "interface", interface
    return "hca", address


def _subjects(block: Block, raw: Raw) -> list[tuple[str, str]]:
    return [_subject(block.subject, raw)]


def _driver(block: Block, raw: Raw) -> Iterator[Reading]:
    """Yield the driver of an interface, and firmware that sysfs does not tell."""
    found = parse_ethtool_driver(block.text)
    kind, subject = _subject(block.subject, raw)
    match = _FIRMWARE.fullmatch(found.firmware or "")
    firmware, psid = match.groups() if match else (found.firmware, None)
    values = {"driver": found.driver, "firmware": firmware}
    if kind == "hca":
        values["psid"] = psid
    readings = [
        Reading(kind, subject, key, text, block)
        for key, text in values.items()
        if text and text != "N/A"
    ]
    yield from gaps(readings, raw)


def _coalescing(block: Block, raw: Raw) -> Iterator[Reading]:
    """Yield the settings that apply: with `adaptive-rx` the driver chooses rx-*."""
    settings = parse_ethtool_coalescing(block.text).settings
    kind, subject = _subject(block.subject, raw)
    for name in _COALESCING:
        adaptive = settings.get(f"adaptive-{name[:2]}") == "on"
        if name in settings and not (adaptive and name[2] == "-"):
            key = f"coalescing.{name}"
            yield Reading(kind, subject, key, settings[name], block)


DRIVER_TOOLS = {
    "ethtool_driver": Tool((), _driver, _subjects),
    "ethtool_coalescing": Tool(("coalescing.all",), _coalescing, _subjects),
}


# ---- Source and version


def driver_readings(raw: Raw) -> Iterator[Reading]:
    """Yield where the drivers of the HCAs come from: what is loaded counts.

    The kernel marks a module that was not built with it by `O` in its `taint`. A stack
    may be installed and not loaded, for example because of an old initramfs.
    """
    block, pci = raw.get("modules"), raw.get("pci")
    if block is None or pci is None:
        return
    values, links = block.values(), pci.values()
    drivers = {
        links.get(f"{folder}/driver", "").rsplit("/", 1)[-1]
        for folder in hca_addresses(raw).values()
    }
    taints = {
        name: values.get(f"sys/module/{name}/taint")
        for name in sorted(drivers)
        if f"sys/module/{name}/loaded" in values
    }
    untold = [name for name, taint in taints.items() if taint is None]
    foreign = [name for name, taint in taints.items() if "O" in (taint or "")]
    if untold:
        reason = f"sysfs: no taint of {untold[0]}"
        yield from _driver_of(block, None, None, reason)
    elif foreign:
        yield from _foreign(block, foreign, raw)
    elif taints:
        node = raw.get("node_sysfs")
        values = node.values() if node else {}
        release = values.get("proc/sys/kernel/osrelease")
        yield from _driver_of(block, "inbox", release, "")


def _foreign(block: Block, modules: list[str], raw: Raw) -> Iterator[Reading]:
    ofed = raw.get("ofed")
    of_nvidia = any(name.startswith("mlx") for name in modules)
    if ofed is None or ofed.status == NO_PROGRAM or not of_nvidia:
        values = block.values()
        versions = [values.get(f"sys/module/{name}/version", "") for name in modules]
        pairs = zip(modules, versions, strict=True)
        text = ", ".join(f"{name} {version}".strip() for name, version in pairs)
        yield from _driver_of(block, "other", text, "")
        return
    source, version, reason = None, None, ofed.trouble
    if not reason:
        try:
            stack = parse_ofed_info(ofed.text)
            source, version = _SOURCES.get(stack.name, "other"), stack.version
        except ParseError as error:
            reason = f"ofed_info: {error}"
    yield from _driver_of(ofed, source, version, reason)


def _driver_of(
    block: Block, source: str | None, version: str | None, reason: str
) -> Iterator[Reading]:
    yield Reading("driver", "driver", "source", source, block, reason=reason)
    yield Reading("driver", "driver", "version", version, block, reason=reason)
