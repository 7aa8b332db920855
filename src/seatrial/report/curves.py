"""Curves: metrics over message size or over a numeric parameter (depth of a queue).

Metrics of the whole allocation have one curve each, with a line per environment and
parameter. Metrics of places (nodes, or pairs of nodes) have a curve per environment,
with a line per place.
"""

from dataclasses import dataclass

from seatrial.model.metrics import METRICS
from seatrial.report.published_overlay import PublishedPoint
from seatrial.report.render import text
from seatrial.report.render.figure import Table

MAX_LINES = 6
"""Lines with an own colour; more lines are distributed over several curves."""

MAX_PLACES = 16
"""Places with own lines; of more: those of convicted nodes, the worst, the median."""


@dataclass(frozen=True)
class Point:
    """The median over the repeats at one x, with the lowest and highest value."""

    x: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """The points of one environment or place.

    `convicted`: the place is at a failing node; `median`: the median of all places;
    `ideal`: not measured.
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
        """Return the title of the x axis: 'message size', 'depth'."""
        size = METRICS[self.metric].size if self.metric in METRICS else "size"
        return self.over.replace("_", " ") or size

    def x_words(self, x: float) -> str:
        """Format a value of the x axis."""
        return text.exact(x) if self.over else text.size(int(x))


def table(curve: Curve) -> Table:
    """Return the values by x; limits and published numbers are the last columns."""
    known = {point.x for line in curve.lines for point in line.points}
    known |= {limit.x for limit in curve.limits}
    columns = [
        (line.label, [(point.x, text.measured(point.value)) for point in line.points])
        for line in curve.lines
    ]
    if curve.limits:
        columns.append(("limit", [(limit.x, limit.label) for limit in curve.limits]))
    if curve.published:
        words = [
            (point.x, f"{point.system} {point.words}") for point in curve.published
        ]
        columns.append(("published", words))
    rows = (
        (
            curve.x_words(x),
            *("; ".join(w for at, w in own if at == x) for _, own in columns),
        )
        for x in sorted(known)
    )
    return Table((curve.x_title, *(label for label, _ in columns)), tuple(rows))
