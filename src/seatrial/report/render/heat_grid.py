"""A grid of squares as a Vega-Lite chart: the worse a number, the stronger its colour.

Names reach the chart as values of parameters, never as part of an expression. The page
lets the arrow keys walk over the squares of a chart whose `usermeta` says "grid".
"""

from dataclasses import dataclass
from typing import Any

from seatrial.report.render.text import short
from seatrial.report.render.vega import (
    CONFIG,
    Row,
    calculate,
    channel,
    five_digits,
    keep,
    layer,
    mark,
    specification,
    tips,
)

LEVELS = {"lower": (1.1, 1.2, 2.0, 5.0), "higher": (0.9, 0.8, 0.5, 0.2)}
"""Ratios to the median of all pairs at which a value is one level worse."""

SLOW = 2
"""Level from which a pair counts as slow: more than 20 % worse than the median."""

WIDE = 12
"""Columns above which a chart takes the whole width of the page."""

LEAST_CELL = 11
"""Least width of a cell in px; a narrower page scrolls the chart."""

COLOURS = [f"var(--heat-{level})" for level in range(5)]
CROSS, RING, DIAMOND = "\N{MULTIPLICATION SIGN}", "○", "◇"
"""Symbols: not measured; measured twice; failed."""

_SHAPES = {CROSS: "M-.8,-.8L.8,.8M.8,-.8L-.8,.8", RING: "circle", DIAMOND: "diamond"}

_HEIGHTS = ((6, 40), (12, 30), (24, 20), (40, 15), (1000, 13))
_MOST_VALUES = 6  # columns up to which a cell has room for its value
_LABEL = 26  # characters of a name on an axis
_UPRIGHT = 28  # characters of all labels together above which they are upright
_STACKED = {"layout": {"bottom": {"direction": "vertical"}}}
_CONTRAST = {
    "condition": {"test": f"datum.k > {SLOW}", "value": "var(--paper)"},
    "value": "var(--ink)",
}
"""A colour that is visible on the colour of a cell."""


@dataclass(frozen=True)
class Square:
    """A number at `row` and `column`; `level` is from 0 (good) to 4.

    `more` is a second number, measured under other conditions.
    """

    row: int
    column: int
    value: float
    level: int
    more: float | None = None


@dataclass(frozen=True)
class Mark:
    """A symbol on the square at `row` and `column`: a number of `Grid.symbols`."""

    row: int
    column: int
    symbol: int
    level: int = 0


@dataclass(frozen=True)
class Axis:
    """The names along one side, the marked ones, and a title."""

    names: tuple[str, ...]
    marked: tuple[bool, ...]
    title: str = ""

    @property
    def labels(self) -> list[str]:
        """Return the names cut to the width of the axis, with their marks."""
        pairs = zip(self.names, self.marked, strict=True)
        return [f"{'✕ ' if marked else ''}{short(n, _LABEL)}" for n, marked in pairs]


@dataclass(frozen=True)
class Grid:
    """Squares between rows and columns, and their words.

    `units`, `medians` and `lower` (is better) have an item per column; `levels` names
    the five levels in words, `brief` in a few signs for the legend, with the title
    `beside`; `symbols` are those of marks with their meanings. `same`: rows and columns
    are the same nodes; the diagonal is empty. `tips` are the titles of a tooltip: row,
    column, number, second number.
    """

    rows: Axis
    columns: Axis
    squares: tuple[Square, ...]
    marks: tuple[Mark, ...]
    units: tuple[str, ...]
    medians: tuple[float, ...]
    lower: tuple[bool, ...]
    levels: tuple[str, ...]
    brief: tuple[str, ...]
    beside: str
    symbols: tuple[tuple[str, str], ...]
    description: str
    same: bool
    tips: tuple[str, str, str, str]


def grid_chart(grid: Grid) -> Row:
    """Return the Vega-Lite specification of a grid, without a width."""
    rows, columns = grid.rows.names, grid.columns.names
    height = next(height for most, height in _HEIGHTS if len(rows) <= most)
    longest = max(map(len, grid.columns.labels))
    upright = longest * len(columns) > _UPRIGHT
    turned = {"orient": "top", "labelAngle": -90 if upright else 0}
    place = {
        "y": _axis("s:O", grid.rows, "row"),
        "x": _axis("d:O", grid.columns, "column", **turned),
    }
    marks = _marks(grid, height, place)
    frame = mark("rect", aria=False, fillOpacity=0, stroke="var(--link)", strokeWidth=3)
    at = (*calculate(s="cursor_row", d="cursor_column"), keep("cursor_row >= 0"))
    layers = [_squares(grid, place), marks, layer("cursor", frame, *at, **place)]
    if len(columns) <= _MOST_VALUES:
        alone = {**marks, "transform": [keep("!datum.v")]}
        layers[1:2] = [_values(place), alone]
    parameters = {
        "rows": [short(name) for name in rows],
        "columns": [short(name) for name in columns],
        "row_labels": grid.rows.labels,
        "column_labels": grid.columns.labels,
        "row_marked": list(grid.rows.marked),
        "column_marked": list(grid.columns.marked),
        "units": list(grid.units),
        "medians": list(map(five_digits, grid.medians)),
        **{name: [*getattr(grid, name)] for name in ("lower", "levels", "brief")},
        "symbols": [symbol for symbol, _ in grid.symbols],
        "meanings": [meaning for _, meaning in grid.symbols],
        "same": grid.same,
        "second": grid.tips[3],
        "cursor_row": -1,
        "cursor_column": -1,
    }
    return specification(
        layers,
        {"cells": _cells(grid), "marks": _marked(grid), "cursor": [{}]},
        height * len(rows),
        grid.description,
        resolve={"scale": {"shape": "independent", "fill": "independent"}},
        usermeta={"grid": True, "least_width": len(columns) * LEAST_CELL},
        config=CONFIG | {"legend": CONFIG["legend"] | _STACKED},
        params=[{"name": name, "value": value} for name, value in parameters.items()],
    )


