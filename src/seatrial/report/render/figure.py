"""A figure: one Vega-Lite specification, drawn in HTML and in PDF, and its table."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """The numbers of a figure as text: heads of the columns, and rows of as many."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """A chart with its texts.

    `name` is unique on its page (letters, digits, dashes); `spec` is Vega-Lite without
    a width, with CSS variables of the page as colours ("var(--fail)"); `detail` has
    unit, direction and statistic. A `wide` figure takes the whole page.
    """

    name: str
    title: str
    detail: str
    spec: dict[str, Any]
    table: Table
    note: str = ""
    wide: bool = False
