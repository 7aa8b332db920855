"""Rows of an audit: each key of each node, with its verdict."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from seatrial.audit import nvconfig
from seatrial.audit.expected import Expected
from seatrial.audit.keys import key_of
from seatrial.audit.reading import Reading
from seatrial.model.serial_numbers import is_placeholder

Verdict = Literal["ok", "drift", "pending", "odd", "unknown", "absent"]
VERDICTS: tuple[Verdict, ...] = ("absent", "drift", "pending", "unknown", "odd", "ok")
"""From the worst to the best."""


@dataclass(frozen=True)
class Row:
    """One key of one subject of a node.

    `declared` is the value of the inventory, or, for PCIe, what both ends can do.
    `peers` counts the values of the nodes of the same class, this one included. `tool`,
    `version` and `sha256` (of the raw output) say where `actual` comes from.
    """

    node: str
    node_class: str
    subject: str
    key: str
    declared: str | None
    actual: str | None
    pending: str | None
    peers: dict[str, int]
    verdict: Verdict
    reason: str
    tool: str
    version: str
    sha256: str


@dataclass(frozen=True)
class NodeClass:
    """A class: its nodes, declared values, and rails by PCI address/port."""

    name: str
    nodes: tuple[str, ...]
    expected: tuple[Expected, ...] = ()
    rails: Mapping[str, str] = field(default_factory=dict)


_Place = tuple[str, str, str]  # kind, subject, key
_NONE: Counter[str] = Counter()
_Readings = dict[_Place, Reading]


def rows_of(
    node_class: NodeClass,
    readings: Mapping[str, Iterable[Reading]],
    missing: Mapping[str, str],
) -> list[Row]:
    """Return the rows of a class.

    `readings` has those of each node that answered, `missing` the reason for each one
    that did not: its declared keys, or else its release, are unknown.
    """
    found = {
        node: _by_place(readings[node], node_class.rails)
        for node in node_class.nodes
        if node in readings
    }
    peers: dict[_Place, Counter[str]] = defaultdict(Counter)
    for places in found.values():
        for place, reading in places.items():
            peers[place][reading.value or "unknown"] += 1
    shares = {place: dict(of.most_common()) for place, of in peers.items()}
    rows = [
        row
        for node, places in found.items()
        for row in _rows_of_node(node_class, node, places, peers, shares)
    ]
    for node in node_class.nodes:
        if node not in found:
            rows += _silent(node_class, node, missing.get(node, "no answer"))
    return rows


def _by_place(readings: Iterable[Reading], rails: Mapping[str, str]) -> _Readings:
    """Index readings; a later source of a key wins, unless it says nothing.

    What an HCA of several rails says of itself holds for each rail.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for address, rail in rails.items():
        names[address].append(rail)
        if "/" in address:
            names[address.split("/")[0]].append(rail)
    found: _Readings = {}
    for reading in map(_without_placeholder, readings):
        subjects = names.get(reading.subject) if reading.kind == "hca" else None
        for subject in subjects or [reading.subject]:
            place = (reading.kind, subject, reading.key)
            if reading.value is not None or place not in found:
                found[place] = reading
    return found


def _without_placeholder(reading: Reading) -> Reading:
    """Return the reading, unknown if it is what firmware has without a serial."""
    text = reading.value
    if reading.key != "serial" or text is None or not is_placeholder(text):
        return reading
    reason = f"the firmware has a placeholder: {text}"
    return replace(reading, value=None, reason=reason)


def _rows_of_node(
    node_class: NodeClass,
    node: str,
    places: _Readings,
    peers: Mapping[_Place, Counter[str]],
    shares: Mapping[_Place, dict[str, int]],
) -> Iterator[Row]:
    declared = {
        (one.kind, one.subject, one.key): one.value for one in node_class.expected
    }
    subjects = {place[:2] for place in places}
    line = places.get(("kernel", "kernel", "command_line"))
    for place in sorted({*declared, *places}):
        reading = places.get(place)
        is_argument = place[2].startswith("argument.")
        if is_argument and place not in declared:
            continue  # command_line shows who differs
        if reading is None and line and is_argument:
            reading = replace(line, key=place[2], value="absent")
        elif reading is None and place[2].startswith("nvconfig."):
            reading = places.get((*place[:2], "nvconfig.all"))
        wanted = declared.get(place)
        if reading is None:
            gone = place[0] == "hca" and place[:2] not in subjects
            verdict: Verdict = "absent" if gone else "unknown"
            reason = "no HCA at its address" if gone else "no source tells it"
            yield _row(node_class, node, place, wanted, reason, verdict)
            continue
        verdict = _verdict(place, reading, wanted, peers.get(place, _NONE))
        yield Row(
            node,
            node_class.name,
            *place[1:],
            wanted or reading.able,
            reading.value,
            reading.pending,
            shares.get(place, {}),
            verdict,
            reading.reason,
            reading.block.tool,
            reading.block.version,
            reading.block.sha256,
        )


def _verdict(
    place: _Place, reading: Reading, declared: str | None, peers: Counter[str]
) -> Verdict:
    kind, _, key = place
    wanted = declared or reading.able
    if kind == "hca" and key == "device" and reading.value == "none":
        return "absent"
    if reading.value is None:
        return "unknown"
    same = nvconfig.same if key.startswith("nvconfig.") else str.__eq__
    if wanted is not None and not same(reading.value, wanted):
        waits = reading.pending is not None and same(reading.pending, wanted)
        return "pending" if waits else "drift"
    if reading.pending not in (None, reading.value):
        return "pending"
    if wanted is None and key_of(kind, key).alike and _is_odd(reading.value, peers):
        return "odd"
    return "ok"


def _is_odd(value: str, peers: Counter[str]) -> bool:
    """Return True unless more than half of the nodes that know have this value."""
    known = peers.total() - peers["unknown"]
    return known > 1 and peers[value] * 2 <= known


def _silent(node_class: NodeClass, node: str, reason: str) -> Iterator[Row]:
    places = [(one.kind, one.subject, one.key) for one in node_class.expected]
    values = [one.value for one in node_class.expected]
    pairs: list[tuple[_Place, str | None]] = [*zip(places, values, strict=True)]
    for place, declared in pairs or [(("kernel", "kernel", "release"), None)]:
        yield _row(node_class, node, place, declared, reason, "unknown")


def _row(
    node_class: NodeClass,
    node: str,
    place: _Place,
    declared: str | None,
    reason: str,
    verdict: Verdict,
) -> Row:
    """Return a row without a source."""
    _, subject, key = place
    name = node_class.name
    return Row(
        node, name, subject, key, declared, None, None, {}, verdict, reason, "", "", ""
    )
