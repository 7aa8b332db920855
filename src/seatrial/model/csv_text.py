"""Rows as CSV that a spreadsheet opens as data, never as formulas."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = tuple("=+-@\t\n\uff1d\uff0b\uff0d\uff20")
"""First characters of formulas, which may call programs; the last four are wide."""

_DIGITS = 9
"""Significant digits of a number with a fraction, as in the digest of a judgement."""


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Write a head and rows; numbers stay numbers of nine digits, None is empty.

    A text that a spreadsheet would take for a formula gets an apostrophe before it;
    every line break in a text is a line feed, as a bare CR ends a row for some readers.
    """
    return csv_rows([columns, *([row[name] for name in columns] for row in rows)])


def csv_rows(rows: Iterable[Sequence[Any]]) -> str:
    """Write rows without a head, as `csv_text` does."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(map(_inert, row) for row in rows)
    return text.getvalue()


def _inert(value: Any) -> Any:
    """Convert a text to one that begins no formula, a number to nine digits: 0.1."""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    if not isinstance(value, str):
        return value
    words = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{words}" if words.startswith(_FORMULA) else words
