"""Readings of HCAs and network interfaces from sysfs and procfs.

Facts: Linux, Documentation/ABI/stable/sysfs-class-infiniband and testing/sysfs-bus-pci.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from seatrial.audit.pcie import ADDRESS, Link, links_of, written
from seatrial.audit.raw import Block, Raw
from seatrial.audit.reading import Reading

_FUNCTIONS = re.compile(r"0x02(00|07|08)")  # classes: Ethernet, InfiniBand, fabric
_DEVICE = "sys/class/infiniband/"
_PORT = re.compile(_DEVICE + r"([^/]+)/ports/(\d+)/(state|phys_state|rate|link_layer)$")
_TOS = re.compile(r"sys/kernel/config/rdma_cm/([^/]+)/ports/(\d+)/default_roce_tos$")
_NET = re.compile(r"sys/class/net/([^/]+)/(mode|mtu)$")
_DEVICE_FILES = {"psid": "board_id", "firmware": "fw_ver", "serial": "serial"}
_PORT_KEYS = {"state": "state", "phys_state": "physical_state"}
_ECN = re.compile(r"sys/class/net/([^/]+)/ecn/roce_(?:np|rp)/enable/(\d+)$")


def hca_addresses(raw: Raw) -> dict[str, str]:
    """Return the PCI address of each HCA, and its path below sys/devices."""
    block = raw.get("pci")
    values = block.values() if block else {}
    folders = {path.rsplit("/", 1)[0] for path in values if path.endswith("/class")}
    ends = [
        folder
        for folder in sorted(folders)
        if _FUNCTIONS.match(values[f"{folder}/class"])
    ]
    return {folder.rsplit("/", 1)[-1]: folder for folder in ends}


def device_addresses(raw: Raw) -> dict[str, str]:
    """Return the PCI address of each RDMA device, such as `mlx5_0`."""
    block = raw.get("rdma_sysfs")
    found = {}
    for path, target in (block.values() if block else {}).items():
        if path.startswith(_DEVICE) and path.endswith("/device"):
            address = target.rsplit("/", 1)[-1]
            if ADDRESS.fullmatch(address):
                found[path.split("/")[3]] = address
    return found


def interface_addresses(raw: Raw) -> dict[str, str]:
    """Return the PCI address of each network interface of a PCI device."""
    block = raw.get("net_sysfs")
    found = {}
    for path, target in (block.values() if block else {}).items():
        address = target.rsplit("/", 1)[-1]
        if path.endswith("/device") and ADDRESS.fullmatch(address):
            found[path.split("/")[3]] = address
    return found


def hca_readings(raw: Raw) -> Iterator[Reading]:
    """Yield the readings of HCAs, and of the interfaces of IPoIB."""
    devices = device_addresses(raw)
    if block := raw.get("pci"):
        for address, folder in hca_addresses(raw).items():
            yield from _pci(block, address, folder)
            names = [name for name, of in devices.items() if of == address]
            # None of the driver: PCI shows the HCA, and the driver lacks it.
            yield Reading("hca", address, "device", " ".join(names) or "none", block)
    if block := raw.get("rdma_sysfs"):
        yield from _devices(block, devices)
        yield from _interrupts(block, devices, raw)
    if block := raw.get("net_sysfs"):
        yield from _interfaces(block, interface_addresses(raw))


def gaps(found: Iterable[Reading], raw: Raw) -> Iterator[Reading]:
    """Yield what sysfs does not tell; a PCI subsystem is a makeshift PSID."""
    yield from (one for one in found if (one.subject, one.key) not in _told(raw))


@lru_cache(maxsize=1)
def _told(raw: Raw) -> set[tuple[str, str]]:
    """Return the subjects and keys that sysfs tells; all tools of a node ask."""
    return {
        (one.subject, one.key)
        for one in hca_readings(raw)
        if one.value is not None and (one.key, one.block.name) != ("psid", "pci")
    }


def _pci(block: Block, address: str, folder: str) -> Iterator[Reading]:
    values = block.values()

    def text(name: str) -> str:
        return values.get(f"{folder}/{name}", "")

    if text("subsystem_vendor"):
        parts = (text("subsystem_vendor"), text("subsystem_device"))
        board = ":".join(part.removeprefix("0x") for part in parts)
        yield Reading("hca", address, "psid", board, block)
    if text("driver"):
        yield Reading("hca", address, "driver", text("driver").split("/")[-1], block)
    if text("numa_node"):
        yield Reading("hca", address, "numa_node", text("numa_node"), block)
    links = links_of(folder, values)
    for what in ("speed", "width"):
        if links:
            yield link_reading(block, address, links, what)


def link_reading(block: Block, address: str, links: list[Link], what: str) -> Reading:
    """Return the reading of the first link below its ends, else of the HCA's own."""
    link = next((link for link in links if link.lacks(what)), links[0])
    now, able = (
        written(getattr(link, what)),
        written(getattr(link, f"able_{what}")),
    )
    where = "" if now is not None else f"{block.tool}: unknown, "
    reason = f"{where}between {link.upper} and {link.lower}"
    return Reading("hca", address, f"pcie.{what}", now, block, able=able, reason=reason)


