"""State of the link of an HCA, as `mlxlink --json` and `mstlink --json` print it.

Source of the format: Mellanox/mstflint, mlxlink/modules/printutil/mlxlink_record.cpp.
"""

from dataclasses import dataclass

from msgspec import Struct, field

from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.printed_text import read_json, whole_lines

_NONE = ("", "N/A", "No issue was observed")


class _Link(Struct):
    state: str = field(name="State")
    fec: str = field(name="FEC", default="")


class _Trouble(Struct):
    recommendation: str = field(name="Recommendation", default="")


class _Sections(Struct):
    link: _Link | None = field(name="Operational Info", default=None)
    trouble: _Trouble = field(name="Troubleshooting Info", default_factory=_Trouble)


class _Result(Struct):
    output: _Sections = field(default_factory=_Sections)


class _Status(Struct):
    message: str = "no link"


class _Output(Struct):
    result: _Result | None = None
    status: _Status = field(default_factory=_Status)


@dataclass(frozen=True)
class MlxLink:
    """A link: its `state` as printed (`Active`), its error correction, and its trouble.

    `fec` is None if the link is down; `trouble` is None unless the firmware sees any.
    """

    state: str
    fec: str | None
    trouble: str | None


def parse_mlxlink(text: str) -> MlxLink:
    """Parse the JSON; ParseError with its message if it has no link."""
    whole_lines(text)
    output = read_json(text, _Output)
    sections = output.result.output if output.result else _Sections()
    if sections.link is None:
        raise ParseError(0, f"mlxlink: {output.status.message}")
    fec, trouble = sections.link.fec, sections.trouble.recommendation.rstrip(".")
    return MlxLink(
        state=sections.link.state,
        fec=None if fec in _NONE else fec,
        trouble=None if trouble in _NONE else trouble,
    )
