"""A figure, drawn in HTML and in PDF: a Vega-Lite specification or SVG, and a table."""

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
    unit, direction and statistic. A `wide` figure takes the whole page. A `drawing`, an
    SVG with the same variables, stands in place of `spec`: that has its description.
    """

    name: str
    title: str
    detail: str
    spec: dict[str, Any]
    table: Table
    note: str = ""
    wide: bool = False
    drawing: str = ""
