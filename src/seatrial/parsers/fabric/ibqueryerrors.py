"""Parse `ibqueryerrors`: counters of all ports, and those with errors.

Source of the format: infiniband-diags/ibqueryerrors.c of rdma-core.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.seen import guid_of

_PORT = re.compile(r"\s+GUID (0x[0-9a-f]+) port (\d+|ALL):((?: \[\w+ == \d+[^\]]*\])+)")
_COUNTER = re.compile(r"\[(\w+) == (\d+)")
_DEVICE = re.compile(r'(?:Errors|Data Counters) for (?:0x[0-9a-f]+ )?"(.*)"')
_NODES = re.compile(r"## Summary: (\d+) nodes checked, (\d+) bad nodes found")
_PORTS = re.compile(r"##\s+(\d+) ports checked, (\d+) ports have errors.*")
_FAILURES = re.compile(r"##\s+(\d+) PMA query failures")
_DETAILS = re.compile(r"(\s+(?:Link info|PktsXmit|\w+Details).*|##.*|)")

Port = tuple[str, str]
"""GUID, and number of the port."""

Counts = Mapping[Port, Mapping[str, int]]


class Data(NamedTuple):
    """Data of ports, by the GUID of their device; names of devices by GUID."""

    counts: Counts
    names: Mapping[str, str]


class Errors(NamedTuple):
    """Ports with errors, and how many nodes and ports were asked.

    The GUID of a port is that of its switch, or of the port of an HCA, which may differ
    from that of the HCA. `names` has the name of the device by these GUIDs.
    """

    counts: Counts
    names: Mapping[str, str]
    nodes: int
    ports: int


def parse_data(text: str) -> Data:
    """Return the counters of `ibqueryerrors --counters`: data of every port.

    Raises ParseError as `parse_errors`.
    """
    counts, names, _ = _parsed(text)
    _summary(text)
    return Data(counts, names)


def parse_errors(text: str) -> Errors:
    """Return the counters of `ibqueryerrors --data`: ports with an error.

    Raises ParseError if a query failed, or without the summary: ibqueryerrors ends with
    status 0 also if there is no subnet manager, and then prints nothing.
    """
    counts, names, devices = _parsed(text)
    nodes, ports = _summary(text)
    if devices != int(nodes[2]) or len(counts) != int(ports[2]):
        raise ParseError(
            text.count("\n"),
            f"{nodes[2]} bad nodes and {ports[2]} ports announced, got {devices} and "
            f"{len(counts)}",
        )
    return Errors(counts, names, int(nodes[1]), int(ports[1]))


def _summary(text: str) -> tuple[re.Match[str], re.Match[str]]:
    """Return the lines of nodes and ports at the end; ParseError without them."""
    nodes, ports = _NODES.search(text), _PORTS.search(text)
    if nodes is None or ports is None:
        raise ParseError(
            text.count("\n"),
            "no line '## Summary: ... nodes checked'; cut off, or no fabric",
        )
    return nodes, ports


def _parsed(text: str) -> tuple[dict[Port, dict[str, int]], dict[str, str], int]:
    """Return counters of single ports, names of devices, and the number of devices."""
    counts: dict[Port, dict[str, int]] = {}
    names: dict[str, str] = {}
    name, devices = "", 0
    lines = text.split("\n")
    if lines[-1]:
        raise ParseError(
            len(lines), f"cut off in {lines[-1]!r}. Run ibqueryerrors again."
        )
    for number, line in enumerate(lines, 1):
        if match := _PORT.fullmatch(line):
            if match[2] == "ALL":  # the sum over a switch
                continue
            port = guid_of(match[1]), match[2]
            if port in counts:
                raise ParseError(number, f"port {match[2]} of {match[1]} twice")
            counts[port] = {key: int(n) for key, n in _COUNTER.findall(match[3])}
            names[port[0]] = name
        elif match := _DEVICE.fullmatch(line):
            name, devices = match[1], devices + 1
        elif match := _FAILURES.fullmatch(line):
            raise ParseError(
                number,
                f"{match[1]} queries of counters failed, and their ports would look "
                "sound. Run ibqueryerrors again.",
            )
        elif not _DETAILS.fullmatch(line):
            raise ParseError(number, f"{line!r} is no line of ibqueryerrors")
    return counts, names, devices