def _cells(grid: Grid) -> list[Row]:
    """Return the squares: place, value, level, second value, symbol."""
    symbols = {(mark.row, mark.column): mark.symbol for mark in grid.marks}
    return [
        {"s": cell.row, "d": cell.column, "v": five_digits(cell.value), "k": cell.level}
        | ({} if cell.more is None else {"c": five_digits(cell.more)})
        | ({"m": symbols[at]} if (at := (cell.row, cell.column)) in symbols else {})
        for cell in grid.squares
    ]


def _marked(grid: Grid) -> list[Row]:
    """Return the marks; `v`: the square has a number, too."""
    numbers = {(square.row, square.column) for square in grid.squares}
    return [
        {"s": mark.row, "d": mark.column, "m": mark.symbol, "k": mark.level}
        | ({"v": 1} if (mark.row, mark.column) in numbers else {})
        for mark in grid.marks
    ]


def _axis(field: str, axis: Axis, side: str, **more: Any) -> Row:
    def if_marked(value: str, other: str) -> Row:
        test = f"{side}_marked[datum.value]"
        return {"condition": {"test": test, "value": value}, "value": other}

    look = {
        "labelExpr": f"{side}_labels[datum.value]",
        "labelColor": if_marked("var(--fail)", "var(--ink)"),
        "labelFontWeight": if_marked("bold", "normal"),
        "labelFontSize": 10 if len(axis.names) > WIDE else 12,
        "labelLimit": 150,
        "labelOverlap": False,
        **dict.fromkeys(("ticks", "domain", "grid"), False),
    }
    scale = {"domain": list(range(len(axis.names)))}
    title = axis.title or None
    return channel(field, title=title, scale=scale, sort=None, axis=look | more)


def _squares(grid: Grid, place: Row) -> Row:
    """Draw a square for every number, with a tooltip."""
    heads = (*grid.tips[:3], "that is", grid.tips[3])
    fields = ("row:N", "column:N", "value:N", "ratio:N", "second:N")
    titles = list(zip(fields, heads, strict=True))
    if all(square.more is None for square in grid.squares):
        titles.pop()
    legend = {
        "title": grid.beside,
        "titleFontWeight": "normal",
        "titleLimit": 400,
        "symbolType": "square",
        "labelExpr": "brief[datum.value]",
    }
    scale = {"domain": list(range(len(COLOURS))), "range": COLOURS}
    return layer(
        "cells",
        mark("rect", aria=False, stroke="var(--paper)", strokeWidth=1),
        *calculate(
            row="rows[datum.s]",
            column="columns[datum.d]",
            value="format(datum.v, '.4~g') + ' ' + units[datum.d]",
            ratio="!medians[datum.d] ? 'beside a median of 0' : lower[datum.d] ? "
            "format(datum.v / medians[datum.d], '.3~g') + ' times the median' : "
            "format(datum.v / medians[datum.d], '.3~%') + ' of the median'",
            second="isValid(datum.c) ? format(datum.c, '.4~g') + ' ' + units[datum.d]"
            " : 'no such number'",
        ),
        **place,
        fill=channel("k:O", scale=scale, legend=legend),
        tooltip=tips(*titles),
    )


def _marks(grid: Grid, height: int, place: Row) -> Row:
    """Draw the symbols of squares and of missing numbers."""
    present = sorted({mark.symbol for mark in grid.marks})
    shapes = [_SHAPES[symbol] for symbol, _ in grid.symbols]
    legend = {
        "title": None,
        "values": present,
        "labelExpr": "meanings[datum.value]",
        "symbolStrokeColor": "var(--ink)",
        "symbolFillColor": "transparent",
    }
    size = min(90, (0.45 * height) ** 2)
    scale = {"domain": list(range(len(shapes))), "range": shapes}
    return layer(
        "marks",
        mark("point", aria=False, filled=False, size=size, strokeWidth=1.4, opacity=1),
        **place,
        shape=channel("m:N", scale=scale, legend=legend if present else None),
        stroke=_CONTRAST,
    )


def _values(place: Row) -> Row:
    """Write the value and the symbol into each square."""
    words = (
        "format(datum.v, medians[datum.d] >= 1000 ? '.3~s' : '.3~g')"
        " + (isValid(datum.m) ? ' ' + symbols[datum.m] : '')"
    )
    written = mark("text", aria=False, fontSize=12)
    encoding = {"text": channel("words:N"), "color": _CONTRAST}
    return layer("cells", written, *calculate(words=words), **place, **encoding)
