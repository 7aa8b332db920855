"""The file of `seatrial.checks.nodesweep`: JSON Lines of all nodes, each by itself."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from seatrial.parsers.errors import ParseError
from seatrial.parsers.nodesweep_rows import (
    AbsentRow,
    CountersRow,
    EndRow,
    EventRow,
    FixedworkRow,
    HpccRow,
    MemlatRow,
    NodeRow,
    Part,
    RunRow,
    SensorsRow,
    SkipRow,
)
from seatrial.parsers.rows import Decoder, check_sizes, decode_object

_TYPES: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "run": (RunRow, ()),
    "node": (NodeRow, ("node",)),
    "sensors": (SensorsRow, ("node", "phase", "socket")),
    "counters": (CountersRow, ("node",)),
    "absent": (AbsentRow, ("node", "what")),
    "skip": (SkipRow, ("node", "program")),
    "hpcc": (HpccRow, ("node", "socket")),
    "memlat": (MemlatRow, ("node", "socket", "size_bytes")),
    "fixedwork": (FixedworkRow, ("node",)),
    "event": (EventRow, ("node", "program", "socket")),
    "end": (EndRow, ()),
}
"""The record of each type of row, and the keys that make a row the only one."""


@dataclass(frozen=True)
class NodeSweep:
    """A whole sweep: all numbers of every node, and what is missing."""

    run: RunRow
    nodes: dict[str, NodeRow]
    sensors: tuple[SensorsRow, ...]
    counters: dict[str, CountersRow]
    absent: tuple[AbsentRow, ...]
    skips: tuple[SkipRow, ...]
    hpcc: tuple[HpccRow, ...]
    memlat: tuple[MemlatRow, ...]
    fixedwork: tuple[FixedworkRow, ...]
    events: tuple[EventRow, ...]

    def expected(self, node: str) -> frozenset[Part]:
        """Return the expected programs of a node; only `sensors` if it never answered.

        HPCC has each socket to itself where there are several.
        """
        parts: set[Part] = {("sensors", None)}
        if place := self.nodes.get(node):
            sockets = range(place.sockets) if place.is_bound else (None,)
            parts.add(("hpcc", None))
            if len(sockets) > 1:
                parts |= {("hpcc", socket) for socket in sockets}
            if self.run.no_memlat is None:
                parts |= {("memlat", socket) for socket in sockets}
            if self.run.no_fixedwork is None:
                parts.add(("fixedwork", None))
        return frozenset(parts)

    def passed(self, nodes: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Count for each node the programs that ended well, and those expected."""
        done = self._done()
        return {node: (len(done[node]), len(self.expected(node))) for node in nodes}

    def verify_complete(self, nodes: Sequence[str]) -> None:
        """Check that every number of every delivered node exists or is known to miss.

        Raises ParseError for a program that has neither numbers nor an event, for one
        that has both, and for nodes that were not delivered.
        """
        done = self._done()
        events: dict[str, set[Part]] = defaultdict(set)
        for event in self.events:
            events[event.node].add(event.part)
        gone = {event.node for event in self.events if event.event == "left_out"}
        known = {*done, *self.nodes, *events}
        if foreign := sorted(known.difference(nodes)):
            raise ParseError(0, f"{foreign[0]} is none of the {len(nodes)} nodes")
        for node in nodes:
            expected = self.expected(node)
            if both := (done[node] & events[node]) or (done[node] - expected):
                raise ParseError(0, f"{node}: {_text(both)}: not expected to pass")
            missing = expected - done[node] - events[node]
            if missing and node not in gone:
                reason = f"{node}: {_text(missing)}: neither numbers nor why"
                raise ParseError(0, reason)
        self._verify_memlat()
        self._verify_sensors()

    def _done(self) -> dict[str, set[Part]]:
        done: dict[str, set[Part]] = defaultdict(set)
        for node in self.counters:
            done[node].add(("sensors", None))
        rows: tuple[HpccRow | MemlatRow | FixedworkRow, ...]
        rows = (*self.hpcc, *self.memlat, *self.fixedwork)
        for row in rows:
            done[row.node].add((row.type, row.socket))
        return done

    def _verify_memlat(self) -> None:
        """Check that every size of every socket exists."""
        all_sizes: dict[tuple[str, int | None], list[int]] = defaultdict(list)
        for row in self.memlat:
            all_sizes[row.node, row.socket].append(row.size_bytes)
        ends = (self.run.memlat_min_bytes, self.run.memlat_max_bytes)
        for (node, socket), sizes in all_sizes.items():
            check_sizes(sizes)
            if (sizes[0], sizes[-1]) != ends:
                raise ParseError(0, f"{node}: memlat on socket {socket}: sizes {sizes}")

    def _verify_sensors(self) -> None:
        """Check that the sensors of every node were read idle and under load."""
        readings = {(row.node, row.phase, row.socket) for row in self.sensors}
        loaded = {row.node for row in self.hpcc if row.socket is None}
        for node in self.counters:
            phases = ("quiet", "hpcc") if node in loaded else ("quiet",)
            for phase, socket in product(phases, range(self.nodes[node].sockets)):
                if (node, phase, socket) not in readings:
                    reason = f"{node}: no readings of socket {socket} in {phase}"
                    raise ParseError(0, reason)


