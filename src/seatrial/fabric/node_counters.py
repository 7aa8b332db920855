"""The counters of a node's ports, from the output of `counters.sh`."""

import re
from collections import defaultdict
from collections.abc import Mapping
from importlib.resources import files

from msgspec import Struct

from seatrial.audit.raw import Block, Raw
from seatrial.errors import SeatrialError
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.ethtool_counters import parse_ethtool_counters

_OF_PORT = re.compile(
    r"sys/class/infiniband/([^/]+)/ports/(\d+)/(?:(hw_)?counters/)?(\S.*)"
)
_OF_DEVICE = re.compile(r"sys/class/infiniband/([^/]+)/hw_counters/(.+)")
_OF_INTERFACE = re.compile(
    r"sys/class/net/([^/]+)/(?:statistics/(\w+)|(operstate|carrier_down_count))"
)
_NAME_OF_INTERFACE = "gid_attrs/ndevs/0"
_FACTS = ("link_layer", "state", _NAME_OF_INTERFACE)
_BOOT = "proc/sys/kernel/random/boot_id"
_UP = ("ACTIVE", "up", "unknown")


class Port(Struct, frozen=True):
    """The counters of a port, with the prefixes of `quantities.Quantity`.

    `up`: its link carries data. `trouble` is why some counters are missing, or ''.
    """

    counters: Mapping[str, int]
    up: bool
    source: str = "sysfs"
    trouble: str = ""


class NodeCounters(Struct, frozen=True):
    """The ports of a node at a time (UTC seconds, of its own clock).

    The name of a port is `mlx5_0:1`, or that of an interface without an RDMA device.
    `boot` tells one boot of the node from another.
    """

    time: float
    boot: str
    ports: Mapping[str, Port]


def node_script() -> str:
    """Return the script that prints them."""
    return files("seatrial.fabric").joinpath("counters.sh").read_text(encoding="utf-8")


def parse_node_counters(text: str) -> NodeCounters:
    """Parse the output of a node; SeatrialError if it is cut off or damaged."""
    raw = Raw(text)
    block = raw.get("counters")
    if block is None:
        raise SeatrialError("no block of counters; expected one")
    values = block.values()
    time = values.get("time", "")
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", time):
        raise SeatrialError(f"time of the counters: {time!r}; expected a number")
    counters, facts, shared = _of_sysfs(values)
    interfaces = _of_interfaces(values)
    ethtool = {one.subject: one for one in raw.of("ethtool")}
    ports: dict[str, Port] = {}
    named: set[str] = set()
    for (device, number), own in counters.items():
        if sum(of == device for of, _ in counters) == 1:
            own |= shared.get(device, {})
        told = facts[device, number]
        up = told.get("state", "").endswith(": ACTIVE")
        port = Port(own, up)
        if told.get("link_layer") == "Ethernet":
            interface = told.get(_NAME_OF_INTERFACE, "")
            named.add(interface)
            of_link = interfaces.get(interface, {})
            port = _ethernet(_without_link(own), of_link, ethtool.get(interface), up)
        ports[f"{device}:{number}"] = port
    for name in {**interfaces, **ethtool}:
        if name not in named:  # a declared interface, which may not be there
            up = values.get(f"sys/class/net/{name}/operstate", "unknown") in _UP
            ports[name] = _ethernet({}, interfaces.get(name, {}), ethtool.get(name), up)
    return NodeCounters(float(time), values.get(_BOOT, ""), ports)


_Port = tuple[str, str]


def _of_sysfs(
    values: Mapping[str, str],
) -> tuple[
    dict[_Port, dict[str, int]],
    dict[_Port, dict[str, str]],
    dict[str, dict[str, int]],
]:
    """Return counters and facts of each port, and the counters of whole devices."""
    counters: dict[_Port, dict[str, int]] = defaultdict(dict)
    facts: dict[_Port, dict[str, str]] = defaultdict(dict)
    shared: dict[str, dict[str, int]] = defaultdict(dict)
    for path, text in values.items():
        if match := _OF_PORT.fullmatch(path):
            device, number, of_hardware, name = match.groups()
            if name in _FACTS:
                facts[device, number][name] = text
                counters[device, number]  # a port may have no counter that is readable
            else:
                prefix = "hw:" if of_hardware else "ib:"
                counters[device, number] |= _number(f"{prefix}{name}", text)
        elif match := _OF_DEVICE.fullmatch(path):
            shared[match[1]] |= _number(f"hw:{match[2]}", text)
    return counters, facts, shared


def _number(name: str, text: str) -> dict[str, int]:
    """Return a counter; nothing if the driver has no number for it."""
    return {name: int(text)} if text.isascii() and text.isdecimal() else {}


def _of_interfaces(values: Mapping[str, str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for path, text in values.items():
        if match := _OF_INTERFACE.fullmatch(path):
            found[match[1]] |= _number(f"net:{match[2] or match[3]}", text)
    return found


def _without_link(counters: Mapping[str, int]) -> dict[str, int]:
    """Leave out what drivers of Ethernet do not count, and show as 0: link errors."""
    return {
        name: count
        for name, count in counters.items()
        if not name.startswith("ib:") or name.endswith("_data")
    }


def _ethernet(
    own: Mapping[str, int], of_link: Mapping[str, int], block: Block | None, up: bool
) -> Port:
    """Join the counters of an RDMA device, of its interface, and of ethtool."""
    counters = {**own, **of_link}
    if block is None:
        return Port(counters, up, trouble="ethtool: no interface")
    if block.status:
        return Port(counters, up, trouble=block.trouble)
    try:
        found = parse_ethtool_counters(block.text)
    except ParseError as error:
        return Port(counters, up, trouble=f"ethtool -S {block.subject}: {error}")
    return Port(
        counters | {f"eth:{name}": count for name, count in found.items()},
        up,
        "sysfs ethtool",
    )
