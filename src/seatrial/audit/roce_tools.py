"""Programs that tell the RoCE settings of an Ethernet port: dcb, and OFED's mlnx_qos.

Where both speak, mlnx_qos wins: only it knows what the port trusts.
"""

from collections.abc import Iterable, Iterator

from seatrial.audit.hca_readings import interface_addresses
from seatrial.audit.raw import Block, Raw
from seatrial.audit.reading import Reading
from seatrial.audit.tool import Tool
from seatrial.parsers.hardware.dcb import (
    parse_dcb_app,
    parse_dcb_buffer,
    parse_dcb_pfc,
)
from seatrial.parsers.hardware.mlnx_qos import parse_mlnx_qos


def _hca(block: Block, raw: Raw) -> list[tuple[str, str]]:
    """Return the HCA of an interface; nothing if it has several."""
    addresses = interface_addresses(raw)
    address = addresses.get(block.subject, "")
    alone = [*addresses.values()].count(address) == 1
    return [("hca", address)] if alone else []


def _values(
    block: Block, raw: Raw, values: dict[str, Iterable[object]]
) -> Iterator[Reading]:
    for kind, subject in _hca(block, raw):
        for key, parts in values.items():
            text = " ".join(map(str, parts)) or "none"
            yield Reading(kind, subject, f"roce.{key}", text, block)


def sizes(values: Iterable[int]) -> list[int]:
    """Return sizes of buffers up to the last one that is not 0."""
    found = [*values]
    while found and not found[-1]:
        found.pop()
    return found


def _pfc(block: Block, raw: Raw) -> Iterator[Reading]:
    bits = parse_dcb_pfc(block.text).prio_pfc
    priorities = [number for number, bit in enumerate(bits) if bit]
    yield from _values(block, raw, {"pfc": priorities})


def _app(block: Block, raw: Raw) -> Iterator[Reading]:
    pairs = parse_dcb_app(block.text).dscp_prio
    trust = "dscp" if pairs else "pcp"  # drivers trust DSCP once there is an entry
    maps = {f"dscp.{dscp}": [priority] for dscp, priority in pairs}
    yield from _values(block, raw, {"trust": [trust], **maps})


def _buffer(block: Block, raw: Raw) -> Iterator[Reading]:
    found = sizes(parse_dcb_buffer(block.text).buffer_size)
    yield from _values(block, raw, {"buffers": found})


def _mlnx_qos(block: Block, raw: Raw) -> Iterator[Reading]:
    found = parse_mlnx_qos(block.text)
    values: dict[str, Iterable[object]] = {"pfc": found.pfc}
    values |= {f"dscp.{dscp}": [prio] for dscp, prio in sorted(found.dscp.items())}
    if found.trust:
        values["trust"] = [found.trust]
    if found.buffers:
        values["buffers"] = sizes(found.buffers)
    yield from _values(block, raw, values)


ROCE_TOOLS = {
    "dcb_pfc": Tool(("roce.pfc",), _pfc, _hca),
    "dcb_app": Tool(("roce.trust",), _app, _hca),
    "dcb_buffer": Tool(("roce.buffers",), _buffer, _hca),
    "mlnx_qos": Tool(("roce.pfc", "roce.trust", "roce.buffers"), _mlnx_qos, _hca),
}
