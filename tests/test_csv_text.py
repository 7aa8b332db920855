"""CSV that spreadsheets open as data."""

import csv
import io
from typing import Any

import pytest

from seatrial.model.csv_text import csv_text


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\tx"),
        ("\rx", "'\nx"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\uff1d1", "'\uff1d1"),
        ("cn01", "cn01"),
        ('a "b", c\nd', 'a "b", c\nd'),
        ("", ""),
        (-1.5, "-1.5"),
        (1 - 0.9, "0.1"),
        (23.981215303530636, "23.9812153"),
        (60.0, "60"),
        (7, "7"),
        (None, ""),
    ],
)
def test_csv_holds_no_formula_and_keeps_numbers(value: Any, cell: str) -> None:
    written = csv_text(["a", "b"], [{"a": value, "b": 1}])
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert rows == [["a", "b"], [cell, "1"]]
