"""A matrix of nodes as a Vega-Lite chart: the worse a pair, the stronger its colour.

Names reach the chart as values of a parameter, never as part of an expression.
"""

from typing import Any

import altair as alt

from seatrial.report import text
from seatrial.report.charts import CONFIG, metric_title
from seatrial.report.matrix import LEVELS, SLOW, Matrix

WIDE = 12
"""Nodes above which a chart takes the whole width of the page."""

LEAST_CELL = 11
"""Width in px that a cell must have; a narrower page scrolls the chart."""

_COLOURS = [f"var(--heat-{level})" for level in range(5)]
_HEIGHTS = ((6, 40), (12, 30), (24, 20), (40, 15), (1000, 13))
_MOST_VALUES = 6  # nodes up to which a cell has room for its value
_MISSING, _AGAIN = "M-.8,-.8L.8,.8M.8,-.8L-.8,.8", "circle"
_SEEN = alt.condition(
    f"datum.k > {SLOW}", alt.value("var(--paper)"), alt.value("var(--ink)")
)
"""A colour that is seen on that of a cell."""


def heat_chart(matrix: Matrix) -> dict[str, Any]:
    """Give the Vega-Lite specification of a matrix, without a width."""
    count = len(matrix.nodes)
    height = next(height for most, height in _HEIGHTS if count <= most)
    y, x = _axes(matrix)
    rich = count <= _MOST_VALUES
    layers = [_cells(matrix, y, x), _symbols(height, y, x), _cursor(y, x)]
    if rich:
        layers.insert(1, _values(matrix, y, x))
    picture = (
        alt.layer(*layers)
        .add_params(
            alt.param(name="names", value=list(matrix.nodes)),
            alt.param(name="labels", value=_labels(matrix)),
            alt.param(name="marked", value=list(matrix.marked)),
            alt.param(name="cursor_row", value=-1),
            alt.param(name="cursor_column", value=-1),
        )
        .properties(
            height=height * count,
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
            description=describe(matrix),
        )
    )
    return {
        **picture.to_dict(validate=False),
        "config": CONFIG,
        "datasets": {
            "cells": _rows(matrix),
            "marks": [*_missing(matrix), *([] if rich else _again(matrix))],
            "cursor": [{}],
        },
    }


def describe(matrix: Matrix) -> str:
    """Say in a sentence what a matrix shows, for who cannot see it."""
    return text.clean(
        f"{matrix.check} {matrix.detail}: {metric_title(matrix.metric)} in "
        f"{matrix.unit} between {len(matrix.nodes)} nodes, rows to columns, "
        f"{matrix.direction} is better; median {text.measured(matrix.median)}; "
        f"{matrix.slow} pairs are more than 20 % worse, {matrix.missing} were not "
        "measured."
    )


def level_names(direction: str) -> list[str]:
    """Name the levels of a cell, the good one first."""
    if direction == "lower":
        ratios = [f"{ratio:g}" for ratio in LEVELS[direction]]
        words, rest = "up to {} times the median", "above {} times"
    else:
        ratios = [f"{100 * ratio:g} %" for ratio in LEVELS[direction]]
        words, rest = "at least {} of the median", "below {}"
    return [*(words.format(ratio) for ratio in ratios), rest.format(ratios[-1])]


def _labels(matrix: Matrix) -> list[str]:
    """Name the nodes on an axis, convicted ones with a mark."""
    return [
        f"✕ {node}" if marked else node
        for node, marked in zip(matrix.nodes, matrix.marked, strict=True)
    ]


def _rows(matrix: Matrix) -> list[dict[str, Any]]:
    """Give number of row and column, value, and level of every measured pair."""
    rows = []
    for (row, column), cell in matrix.cells.items():
        found = {"s": row, "d": column, "v": _short(cell.value), "k": cell.level}
        if cell.crowded is not None:
            found["c"] = _short(cell.crowded)
        rows.append(found)
    return rows


def _missing(matrix: Matrix) -> list[dict[str, Any]]:
    """Give the pairs that were not measured."""
    numbers = range(len(matrix.nodes))
    return [
        {"s": row, "d": column, "m": 0, "k": 0}
        for row in numbers
        for column in numbers
        if row != column and (row, column) not in matrix.cells
    ]


def _again(matrix: Matrix) -> list[dict[str, Any]]:
    """Give the pairs that were tested again alone."""
    return [
        {"s": row, "d": column, "m": 1, "k": cell.level}
        for (row, column), cell in matrix.cells.items()
        if cell.crowded is not None
    ]


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _if_convicted(value: str, other: str) -> dict[str, Any]:
    return {
        "condition": {"test": "marked[datum.value]", "value": value},
        "value": other,
    }


