"""All readings of a node, from the sources that `node.sh` asked."""

from collections.abc import Iterator

from seatrial.audit.driver_tools import driver_readings
from seatrial.audit.hca_readings import hca_readings
from seatrial.audit.node_readings import node_readings
from seatrial.audit.raw import Raw
from seatrial.audit.reading import Reading
from seatrial.audit.tool_readings import tool_readings


def readings(text: str) -> Iterator[Reading]:
    """Yield the readings of a node's raw output; of a key, the last one counts.

    Raises SeatrialError if the output is not complete.
    """
    raw = Raw(text)
    yield from node_readings(raw)
    yield from hca_readings(raw)
    yield from tool_readings(raw)
    yield from driver_readings(raw)