def _devices(block: Block, devices: dict[str, str]) -> Iterator[Reading]:
    values = block.values()
    ports: dict[str, set[str]] = {}
    for path in values:
        if match := _PORT.match(path):
            ports.setdefault(match[1], set()).add(match[2])
    for name, address in devices.items():
        for key, file in _DEVICE_FILES.items():
            if text := values.get(f"{_DEVICE}{name}/{file}"):
                yield Reading("hca", address, key, text, block)
        if guid := values.get(f"{_DEVICE}{name}/node_guid"):
            yield Reading("hca", address, "guid", guid.replace(":", ""), block)
    for path, text in values.items():
        if match := _PORT.match(path):
            device, port, name = match.groups()
            several = len(ports[device]) > 1
            subject = f"{devices.get(device, device)}/{port}" if several else ""
            subject = subject or devices.get(device, device)
            yield Reading("hca", subject, *_of_port(name, text), block)
        elif match := _TOS.match(path):
            subject = devices.get(match[1], match[1])
            yield Reading("hca", subject, "roce.tos", text, block)


def _of_port(name: str, text: str) -> tuple[str, str]:
    """Return key and value of a file of a port: `4: ACTIVE`, `100 Gb/sec (4X EDR)`."""
    if name == "rate":
        return name, text.split()[0]
    return _PORT_KEYS.get(name, name), text.split(": ")[-1]


def _interrupts(block: Block, devices: dict[str, str], raw: Raw) -> Iterator[Reading]:
    """Yield whether the interrupts of each HCA are served at its own NUMA node."""
    values = block.values()
    pci, node = raw.get("pci"), raw.get("node_sysfs")
    if pci is None or node is None:
        return
    folders, numa = hca_addresses(raw), node.values()
    for device, address in devices.items():
        number = pci.values().get(f"{folders.get(address)}/numa_node", "")
        local = numa.get(f"sys/devices/system/node/node{number}/cpulist", "")
        irqs = values.get(f"{_DEVICE}{device}/irqs", "").split()
        served = [values.get(f"proc/irq/{irq}/smp_affinity_list") for irq in irqs]
        cpus = set().union(*(cpu_set(text) for text in served if text))
        if local and cpus:
            text = "local" if cpus <= cpu_set(local) else "remote"
            yield Reading("hca", address, "irq_affinity", text, block)


def cpu_set(text: str) -> set[int]:
    """Return the CPUs of a list such as `0-3,8`."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def _interfaces(block: Block, addresses: dict[str, str]) -> Iterator[Reading]:
    values = block.values()
    priorities: dict[str, set[str]] = {}
    for path, text in values.items():
        match = _NET.match(path)
        if match and values.get(f"sys/class/net/{match[1]}/type") == "32":  # InfiniBand
            yield Reading("interface", match[1], match[2], text, block)
        elif match and match[2] == "mtu" and match[1] in addresses:
            yield Reading("interface", match[1], "mtu", text, block)
        elif (ecn := _ECN.match(path)) and ecn[1] in addresses:
            enabled = priorities.setdefault(addresses[ecn[1]], set())
            enabled |= {ecn[2]} if text == "1" else set()
    for address, enabled in priorities.items():
        text = " ".join(sorted(enabled)) or "none"
        yield Reading("hca", address, "roce.ecn", text, block)
