"""The file of `seatrial.checks.nodesweep`: JSON Lines of all nodes, each by itself."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

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

_TYPES: Mapping[str, type[Any]] = {
    "run": RunRow,
    "node": NodeRow,
    "sensors": SensorsRow,
    "counters": CountersRow,
    "absent": AbsentRow,
    "skip": SkipRow,
    "hpcc": HpccRow,
    "memlat": MemlatRow,
    "fixedwork": FixedworkRow,
    "event": EventRow,
    "end": EndRow,
}
_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "run": lambda row: "",
    "node": lambda row: row.node,
    "sensors": lambda row: (row.node, row.phase, row.socket),
    "counters": lambda row: row.node,
    "absent": lambda row: (row.node, row.what),
    "skip": lambda row: (row.node, row.program),
    "hpcc": lambda row: (row.node, row.socket),
    "memlat": lambda row: (row.node, row.socket, row.size_bytes),
    "fixedwork": lambda row: row.node,
    "event": lambda row: (row.node, row.part),
    "end": lambda row: "",
}
"""What makes a row of each type the only one of its kind."""

R = TypeVar("R")


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
                raise ParseError(
                    0, f"{node}: {_text(missing)}: neither numbers nor why"
                )
        self._verify_memlat()
        self._verify_sensors()

    def _done(self) -> dict[str, set[Part]]:
        done: dict[str, set[Part]] = defaultdict(set)
        for node in self.counters:
            done[node].add(("sensors", None))
        for hpcc in self.hpcc:
            done[hpcc.node].add(("hpcc", hpcc.socket))
        for memlat in self.memlat:
            done[memlat.node].add(("memlat", memlat.socket))
        for fixedwork in self.fixedwork:
            done[fixedwork.node].add(("fixedwork", None))
        return done

    def _verify_memlat(self) -> None:
        """Check that every size of every socket exists."""
        sizes: dict[tuple[str, int | None], list[int]] = defaultdict(list)
        for row in self.memlat:
            sizes[row.node, row.socket].append(row.size_bytes)
        for (node, socket), found in sizes.items():
            check_sizes(found)
            ends = (self.run.memlat_min_bytes, self.run.memlat_max_bytes)
            if (found[0], found[-1]) != ends:
                raise ParseError(0, f"{node}: memlat on socket {socket}: sizes {found}")

    def _verify_sensors(self) -> None:
        """Check that the sensors of every node were read idle and under load."""
        found = {(row.node, row.phase, row.socket) for row in self.sensors}
        loaded = {row.node for row in self.hpcc if row.socket is None}
        for node in self.counters:
            phases = ("quiet", "hpcc") if node in loaded else ("quiet",)
            for phase in phases:
                for socket in range(self.nodes[node].sockets):
                    if (node, phase, socket) not in found:
                        reason = f"{node}: no readings of socket {socket} in {phase}"
                        raise ParseError(0, reason)


def parse_nodesweep(text: str) -> NodeSweep:
    """Read a whole sweep.

    Raises ParseError, with the line, on anything but one sweep from its first row to
    its last: cut, repeated or unknown rows, numbers that are negative, not finite or
    contradict each other.
    """
    found = _rows(text)
    run, end = _only(found, "run"), _only(found, "end")
    events = tuple(found["event"])
    sweep = NodeSweep(
        run=run,
        nodes={row.node: row for row in found["node"]},
        sensors=tuple(found["sensors"]),
        counters={row.node: row for row in found["counters"]},
        absent=tuple(found["absent"]),
        skips=tuple(found["skip"]),
        hpcc=tuple(found["hpcc"]),
        memlat=tuple(found["memlat"]),
        fixedwork=tuple(found["fixedwork"]),
        events=events,
    )
    passed = sum(map(len, sweep._done().values()))
    for name, said, counted in (
        ("passed", end.passed, passed),
        ("events", end.events, len(events)),
    ):
        if said != counted:
            raise ParseError(0, f"{name}: {said} at the end, found {counted}")
    if unknown := sorted(sweep._done().keys() - sweep.nodes.keys()):
        raise ParseError(0, f"{unknown[0]} has numbers, and no row of its own")
    return sweep


def _rows(text: str) -> dict[str, list[Any]]:
    """Decode every line; the first must be `run`, the last `end`."""
    decoders = {kind: Decoder(row_type) for kind, row_type in _TYPES.items()}
    found: dict[str, list[Any]] = defaultdict(list)
    seen: set[tuple[str, Any]] = set()
    last = None
    line = 0
    for line, content in enumerate(text.splitlines(), start=1):
        values = decode_object(line, content)
        kind = values.get("type")
        if not isinstance(kind, str) or kind not in _TYPES:
            raise ParseError(line, f"a row of type {kind!r}")
        if (kind == "run") != (line == 1) or last == "end":
            raise ParseError(line, f"a row of type {kind!r} after {last!r}")
        row = decoders[kind](line, values)
        _verify(line, row)
        key = (kind, _KEYS[kind](row))
        if key in seen:
            raise ParseError(line, f"{kind} of {key[1]!r}: a second time")
        seen.add(key)
        found[kind].append(row)
        last = kind
    if last != "end":
        raise ParseError(line, "the sweep has no end")
    return found


def _verify(line: int, row: Any) -> None:
    verify = getattr(row, "verify", None)
    if verify is None:
        return
    try:
        verify()
    except ValueError as error:
        raise ParseError(line, str(error)) from None


def _only(found: dict[str, list[Any]], kind: str) -> Any:
    (row,) = found[kind]
    return row


def _text(parts: set[Part] | frozenset[Part]) -> str:
    texts = [
        program if socket is None else f"{program} on socket {socket}"
        for program, socket in parts
    ]
    return ", ".join(sorted(texts))
