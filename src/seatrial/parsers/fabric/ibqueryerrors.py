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
_DEVICE = re.compile(r'(?:Errors|Data Counters) for (?:0x[0-9a-f]+ )?"?.*')
_NODES = re.compile(r"## Summary: (\d+) nodes checked, (\d+) bad nodes found")
_PORTS = re.compile(r"##\s+(\d+) ports checked, (\d+) ports have errors.*")
_DETAILS = re.compile(r"(\s+(?:Link info|PktsXmit|\w+Details).*|##.*|)")

Port = tuple[str, str]
"""GUID of a device, and number of its port."""

Counts = Mapping[Port, Mapping[str, int]]


class Errors(NamedTuple):
    """Ports with errors, and how many nodes and ports were asked."""

    counts: Counts
    nodes: int
    ports: int


def parse_data(text: str) -> Counts:
    """Return the counters of `ibqueryerrors --counters`: data of every port.

    Raises ParseError if it has none, or is damaged. Nothing marks its end: compare the
    ports with those that the fabric has.
    """
    counts, _ = _parsed(text)
    if not counts:
        raise ParseError(0, "no counters of a port; expected those of every port")
    return counts


def parse_errors(text: str) -> Errors:
    """Return the counters of `ibqueryerrors --data`: ports with an error.

    Raises ParseError without the summary: ibqueryerrors ends with status 0 also if
    there is no subnet manager, and then prints nothing.
    """
    counts, last = _parsed(text)
    nodes, ports = _NODES.search(text), _PORTS.search(text)
    if nodes is None or ports is None:
        raise ParseError(
            last, "no line '## Summary: ... nodes checked'; cut off, or no fabric"
        )
    bad = {guid for guid, _ in counts}
    if len(bad) != int(nodes[2]) or len(counts) != int(ports[2]):
        raise ParseError(
            last,
            f"{nodes[2]} bad nodes and {ports[2]} ports announced, got {len(bad)} and "
            f"{len(counts)}",
        )
    return Errors(counts, int(nodes[1]), int(ports[1]))


def _parsed(text: str) -> tuple[dict[Port, dict[str, int]], int]:
    """Return the counters of single ports, and the number of the last line."""
    counts: dict[Port, dict[str, int]] = {}
    lines = text.split("\n")
    if lines[-1]:
        raise ParseError(len(lines), f"cut off in {lines[-1]!r}")
    for number, line in enumerate(lines, 1):
        if match := _PORT.fullmatch(line):
            if match[2] == "ALL":  # the sum over a switch
                continue
            port = guid_of(match[1]), match[2]
            if port in counts:
                raise ParseError(number, f"port {match[2]} of {match[1]} twice")
            counts[port] = {name: int(n) for name, n in _COUNTER.findall(match[3])}
        elif not (_DEVICE.fullmatch(line) or _DETAILS.fullmatch(line)):
            raise ParseError(number, f"{line!r} is no line of ibqueryerrors")
    return counts, len(lines)
