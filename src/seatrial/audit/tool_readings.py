"""Readings from the programs that node.sh asked, by the parsers of their output."""

from collections.abc import Iterator

from seatrial.audit.board_tools import BOARD_TOOLS
from seatrial.audit.flash_tools import FLASH_TOOLS
from seatrial.audit.link_tools import LINK_TOOLS
from seatrial.audit.raw import Raw
from seatrial.audit.reading import Reading
from seatrial.audit.roce_tools import ROCE_TOOLS
from seatrial.audit.tool import Tool
from seatrial.parsers.errors import ParseError

TOOLS: dict[str, Tool] = {**FLASH_TOOLS, **LINK_TOOLS, **ROCE_TOOLS, **BOARD_TOOLS}
"""By the name of a source; of a key that several tell, the last one counts."""


def tool_readings(raw: Raw) -> Iterator[Reading]:
    """Yield the readings of all tools; what a tool cannot tell is unknown."""
    for name, tool in TOOLS.items():
        for block in raw.of(name):
            reason = block.trouble
            found: list[Reading] = []
            if not reason:
                try:
                    found = [*tool.read(block, raw)]
                except ParseError as error:
                    reason = f"{block.tool}: {error}"
            yield from found
            if reason:
                for kind, subject in tool.subjects(block, raw):
                    for key in tool.keys:
                        yield Reading(kind, subject, key, None, block, reason=reason)