def parse_nodesweep(text: str) -> NodeSweep:
    """Read a whole sweep.

    Raises ParseError, with the line, on anything but one sweep from its first row to
    its last: cut, repeated or unknown rows, numbers that are negative, not finite or
    contradict each other.
    """
    rows = _rows(text)
    (run,), (end,) = rows["run"], rows["end"]
    sweep = NodeSweep(
        run=run,
        nodes={row.node: row for row in rows["node"]},
        sensors=tuple(rows["sensors"]),
        counters={row.node: row for row in rows["counters"]},
        absent=tuple(rows["absent"]),
        skips=tuple(rows["skip"]),
        hpcc=tuple(rows["hpcc"]),
        memlat=tuple(rows["memlat"]),
        fixedwork=tuple(rows["fixedwork"]),
        events=tuple(rows["event"]),
    )
    done = sweep._done()
    for name, stated, counted in (
        ("passed", end.passed, sum(map(len, done.values()))),
        ("events", end.events, len(sweep.events)),
    ):
        if stated != counted:
            raise ParseError(0, f"{name}: {stated} at the end, found {counted}")
    if unknown := sorted(done.keys() - sweep.nodes.keys()):
        raise ParseError(0, f"{unknown[0]} has numbers, and no row of its own")
    return sweep


def _rows(text: str) -> dict[str, list[Any]]:
    """Decode every line; the first must be `run`, the last `end`."""
    decoders = {kind: Decoder(row_type) for kind, (row_type, _) in _TYPES.items()}
    rows: dict[str, list[Any]] = defaultdict(list)
    keys: set[str] = set()
    last = None
    line = 0
    for line, content in enumerate(text.splitlines(), start=1):
        values = decode_object(line, content)
        kind = values.get("type")
        if not isinstance(kind, str) or kind not in _TYPES:
            raise ParseError(line, f"a row of type {kind!r}")
        if (kind == "run") != (line == 1) or last == "end":
            raise ParseError(line, f"a row of type {kind!r} after {last!r}")
        rows[kind].append(decoders[kind](line, values))
        key = f"{kind} of {', '.join(repr(values[name]) for name in _TYPES[kind][1])}"
        if key in keys:
            raise ParseError(line, f"{key}: a second time")
        keys.add(key)
        last = kind
    if last != "end":
        raise ParseError(line, "the sweep has no end")
    return rows


def _text(parts: set[Part] | frozenset[Part]) -> str:
    texts = [
        program if socket is None else f"{program} on socket {socket}"
        for program, socket in parts
    ]
    return ", ".join(sorted(texts))