def _axes(matrix: Matrix) -> tuple[alt.Y, alt.X]:
    numbers = list(range(len(matrix.nodes)))
    axis: dict[str, Any] = {
        "labelExpr": "labels[datum.value]",
        "labelColor": _if_convicted("var(--fail)", "var(--ink)"),
        "labelFontWeight": _if_convicted("bold", "normal"),
        "labelFontSize": 10 if len(numbers) > WIDE else 12,
        "labelLimit": 110,
        "labelOverlap": False,
        "ticks": False,
        "domain": False,
        "grid": False,
    }
    longest = max(len(label) for label in _labels(matrix))
    upright = longest * len(numbers) > 28
    scale = alt.Scale(domain=numbers)
    titles = ("from", "to") if matrix.directed else (None, None)
    return (
        alt.Y("s:O", title=titles[0], scale=scale, sort=None, axis=alt.Axis(**axis)),
        alt.X(
            "d:O",
            title=titles[1],
            scale=scale,
            sort=None,
            axis=alt.Axis(orient="top", labelAngle=-90 if upright else 0, **axis),
        ),
    )


def _cells(matrix: Matrix, y: alt.Y, x: alt.X) -> alt.Chart:
    """Draw a square for every measured pair, with what is known of it."""
    form, words = (
        ("'.3~g'", " times") if matrix.direction == "lower" else ("'.3~%'", " of")
    )
    tooltip = [
        alt.Tooltip("source:N", title="from" if matrix.directed else "between"),
        alt.Tooltip("destination:N", title="to" if matrix.directed else "and"),
        alt.Tooltip("v:Q", title=f"{matrix.metric} ({matrix.unit})", format=".4~g"),
        alt.Tooltip("ratio:N", title="that is"),
    ]
    if matrix.retested:
        tooltip.append(alt.Tooltip("crowded:N", title="while others measured"))
    squares: alt.Chart = (
        alt.Chart(alt.NamedData("cells"))
        .transform_calculate(
            source="names[datum.s]",
            destination="names[datum.d]",
            ratio=f"format(datum.v / {matrix.median!r}, {form}) + '{words} the median'",
            crowded="isValid(datum.c) ? format(datum.c, '.4~g') : 'not tested again'",
        )
        .mark_rect(aria=False, stroke="var(--paper)", strokeWidth=1)
        .encode(
            y=y,
            x=x,
            fill=alt.Fill(
                "k:O",
                scale=alt.Scale(domain=list(range(len(_COLOURS))), range=_COLOURS),
                legend=None,
            ),
            tooltip=tooltip,
        )
    )
    return squares


def _symbols(height: int, y: alt.Y, x: alt.X) -> alt.Chart:
    """Draw a cross where nothing was measured, a ring where it was twice."""
    shapes = alt.Scale(domain=[0, 1], range=[_MISSING, _AGAIN])
    size = min(90, (0.45 * height) ** 2)
    symbols: alt.Chart = (
        alt.Chart(alt.NamedData("marks"))
        .mark_point(aria=False, filled=False, size=size, strokeWidth=1.4, opacity=1)
        .encode(
            y=y,
            x=x,
            shape=alt.Shape("m:N", scale=shapes, legend=None),
            stroke=_SEEN,
        )
    )
    return symbols


def _values(matrix: Matrix, y: alt.Y, x: alt.X) -> alt.Chart:
    """Write the value into each cell, with a ring if the pair was tested again."""
    form = "'.3~s'" if matrix.median >= 1000 else "'.3~g'"
    words: alt.Chart = (
        alt.Chart(alt.NamedData("cells"))
        .transform_calculate(
            words=f"format(datum.v, {form}) + (isValid(datum.c) ? ' ○' : '')"
        )
        .mark_text(aria=False, fontSize=12)
        .encode(y=y, x=x, text="words:N", color=_SEEN)
    )
    return words


def _cursor(y: alt.Y, x: alt.X) -> alt.Chart:
    """Frame the pair that the keyboard is at."""
    frame: alt.Chart = (
        alt.Chart(alt.NamedData("cursor"))
        .transform_calculate(s="cursor_row", d="cursor_column")
        .transform_filter("cursor_row >= 0")
        .mark_rect(aria=False, fillOpacity=0, stroke="var(--link)", strokeWidth=3)
        .encode(y=y, x=x)
    )
    return frame
