"""The operating characteristic of a demonstration test, as a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.criteria.stability import StabilityCriterion
from seatrial.model.units import rounded
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.vega import (
    HEIGHT,
    Row,
    channel,
    layer,
    mark,
    specification,
    tips,
)
from seatrial.stability.demonstration import Point
from seatrial.stability.phase import Demonstration

_STYLES = {"passes": "var(--pass)", "fails": "var(--fail)", "undecided": "var(--muted)"}
_MOST_ROWS = 12


@dataclass(frozen=True)
class Curve:
    """The curve of the test of a criterion after some hours."""

    criterion: StabilityCriterion
    test: Demonstration
    hours: float

    @property
    def title(self) -> str:
        """The x axis: the true quality."""
        if self.criterion.measure == "intervals":
            return "true share of intervals without a failure"
        of = "a node" if self.criterion.per_node else "the machine"
        return f"true MTBF of {of} in hours"

    @property
    def words(self) -> str:
        """The decision numbers and risks after these hours."""
        one = self.criterion
        return (
            f"{rounded(self.hours)} h: {self.test.words(self.hours)}; accepted "
            f"{rounded(one.accepted)}, rejected {rounded(one.rejected)}; risks: seller "
            f"{one.seller:g}, buyer {one.buyer:g}"
        )

    def points(self) -> list[Point]:
        """Return the chances by quality."""
        return self.test.curve(self.hours)


def curve_table(points: Sequence[Point], title: str, known: Sequence[float]) -> Table:
    """Return the chances at some qualities, the `known` ones among them."""
    step = max(1, len(points) // _MOST_ROWS)
    rows = tuple(
        (rounded(p.quality), *map(_share, (p.passes, p.fails, _rest(p))))
        for number, p in enumerate(points)
        if number % step == 0 or p.quality in known
    )
    return Table((title, "passes", "fails", "undecided"), rows)


def curve_figure(curve: Curve, name: str) -> Figure:
    """Draw a curve: chances of each verdict by the true quality."""
    one, points = curve.criterion, curve.points()
    rows: list[Row] = []
    for point in points:
        chances = (point.passes, point.fails, _rest(point))
        for verdict, chance in zip(_STYLES, chances, strict=True):
            rows.append({"x": point.quality, "y": chance, "of": verdict})
    log = one.measure != "intervals"
    scale: dict[str, Any] = {"type": "log" if log else "linear", "nice": False}
    scale |= {} if log else {"zero": False}
    axis = {"format": "~g", "tickCount": 6, "labelOverlap": True}
    x = channel("x:Q", title=curve.title, scale=scale, axis=axis)
    y = channel(
        "y:Q",
        title="probability",
        scale={"domain": [0, 1]},
        axis={"format": ".0%", "tickCount": 5},
    )
    colour = channel(
        "of:N",
        title=None,
        scale={"domain": [*_STYLES], "range": [*_STYLES.values()]},
    )
    dash = channel("of:N", legend=None, scale={"range": [[1, 0], [6, 3], [2, 2]]})
    limits = [{"x": one.rejected}, {"x": one.accepted}]
    layers = [
        layer("limits", mark("rule", color="var(--muted)", strokeDash=[3, 3]), x=x),
        layer(
            "rows",
            mark("line", strokeWidth=2),
            x=x,
            y=y,
            color=colour,
            strokeDash=dash,
            tooltip=tips(("x:Q", curve.title), ("of:N", "it"), ("y:Q", "probability")),
        ),
    ]
    words = f"Chance of each verdict of {one.name} by the {curve.title}."
    return Figure(
        name=name,
        title=f"{one.name}: operating characteristic",
        detail=curve.words,
        spec=specification(layers, {"rows": rows, "limits": limits}, HEIGHT, words),
        table=curve_table(points, curve.title, (one.accepted, one.rejected)),
        note="The rules are the rejected and the accepted value.",
    )


def _rest(point: Point) -> float:
    return max(0.0, 1 - point.passes - point.fails)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"
