"""Curves: metrics over message size or over a parameter.

A curve goes over message size, or over a numeric parameter (the depth of a queue)
that was varied more finely. A check that measures the whole allocation gives one
curve per metric, with a line per environment and parameter; a check that measures
places (nodes, or pairs of nodes) gives one curve per environment, with a line per
place.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from seatrial.model.metrics import METRICS
from seatrial.report.published_overlay import PublishedPoint
from seatrial.report.render import text
from seatrial.report.render.figure import Table

MAX_LINES = 6
"""Lines with a colour of their own; more are spread over several curves."""

MAX_PLACES = 16
"""Places drawn one by one; of more, those at convicted nodes, the worst, the median."""


@dataclass(frozen=True)
class Point:
    """The median over the repeats at one x, with the lowest and highest of them."""

    x: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """The points of one environment or place.

    `convicted`: the place is at a failing node; `median`: it stands for all places;
    `ideal`: it was not measured.
    """

    label: str
    points: tuple[Point, ...]
    convicted: bool = False
    median: bool = False
    ideal: bool = False


@dataclass(frozen=True)
class LimitPoint:
    """The limit of the reference at one message size: 'at least 60 MB/s'."""

    x: float
    value: float
    label: str


@dataclass(frozen=True)
class Curve:
    """One metric of one check; `places`: lines are places.

    `over` is the parameter on the x axis, '' for the size in bytes.
    """

    check: str
    detail: str
    metric: str
    unit: str
    direction: str
    statistic: str
    repeats: int
    over: str
    places: bool
    convicted: tuple[str, ...]
    lines: tuple[Line, ...]
    limits: tuple[LimitPoint, ...]
    note: str = ""
    published: tuple[PublishedPoint, ...] = ()

    @property
    def x_title(self) -> str:
        """Name what is on the x axis: 'message size', 'depth'."""
        if self.over:
            return self.over.replace("_", " ")
        known = METRICS.get(self.metric)
        return known.size if known else "size"


def table(curve: Curve) -> Table:
    """Turn a curve into a table; limits and published numbers are the last columns."""
    known = {point.x for line in curve.lines for point in line.points}
    known |= {limit.x for limit in curve.limits}
    columns = [curve.x_title, *(line.label for line in curve.lines)]
    values = [
        {point.x: text.measured(point.value) for point in line.points}
        for line in curve.lines
    ]
    if curve.limits:
        columns.append("limit")
        values.append(_joined((limit.x, limit.label) for limit in curve.limits))
    if curve.published:
        columns.append("published")
        values.append(
            _joined((each.x, f"{each.system} {each.words}") for each in curve.published)
        )
    return Table(
        tuple(columns),
        tuple(
            (
                text.exact(x) if curve.over else text.size(int(x)),
                *(column.get(x, "") for column in values),
            )
            for x in sorted(known)
        ),
    )


def _joined(pairs: Iterable[tuple[float, str]]) -> dict[float, str]:
    """Join the words at the same x."""
    labels: dict[float, list[str]] = {}
    for x, words in pairs:
        labels.setdefault(x, []).append(words)
    return {x: "; ".join(words) for x, words in labels.items()}
