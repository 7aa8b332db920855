"""Increase of the counters of ports between two readings of nodes or of the fabric.

Counters are never cleared here. One that became smaller was cleared by somebody else,
or wrapped: then what it shows is the least that it counted.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from seatrial.fabric.counters import Grown, rate_below
from seatrial.fabric.node_counters import NodeCounters, Port
from seatrial.fabric.quantities import (
    BITS_RECEIVED,
    BITS_SENT,
    ERRORS,
    GREATEST,
    OF_BITS,
    QUANTITIES,
)

RESTART = "the node was started anew"
_HALF, _WHOLE = 1 << 31, 1 << 32


class PortGrowth(Struct, frozen=True, kw_only=True):
    """The counts of a port between two readings, `seconds` apart.

    `counts` has each quantity that the port counts. Bits are None if it does not count
    them. `cleared` and `wrapped` name counters that became smaller, `full` quantities
    whose counter stopped: their counts are the least that happened. `missing` is why
    there are none, '' if there are.
    """

    node: str
    port: str = ""
    source: str = ""
    start_time: float | None = None
    seconds: float | None = None
    bits_received: int | None = None
    bits_sent: int | None = None
    counts: Mapping[str, int] = {}
    cleared: tuple[str, ...] = ()
    wrapped: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    missing: str = ""

    @property
    def errors(self) -> int | None:
        """The count of all errors; None if the port counts none."""
        counts = [self.counts[name] for name in ERRORS if name in self.counts]
        return sum(counts) if counts else None

    @property
    def bit_errors(self) -> int | None:
        """The count that bit errors raise; None if the port has none."""
        name = self.of_bits
        return None if name is None else self.counts[name]

    @property
    def of_bits(self) -> str | None:
        """The quantity that bit errors raise."""
        return next((name for name in OF_BITS if name in self.counts), None)

    def bit_error_rate_below(self, confidence: float = 0.95) -> float | None:
        """Return the upper bound of the bit error rate; None if nothing bounds it."""
        count = self.bit_errors
        if count is None or not self.bits_received or self.cleared:
            return None
        if self.of_bits in self.full:
            return None
        return rate_below(count, self.bits_received, confidence)


def growth_of_node(
    node: str, before: NodeCounters, after: NodeCounters
) -> Iterator[PortGrowth]:
    """Yield what each port of a node counted; ports that are down twice are left out.

    A port that only one of the readings has is missing.
    """
    restarted = before.boot != after.boot
    for name in sorted(before.ports.keys() | after.ports.keys()):
        first, last = before.ports.get(name), after.ports.get(name)
        if first is None or last is None:
            moment = "start" if first is None else "end"
            yield PortGrowth(node=node, port=name, missing=f"not there at the {moment}")
        elif first.up or last.up:
            ends = before.time, after.time
            yield _growth(node, name, first, last, ends, restarted=restarted)


def growth_of_fabric(changes: list[Grown], start_time: float) -> Iterator[PortGrowth]:
    """Yield what each port of the fabric counted by ibqueryerrors."""
    by_query = {of.by_query: name for name, of in QUANTITIES.items() if of.by_query}
    for one in changes:
        yield PortGrowth(
            node=one.end.device,
            port=one.end.port,
            source="ibqueryerrors",
            start_time=start_time,
            seconds=one.seconds,
            bits_received=one.bits,
            counts={own: one.errors.get(name, 0) for name, own in by_query.items()},
            cleared=tuple(by_query.get(name, name) for name in one.cleared),
            full=tuple(by_query[name] for name in one.full),
        )


def _growth(
    node: str,
    port: str,
    before: Port,
    after: Port,
    ends: tuple[float, float],
    *,
    restarted: bool,
) -> PortGrowth:
    start, end = ends
    if end <= start:
        why = f"the clock of the node went back by {start - end:.3g} s"
        return PortGrowth(node=node, port=port, missing=why)
    pair = _Pair(before.counters, after.counters)
    counts: dict[str, int] = {}
    full = []
    for name, quantity in QUANTITIES.items():
        parts = next(filter(pair.have, map(_parts, quantity.counters)), None)
        if parts is not None:
            counts[name] = sum(map(pair.grown, parts))
            if any(after.counters[part] == GREATEST.get(part) for part in parts):
                full.append(name)
    bits = [pair.bits(of) for of in (BITS_RECEIVED, BITS_SENT)]
    if not counts and bits[0] is None:
        why = after.trouble or before.trouble or "it has no counters"
        return PortGrowth(node=node, port=port, missing=why)
    return PortGrowth(
        node=node,
        port=port,
        source=after.source,
        start_time=start,
        seconds=end - start,
        bits_received=bits[0],
        bits_sent=bits[1],
        counts=counts,
        cleared=tuple([RESTART] * restarted + pair.cleared),
        wrapped=tuple(pair.wrapped),
        full=tuple(full),
    )


def _parts(counter: str) -> tuple[str, ...]:
    return tuple(counter.split(" + "))


class _Pair:
    """Two readings of a port's counters; it notes those that became smaller."""

    def __init__(self, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        self.before, self.after = before, after
        self.cleared: list[str] = []
        self.wrapped: list[str] = []

    def have(self, names: tuple[str, ...]) -> bool:
        """Return True if both readings have all of these counters."""
        return all(name in self.before and name in self.after for name in names)

    def grown(self, name: str) -> int:
        """Return the increase of a counter, the least if it became smaller."""
        first, last = self.before[name], self.after[name]
        if last >= first:
            return last - first
        # Error counters stop at their greatest value, counters of data may wrap.
        of_data = name in BITS_RECEIVED or name in BITS_SENT
        wraps = of_data and _HALF <= first < _WHOLE
        (self.wrapped if wraps else self.cleared).append(name)
        return last

    def bits(self, factors: Mapping[str, int]) -> int | None:
        """Return the bits that passed by the first counter that both readings have."""
        for name, factor in factors.items():
            if self.have((name,)):
                full = self.after[name] == GREATEST.get(name)
                return None if full else self.grown(name) * factor
        return None
