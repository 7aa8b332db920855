"""Data centre bridging of a port, as `dcb -j pfc|app|buffer show dev X` prints it.

Source of the format: iproute2, dcb/dcb_pfc.c, dcb_app.c, dcb_buffer.c.
"""

from typing import Annotated

from msgspec import Meta, Struct

from seatrial.parsers.hardware.printed_text import read_json, whole_lines

_Priority = Annotated[int, Meta(ge=0, le=7)]
_Dscp = Annotated[int, Meta(ge=0, le=63)]


class DcbPfc(Struct, frozen=True):
    """Flow control by priority."""

    prio_pfc: Annotated[tuple[bool, ...], Meta(min_length=8, max_length=8)]


class DcbApp(Struct, frozen=True):
    """Priorities by DSCP, as pairs; empty if the port trusts PCP."""

    dscp_prio: tuple[tuple[_Dscp, _Priority], ...] = ()


class DcbBuffer(Struct, frozen=True):
    """Sizes of the receive buffers in bytes."""

    buffer_size: tuple[Annotated[int, Meta(ge=0)], ...]


def parse_dcb_pfc(text: str) -> DcbPfc:
    """Parse flow control; ParseError if the JSON is not whole."""
    whole_lines(text)
    return read_json(text, DcbPfc)


def parse_dcb_app(text: str) -> DcbApp:
    """Parse the table of applications; ParseError if the JSON is not whole."""
    whole_lines(text)
    return read_json(text, DcbApp)


def parse_dcb_buffer(text: str) -> DcbBuffer:
    """Parse the buffers; ParseError if the JSON is not whole."""
    whole_lines(text)
    return read_json(text, DcbBuffer)
