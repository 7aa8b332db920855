"""Typed records of a fabric: devices, links, subnet managers; the file fabric.json."""

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from seatrial.errors import SeatrialError
from seatrial.limits import TABLE_SIZE

SCHEMA = 1
"""Version of the records; a reader refuses a higher one."""

Kind = Literal["host", "switch", "router", "aggregation"]


class End(Struct, frozen=True, order=True):
    """A port as a technician finds it: the device, and the label of the port.

    The port of a switch is its number, or on Ethernet its interface; that of a host is
    HCA and port number, `mlx5_0:1`, or on Ethernet its interface.
    """

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device} port {self.port}"


class Device(Struct, frozen=True):
    """A switch, or one HCA of a host.

    `name` is that of the node or switch; `hca` is empty for switches. `guid` and `lid`
    are empty and None on Ethernet. `aggregation` is the HCA inside a switch (SHARP).
    """

    name: str
    kind: Kind
    guid: str = ""
    hca: str = ""
    description: str = ""
    model: str = ""
    psid: str = ""
    firmware: str = ""
    lid: int | None = None
    ports: int = 0


class Link(Struct, frozen=True):
    """A cable between two ports.

    `width` in lanes, None if unknown; `speed` of a lane such as HDR, on Ethernet of the
    link such as 100G; `state` and `physical` as ibstat spells them; all '' if unknown.
    `part` and `serial` are those of the cable.
    """

    a: End
    b: End
    width: int | None = None
    speed: str = ""
    state: str = ""
    physical: str = ""
    part: str = ""
    serial: str = ""


class OpenPort(Struct, frozen=True):
    """A port without a known other end.

    `silent`: the link is up, but the other end did not answer.
    """

    end: End
    state: str = ""
    physical: str = ""
    silent: bool = False


class Duplicate(Struct, frozen=True):
    """A GUID that several devices have; `ends` are the ports that lead to it."""

    guid: str
    ends: tuple[End, ...]


class Manager(Struct, frozen=True):
    """A subnet manager: GUID of its port, priority 0 to 15, its state and subnet."""

    guid: str
    priority: int
    state: str
    lid: int = 0
    subnet: str = ""


class Source(Struct, frozen=True):
    """Where records come from; `sha256` is of the raw output."""

    tool: str
    version: str
    sha256: str
    file: str = ""


class Fabric(Struct, frozen=True):
    """A discovered fabric.

    `managers` is None if nothing told them, empty if there is none. `leafs` are the
    switches that each node is connected to, by their names in order. `subnets` are the
    HCAs or folders by which each subnet was seen. `time` is that
    of the discovery, or of the newest file, in UTC. `routes` are differences from the
    forwarding tables that are kept with it, '' if they fit or there are none.
    """

    devices: tuple[Device, ...]
    links: tuple[Link, ...]
    open_ports: tuple[OpenPort, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    managers: tuple[Manager, ...] | None = None
    leafs: dict[str, tuple[str, ...]] = {}
    sources: tuple[Source, ...] = ()
    problems: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ("",)
    time: str = ""
    routes: str = ""
    schema: int = SCHEMA


def source_of(tool: str, version: str, text: str, file: str = "") -> Source:
    """Return the source of a raw output."""
    digest = hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()
    return Source(tool, version, digest, file)


def leafs_of(
    devices: tuple[Device, ...], links: tuple[Link, ...]
) -> dict[str, tuple[str, ...]]:
    """Return the switches of each node, by the links of its HCAs."""
    hosts = {device.name for device in devices if device.kind == "host"}
    leafs: dict[str, set[str]] = defaultdict(set)
    for link in links:
        for own, far in ((link.a, link.b), (link.b, link.a)):
            if own.device in hosts and far.device not in hosts:
                leafs[own.device].add(far.device)
    return {node: tuple(sorted(leafs[node])) for node in sorted(leafs)}


def write_fabric(file: Path, fabric: Fabric) -> None:
    """Write fabric.json; OSError if that fails."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.format(msgspec.json.encode(fabric), indent=1)
    file.write_bytes(content + b"\n")


def read_fabric(file: Path) -> Fabric:
    """Read fabric.json; SeatrialError if it is damaged or of a later version."""
    try:
        return parse_fabric(file.read_bytes(), file)
    except OSError as error:
        raise SeatrialError(f"{file}: {error.strerror}") from error


def parse_fabric(content: bytes, file: Path) -> Fabric:
    """Parse the content of fabric.json, as `read_fabric`."""
    try:
        TABLE_SIZE.check(len(content), file)
        schema = msgspec.json.decode(content, type=_Schema).schema
        if schema > SCHEMA:
            raise SeatrialError(
                f"{file}: schema {schema}, expected at most {SCHEMA}. Update Seatrial."
            )
        return msgspec.json.decode(content, type=Fabric)
    except msgspec.MsgspecError as error:
        raise SeatrialError(
            f"{file}: {error}; expected a file of `seatrial fabric discover --output`"
        ) from error


class _Schema(Struct):
    schema: int
