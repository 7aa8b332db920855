"""A matrix of pairs as a figure: a grid of nodes, and its numbers as a table."""

import math
from itertools import permutations
from typing import Any

from seatrial.report.pair_matrix import MAX_RETESTED, Matrix
from seatrial.report.render import text
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.heat_grid import (
    CROSS,
    RING,
    SLOW,
    WIDE,
    Axis,
    Grid,
    Mark,
    Square,
    grid_chart,
)
from seatrial.report.render.text import few, short
from seatrial.report.render.vega import metric_title

_NAMES = 8
LEVEL_NAMES = {
    "lower": (
        "up to 1.1 times the median",
        "up to 1.2 times the median",
        "up to 2 times the median",
        "up to 5 times the median",
        "above 5 times",
    ),
    "higher": (
        "at least 90 % of the median",
        "at least 80 % of the median",
        "at least 50 % of the median",
        "at least 20 % of the median",
        "below 20 %",
    ),
}
"""Names of `LEVELS`, the good one first; those of the legend are in `_BRIEF`."""

_BRIEF = {
    "lower": ("≤ 1.1 times", "≤ 1.2 times", "≤ 2 times", "≤ 5 times", "> 5 times"),
    "higher": ("≥ 90 %", "≥ 80 %", "≥ 50 %", "≥ 20 %", "< 20 %"),
}


def matrix_figure(matrix: Matrix, name: str) -> Figure:
    """Draw a matrix; its table marks what is slow, and what was not measured."""
    return Figure(
        name=name,
        title=title_of(matrix),
        detail=_detail(matrix),
        spec=heat_chart(matrix),
        table=matrix_table(matrix),
        note=_note(matrix),
        wide=len(matrix.nodes) > WIDE,
    )


def heat_chart(matrix: Matrix) -> dict[str, Any]:
    """Return the Vega-Lite specification of a matrix, without a width."""
    from_, to = ("from", "to") if matrix.directed else ("between", "and")
    titles = ("from", "to") if matrix.directed else ("", "")
    nodes, marked = matrix.nodes, matrix.marked
    return grid_chart(
        Grid(
            rows=Axis(nodes, marked, titles[0]),
            columns=Axis(nodes, marked, titles[1]),
            squares=tuple(
                Square(row, column, cell.value, cell.level, cell.crowded)
                for (row, column), cell in matrix.cells.items()
            ),
            marks=_marks(matrix),
            units=(matrix.unit,) * len(nodes),
            medians=(matrix.median,) * len(nodes),
            lower=(matrix.direction == "lower",) * len(nodes),
            levels=LEVEL_NAMES[matrix.direction],
            brief=_BRIEF[matrix.direction],
            beside="beside the median of all pairs",
            symbols=((CROSS, "not measured"), (RING, "tested again alone")),
            description=describe(matrix),
            same=True,
            tips=(from_, to, matrix.metric, "while others measured"),
        )
    )


def title_of(matrix: Matrix) -> str:
    """Name a matrix: check, metric with its size, and what it was measured with."""
    metric = metric_title(matrix.metric)
    if matrix.size_bytes is not None:
        metric += f" {text.size(matrix.size_bytes)}"
    return f"{matrix.check}: {metric}, {matrix.detail}"


def describe(matrix: Matrix) -> str:
    """Describe a matrix in a sentence, for screen readers."""
    return text.clean(
        f"{matrix.check} {matrix.detail}: {metric_title(matrix.metric)} in "
        f"{matrix.unit} between {len(matrix.nodes)} nodes, rows to columns, "
        f"{matrix.direction} is better; median {text.measured(matrix.median)}; "
        f"{matrix.slow} pairs are more than 20 % worse, {matrix.missing} were not "
        "measured."
    )


def matrix_table(matrix: Matrix) -> Table:
    """Return the numbers: ▼ is more than 20 % worse, ✕ a node named as cause."""
    names = [
        f"✕ {short(node)}" if marked else short(node)
        for node, marked in zip(matrix.nodes, matrix.marked, strict=True)
    ]

    def words(row: int, column: int) -> str:
        cell = matrix.cells.get((row, column))
        if cell is None:
            return "" if row == column else "not measured"
        return f"{text.measured(cell.value)}{' ▼' if cell.level >= SLOW else ''}"

    numbers = range(len(names))
    head = "from \\ to" if matrix.directed else "node"
    return Table(
        (head, *names),
        tuple(
            (name, *(words(row, column) for column in numbers))
            for row, name in enumerate(names)
        ),
    )


def retested_table(matrix: Matrix) -> Table:
    """Return the pairs that were tested again alone, the worst first."""
    return Table(
        ("from", "to", "alone", "while others measured", "unit"),
        tuple(
            (
                short(source),
                short(destination),
                text.measured(cell.value),
                text.measured(cell.crowded),
                matrix.unit,
            )
            for source, destination, cell in matrix.retested[:MAX_RETESTED]
        ),
    )


def _detail(matrix: Matrix) -> str:
    repeats = f", median of {matrix.repeats} repeats" if matrix.repeats > 1 else ""
    halves = (
        "rows send to columns"
        if matrix.directed
        else "a pair has one value, which both halves show"
    )
    return (
        f"{matrix.unit}, {matrix.direction} is better; {matrix.statistic}{repeats}; "
        f"{halves}"
    )


def _note(matrix: Matrix) -> str:
    """Count the pairs that are slow, miss the limit, or were not measured."""
    pairs = "values, two of each pair," if matrix.directed else "pairs"
    sentences = [
        (
            f"The median of {text.exact(matrix.measured)} {pairs} is "
            f"{text.measured(matrix.median)} {matrix.unit}; {text.exact(matrix.slow)} "
            f"{'is' if matrix.slow == 1 else 'are'} more than 20 % worse."
        )
    ]
    if matrix.limit is None:
        sentences.append("There is no limit.")
    else:
        words = "at most" if matrix.direction == "lower" else "at least"
        sentences.append(
            f"The limit is {words} {text.exact(matrix.limit)} {matrix.unit}; "
            f"{text.exact(matrix.missed)} "
            f"{'misses' if matrix.missed == 1 else 'miss'} it."
        )
    if matrix.drawn:
        sentences.append(
            f"The sweep covers {100 * matrix.coverage:.1f} % of "
            f"{text.exact(math.comb(matrix.of, 2))} pairs: it finds slow nodes and "
            "what many pairs share; a fault of a single pair needs the full sweep."
        )
    if matrix.missing:
        silent = ", ".join(few([short(node) for node in matrix.silent], _NAMES))
        among = f", among them every pair of {silent}" if silent else ""
        sentences.append(f"Not measured: {text.exact(matrix.missing)}{among}.")
    if matrix.of > len(matrix.nodes):
        sentences.append(
            f"Of {text.exact(matrix.of)} nodes the {len(matrix.nodes)} worst are "
            "shown: those named as cause, then those whose best pair is bad, then "
            "those with the most slow or missing pairs."
        )
    return " ".join(sentences)


def _marks(matrix: Matrix) -> tuple[Mark, ...]:
    """Return the pairs that were not measured, then those tested again alone."""
    missing = (
        Mark(row, column, 0)
        for row, column in permutations(range(len(matrix.nodes)), 2)
        if (row, column) not in matrix.cells
    )
    retested = (
        Mark(row, column, 1, cell.level)
        for (row, column), cell in matrix.cells.items()
        if cell.crowded is not None
    )
    return (*missing, *retested)
