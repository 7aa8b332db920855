"""Parse `lldpctl -f json` of a node: the switch port at the other end of each cable.

lldpd writes one neighbour as an object and several as a list, at every level.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from seatrial.parsers.errors import ParseError


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A switch port that an interface of a node is connected to."""

    interface: str
    switch: str
    switch_id: str
    port: str


def parse_lldpctl(text: str) -> list[Neighbour]:
    """Return the neighbours of a node, in the order of its interfaces.

    Raises ParseError if the text is no whole JSON of lldpctl, or a neighbour has no
    name or port.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(error.lineno, f"no whole JSON: {error.msg}") from error
    if not isinstance(document, dict) or not isinstance(document.get("lldp"), dict):
        raise ParseError(1, "expected the key lldp, as `lldpctl -f json` writes it")
    found = []
    for interface, neighbour in _pairs(document["lldp"].get("interface")):
        if neighbour.get("via", "LLDP") != "LLDP":
            continue  # CDP and others name ports in their own ways
        for name, chassis in _chassis(neighbour.get("chassis")):
            port = _value(neighbour.get("port"), "id") or _value(
                neighbour.get("port"), "descr"
            )
            identity = _value(chassis, "id")
            if not port or not (name or identity):
                raise ParseError(0, f"{interface}: a neighbour without name or port")
            found.append(Neighbour(interface, name or identity, identity, port))
    return found


def _pairs(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the keys and objects of an object, or of a list of objects."""
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict):
            for key, inner in part.items():
                if isinstance(inner, dict):
                    yield key, inner


def _chassis(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and fields of a chassis; the name is its key, or a field."""
    if isinstance(value, dict) and ("id" in value or "name" in value):
        yield _value(value, "name"), value
    else:
        yield from _pairs(value)


def _value(fields: Any, name: str) -> str:
    """Return a field, which may be a text, or an object or list with a value."""
    value = fields.get(name) if isinstance(fields, dict) else None
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        value = value.get("value")
    return str(value) if value is not None else ""
