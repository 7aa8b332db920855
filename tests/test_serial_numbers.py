"""Placeholders of firmware are no serial numbers."""

import pytest

from seatrial.audit.raw import Block
from seatrial.audit.reading import Reading
from seatrial.audit.rows import NodeClass, rows_of
from seatrial.model.serial_numbers import is_placeholder

PLACEHOLDERS = (
    *("To be filled by O.E.M.", "To Be Filled By O.E.M.", "Default string"),
    *("Not Specified", "System Serial Number", "0123456789", "123456789"),
    *("01234567890123456789AB", "None", "N/A", "n/a", "0", "00000000", "0000-0000"),
    *("..............", "XXXXXXXX", " ", "Chassis Serial Number", "O.E.M."),
)


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_placeholders(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize(
    "text",
    ["ABC1234", "S00001", "MT2101X00001", "0001", "1230", "X1", "NA12345", "A"],
)
def test_serial_numbers(text: str) -> None:
    assert not is_placeholder(text)


def test_equal_placeholders_of_nodes_are_unknown() -> None:
    block = Block("node_sysfs", "sysfs", "", 0, "", "")
    read = {
        name: [Reading("node", "node", "serial", text, block)]
        for name, text in (("cn1", "Default string"), ("cn2", "Default string"))
    }
    read["cn3"] = [Reading("node", "node", "serial", "ABC1234", block)]
    rows = rows_of(NodeClass("cpu", ("cn1", "cn2", "cn3")), read, {})
    assert [(row.actual, row.verdict) for row in rows] == [
        (None, "unknown"),
        (None, "unknown"),
        ("ABC1234", "ok"),
    ]
    assert rows[0].reason == "the firmware has a placeholder: Default string"
    assert rows[0].peers == {"unknown": 2, "ABC1234": 1}
