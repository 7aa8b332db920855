"""What the macros of the templates take: filters, and the sizes of tables."""

import re
from typing import Any

from markupsafe import Markup

from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.report.render.labels import short

FILTERED_TABLE, LONG_TABLE = 15, 40
"""Rows above which a table has a filter, and above which it is closed at first."""

_MAX_NAME, _MAX_TEXT = 80, 1000
_NUMBER = re.compile(r"[-\N{MINUS SIGN}<>\N{EN DASH}]?\d.{0,24}|[\N{EN DASH}-]|")


def _cut(words: str, most: int = _MAX_TEXT) -> Markup | str:
    """Shorten a text that would take all the room; the whole is its title."""
    return _titled(words, text.shortened(text.clean(words), most), most)


def _name(words: str) -> Markup | str:
    """Shorten a name in its middle, as its end often tells it from others."""
    return _titled(words, short(words, _MAX_NAME), _MAX_NAME)


def _titled(words: str, shown: str, most: int) -> Markup | str:
    if len(words) <= most:
        return words
    return Markup('<span title="{}">{}</span>').format(text.clean(words), shown)


def _number_columns(table: Table) -> frozenset[int]:
    """Choose the columns that have numbers, and nothing else."""
    return frozenset(
        column
        for column in range(len(table.columns))
        if any(row[column] for row in table.rows)
        and all(_NUMBER.fullmatch(row[column]) for row in table.rows)
    )


FILTERS: dict[str, Any] = {
    "zip": zip,
    "drawn": Markup,
    "cut": _cut,
    "name": _name,
    "shortened": lambda words, most=_MAX_NAME: short(words, most),
    "number_columns": _number_columns,
}
SIZES = {"filtered_table": FILTERED_TABLE, "long_table": LONG_TABLE}
