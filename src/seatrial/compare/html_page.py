"""A comparison as one HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.compare import wording
from seatrial.compare.curves import curve_figures
from seatrial.compare.figures import (
    checks_figure,
    group_figure,
    score_figure,
    selection_figure,
    side_names,
    where,
)
from seatrial.compare.formats import most_telling
from seatrial.compare.records import (
    Comparison,
    PairedNumber,
    Ratio,
    Side,
    Standing,
    Unpaired,
)
from seatrial.model.metrics import flat_name
from seatrial.report.render import text
from seatrial.report.render.html import FILTERS, SIZES, render

MAX_NUMBERS, MAX_UNPAIRED, MAX_CLAIMS = 1000, 500, 500
"""Rows of a table; compare.csv has all numbers, compare.json all of it."""

MARKS = ("better", "worse", "both", "alike")
"""How a number may be marked: some side better or worse than the baseline, one so and
another so, or none by more than chance."""


@dataclass(frozen=True)
class _Cell:
    """A number of one side: value, ratio to the baseline, and its interval."""

    value: str
    n: int
    ratio: str
    interval: str
    mark: str


@dataclass(frozen=True)
class _NumberRow:
    """A paired number, with a cell for each side."""

    number: PairedNumber
    name: str
    where: str
    weight: str
    mark: str
    cells: tuple[_Cell, ...]


@dataclass(frozen=True)
class _Place:
    """A side in the ranking."""

    standing: Standing
    side: Side
    score: str
    interval: str
    performance: str
    selected: str


def compare_html(comparison: Comparison, home: Path, notes: Sequence[str] = ()) -> str:
    """Render the page, with notes at its top.

    Raises SeatrialError if a template below `home` is missing.
    """
    figures, more_curves = curve_figures(comparison)
    unpaired = sorted(comparison.unpaired, key=lambda each: not each.group)
    return render(
        home,
        "compare.html.j2",
        FILTERS | {"percent": wording.percent, "labels": wording.labels},
        **SIZES,
        notes=notes,
        comparison=comparison,
        names=side_names(comparison),
        headline=wording.headline(comparison),
        lead=wording.lead(comparison),
        places=_places(comparison),
        score=score_figure(comparison),
        selection=selection_figure(comparison),
        groups=group_figure(comparison),
        group_rows=_group_rows(comparison),
        checks=checks_figure(comparison),
        curves=figures,
        more_curves=more_curves,
        numbers=[_row(each) for each in most_telling(comparison, MAX_NUMBERS)],
        marks=MARKS,
        unpaired=unpaired[:MAX_UNPAIRED],
        counting=sum(bool(each.group) for each in unpaired),
        what=_what,
        claims=comparison.claims[:MAX_CLAIMS],
    )


def _places(comparison: Comparison) -> list[_Place]:
    by_name = {side.name: side for side in comparison.sides}
    baseline = comparison.sides[0].name
    return [
        _Place(
            standing=each,
            side=by_name[each.side],
            score=wording.times(each.score),
            # Of the baseline to itself there is none.
            interval=wording.interval(each.score) if each.side != baseline else "",
            performance=wording.times(each.performance),
            selected="" if each.selected is None else wording.percent(each.selected),
        )
        for each in comparison.ranking
    ]


def _group_rows(
    comparison: Comparison,
) -> list[tuple[str, str, int, list[tuple[str, str]]]]:
    return [
        (group.name, wording.percent(group.weight), group.numbers, _said(group.ratios))
        for group in comparison.groups
    ]


def _said(ratios: Sequence[Ratio | None]) -> list[tuple[str, str]]:
    """Write the ratios of all sides but the baseline, with their intervals."""
    return [(wording.times(ratio), wording.interval(ratio)) for ratio in ratios[1:]]


def _row(number: PairedNumber) -> _NumberRow:
    found = {mark for mark in number.marks if mark}
    mark = "both" if len(found) > 1 else next(iter(found), "alike")
    return _NumberRow(
        number=number,
        name=flat_name(number.metric, number.size_bytes),
        where=", ".join(filter(None, [number.case, number.size, where(number)])),
        weight=wording.percent(number.weight) if number.weight else "",
        mark=mark,
        cells=tuple(
            _Cell(
                text.measured(value),
                n,
                wording.times(ratio),
                wording.interval(ratio),
                mark,
            )
            for value, n, ratio, mark in zip(
                number.values, number.n, number.ratios, number.marks, strict=True
            )
        ),
    )


def _what(each: Unpaired) -> str:
    """Name what is not on all sides: a check, a case of it, or a metric of that."""
    return ", ".join(filter(None, [each.case, each.metric])) or "all of it"
