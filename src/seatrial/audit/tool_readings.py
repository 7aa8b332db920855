"""Readings of HCAs from mstflint and mstconfig, which need root."""

from collections.abc import Callable, Iterator

from seatrial.audit.raw import Block, Raw
from seatrial.audit.reading import Reading, unknown
from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.mstconfig import NvValue, parse_mstconfig_query
from seatrial.parsers.hardware.mstflint import parse_mstflint_query


def tool_readings(raw: Raw) -> Iterator[Reading]:
    """Yield the readings of all tools; what a tool cannot tell is unknown."""
    for name, (key, read) in _TOOLS.items():
        for block in raw.of(name):
            if block.status != 0:
                yield unknown("hca", block.subject, key, block)
                continue
            try:
                found = [*read(block)]
            except ParseError as error:
                reason = f"{block.tool}: {error}"
                found = [Reading("hca", block.subject, key, None, block, reason=reason)]
            yield from found


def _mstflint(block: Block) -> Iterator[Reading]:
    query = parse_mstflint_query(block.text)
    running = query.running_version or query.stored_version
    pending = None if running == query.stored_version else query.stored_version
    values = {"psid": query.psid, "part": query.part_number}
    for key, value in values.items():
        if value is not None:
            yield Reading("hca", block.subject, key, value, block)
    yield Reading("hca", block.subject, "firmware", running, block, pending=pending)


def _mstconfig(block: Block) -> Iterator[Reading]:
    query = parse_mstconfig_query(block.text)
    if query.part is not None:
        yield Reading("hca", block.subject, "part", query.part, block)
    for name, parameter in query.parameters.items():
        current, after = _written(parameter.current), _written(parameter.next)
        pending = None if after == current else after
        key = f"nvconfig.{name}"
        yield Reading("hca", block.subject, key, current, block, pending=pending)


def _written(value: NvValue | None) -> str | None:
    """Return a value as mstconfig prints it."""
    if value is None:
        return None
    if value.number is None or value.text == str(value.number):
        return value.text
    return f"{value.text}({value.number})"


_TOOLS: dict[str, tuple[str, Callable[[Block], Iterator[Reading]]]] = {
    "mstflint": ("firmware.stored", _mstflint),
    "mstconfig": ("nvconfig.all", _mstconfig),
}
"""By the name of a source: the key that is unknown without it, and its reader."""
