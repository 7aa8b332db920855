"""Rows of a single node, from its raw output."""

from collections.abc import Iterable

from seatrial.audit.expected import expected, rails
from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.readings import readings
from seatrial.audit.rows import NodeClass, Row, rows_of


def node_rows(text: str, declaration: HardwareFile, node_class: str) -> list[Row]:
    """Compare a node with the declaration; SeatrialError if its output is not whole."""
    names = rails(declaration, node_class)
    node = NodeClass(node_class, ("",), tuple(expected(declaration, node_class)), names)
    return rows_of(node, {"": [*readings(text)]}, {})


def settings_drift(
    text: str, declaration: HardwareFile, node_class: str, keys: Iterable[str]
) -> list[str]:
    """Return what of `keys` a node has otherwise than declared: `KEY: 1 -> 0`.

    `text` is the raw output of node.sh. What is unknown is left out.
    """
    rows = {
        f"{row.subject} {row.key}": row
        for row in node_rows(text, declaration, node_class)
    }
    found = []
    for key in keys:
        row = rows.get(key)
        if row is not None and row.actual is not None and row.verdict != "ok":
            found.append(f"{key}: {row.actual} -> {row.declared}")
    return found
