"""Error counters of the ports of a fabric: readings, what grew, and bit error rates.

Counters are never cleared here. A counter that became smaller was cleared by somebody
else, or its switch started anew: then what it counts since is a lower bound.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from seatrial.errors import SeatrialError
from seatrial.fabric.quantities import GREATEST, QUANTITIES
from seatrial.fabric.records import End, Fabric, Link, Source
from seatrial.fabric.tools import Output, run_tool
from seatrial.limits import TABLE_SIZE
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.ibqueryerrors import (
    Counts,
    Data,
    Errors,
    Port,
    parse_data,
    parse_errors,
)

SCHEMA = 1

DATA = ("ibqueryerrors", "--counters")
ERRORS_OF = ("ibqueryerrors", "--data", "--threshold-file", "/dev/null")
"""Commands for the data of all ports, and for all errors of ports that have any."""

_Parsed = TypeVar("_Parsed")

ERRORS: Mapping[str, int] = {
    one.by_query: GREATEST[counter]
    for one in QUANTITIES.values()
    for counter in one.counters
    if one.by_query and counter in GREATEST
}
"""Errors by their names in ibqueryerrors, and the value at which a counter stops."""

OF_BITS = "SymbolErrorCounter"
"""The counter that bit errors raise."""

_WORD_BITS = 32
"""PortRcvData counts words of 4 octets (IBTA 16.1.4.11)."""


class PortCounts(Struct, frozen=True):
    """The counters of a port: errors by name, those of 0 left out; words received."""

    end: End
    errors: dict[str, int]
    received_words: int


class Reading(Struct, frozen=True):
    """The counters of all ports at a time (UTC seconds)."""

    time: float
    ports: tuple[PortCounts, ...]
    sources: tuple[Source, ...] = ()
    schema: int = SCHEMA


class Grown(Struct, frozen=True):
    """The increase of a port's counters between two readings.

    `seconds` lie between them. `errors` has the counters that grew, `bits` were
    received. `cleared` names counters that became smaller: they count since then only.
    `full` names those that stopped at their greatest value: there may be more.
    """

    end: End
    seconds: float
    errors: dict[str, int]
    bits: int
    cleared: tuple[str, ...] = ()
    full: tuple[str, ...] = ()

    def bit_error_rate(self, confidence: float = 0.95) -> float | None:
        """Return the upper bound of the bit error rate; None if no bit came.

        A counter that is full bounds nothing: then it is None, too.
        """
        if not self.bits or OF_BITS in self.full:
            return None
        return rate_below(self.errors.get(OF_BITS, 0), self.bits, confidence)


def rate_below(count: int, exposure: float, confidence: float = 0.95) -> float:
    """Return the upper bound of a rate, from a `count` of events.

    Exact for a Poisson count: half the quantile of chi-square with 2 k + 2 degrees of
    freedom, over the exposure (bits, hours); 3 / exposure for no event at 95 %.
    """
    from scipy.special import gammaincinv

    return float(gammaincinv(count + 1, confidence)) / exposure


def reading_of(
    fabric: Fabric,
    data: Counts,
    errors: Counts,
    nodes: int,
    at: float,
    sources: Iterable[Source] = (),
) -> Reading:
    """Name the ports of data and errors; those that the fabric lacks are left out.

    Raises SeatrialError if a device of the fabric is missing in the data, or if errors
    of fewer `nodes` were read.
    """
    ends = ends_by_guid(fabric)
    asked = {guid for guid, _ in data}
    known = {device.guid: device.name for device in fabric.devices if device.guid}
    if missing := sorted({*known} - asked):
        raise SeatrialError(
            f"counters of {len(asked)} devices, {len(known)} are in the fabric; "
            f"{known[missing[0]]} is missing. Discover the fabric again, or read the "
            "counters again."
        )
    if nodes < len(known):
        raise SeatrialError(
            f"errors of {nodes} devices were read, {len(known)} are in the "
            "fabric. Read the counters again."
        )
    ports = []
    for port, counts in data.items():
        if (end := ends.get(port)) is not None:
            found = errors.get(port, {})
            ports.append(
                PortCounts(
                    end,
                    {name: found[name] for name in ERRORS if found.get(name)},
                    counts.get("PortRcvData", 0),
                )
            )
    return Reading(at, tuple(sorted(ports, key=lambda one: one.end)), tuple(sources))


def by_device(errors: Errors, data: Data) -> Counts:
    """Return errors by the GUID of the device, as data have it.

    Errors of HCAs have the GUID of the port. If no device has it, the name tells the
    device. Raises SeatrialError if it does not.
    """
    guids: dict[str, list[str]] = defaultdict(list)
    for guid, name in data.names.items():
        guids[name].append(guid)
    found = {}
    for (guid, number), counts in errors.counts.items():
        name = errors.names[guid]
        owners = [guid] if guid in data.names else guids[name]
        if len(owners) != 1:
            raise SeatrialError(
                f"errors of port {number} of {name!r} (GUID {guid}): expected one "
                f"device of this name, got {len(owners)}. Give each HCA a node "
                "description of its own (rdma-ndd), or read the counters again."
            )
        found[owners[0], number] = counts
    return found


def counted(fabric: Fabric) -> Reading:
    """Read the counters of all ports by ibqueryerrors, here and now.

    If an answer is not whole, all are read once more: on a busy fabric single queries
    get no answer in time. Raises SeatrialError if the tool fails, or as `counted_in`
    for the second reading.
    """
    outputs = run_tool(*DATA), run_tool(*ERRORS_OF)
    try:
        return counted_in(fabric, *outputs, time.time())
    except SeatrialError:
        return counted_in(fabric, run_tool(*DATA), run_tool(*ERRORS_OF), time.time())


def counted_in(
    fabric: Fabric, data: Sequence[Output], errors: Sequence[Output], at: float
) -> Reading:
    """Join the outputs of all subnets, read at `at` (UTC seconds).

    Raises SeatrialError as `reading_of` and `by_device`, or if an output is damaged.
    """
    counts: dict[Port, Mapping[str, int]] = {}
    found: dict[Port, Mapping[str, int]] = {}
    nodes = 0
    for of_data, of_errors in zip(data, errors, strict=False):
        read = _parsed(parse_data, of_data)
        answer = _parsed(parse_errors, of_errors)
        counts |= read.counts
        found |= by_device(answer, read)
        nodes += answer.nodes
    sources = [one.source for one in (*data, *errors)]
    return reading_of(fabric, counts, found, nodes, at, sources)


def _parsed(parse: Callable[[str], _Parsed], output: Output) -> _Parsed:
    try:
        return parse(output.text)
    except ParseError as error:
        said = "; ".join(output.complaints[:2])
        more = f" ({said})" if said else ""
        raise SeatrialError(f"{output.where}: {error}{more}") from error


def ends_by_guid(fabric: Fabric) -> dict[tuple[str, str], End]:
    """Return the connected ports by GUID of their device and number."""
    guids = {(device.name, device.hca): device.guid for device in fabric.devices}
    hosts = {one.name for one in fabric.devices if one.kind == "host"}
    ends = {}
    for link in fabric.links:
        for end in (link.a, link.b):
            hca, _, number = end.port.rpartition(":")
            device = (end.device, hca if end.device in hosts else "")
            if guid := guids.get(device):
                ends[guid, number] = end
    return ends


def grown(before: Reading, after: Reading) -> list[Grown]:
    """Return what each port counted; SeatrialError if the readings are out of order.

    A port that only one of them has is left out.
    """
    seconds = after.time - before.time
    if seconds <= 0:
        raise SeatrialError(
            f"the second reading is {-seconds:g} s older than the first; exchange them"
        )
    earlier = {port.end: port for port in before.ports}
    return [
        _grown(earlier[port.end], port, seconds)
        for port in after.ports
        if port.end in earlier
    ]


def _grown(before: PortCounts, after: PortCounts, seconds: float) -> Grown:
    cleared = [
        name
        for name, count in before.errors.items()
        if after.errors.get(name, 0) < count
    ]
    more = {
        name: count - (0 if name in cleared else before.errors.get(name, 0))
        for name, count in after.errors.items()
    }
    words = after.received_words - before.received_words
    if words < 0:
        cleared.append("PortRcvData")
        words = after.received_words
    return Grown(
        after.end,
        seconds,
        {name: count for name, count in more.items() if count},
        words * _WORD_BITS,
        tuple(cleared),
        tuple(name for name, count in after.errors.items() if count == ERRORS[name]),
    )


def errors_of_links(links: Iterable[Link], changes: Iterable[Grown]) -> list[float]:
    """Return for each link the symbol errors that both of its ends counted."""
    counts = {change.end: change.errors.get(OF_BITS, 0) for change in changes}
    return [float(counts.get(one.a, 0) + counts.get(one.b, 0)) for one in links]


def write_reading(file: Path, reading: Reading) -> None:
    """Write a reading; OSError if that fails."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(reading) + b"\n")


def read_reading(file: Path) -> Reading:
    """Read the file of a reading; SeatrialError if it is damaged, or a later one."""
    try:
        content = file.read_bytes()
        TABLE_SIZE.check(len(content), file)
        reading = msgspec.json.decode(content, type=Reading)
    except (OSError, msgspec.MsgspecError) as error:
        raise SeatrialError(
            f"{file}: {error}; expected a file of `seatrial fabric watch --output`"
        ) from error
    if reading.schema > SCHEMA:
        raise SeatrialError(
            f"{file}: schema {reading.schema}, expected at most {SCHEMA}. Update "
            "Seatrial."
        )
    return reading
