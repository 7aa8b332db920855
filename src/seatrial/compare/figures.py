"""The charts of a comparison, each with its table."""

from collections import defaultdict
from collections.abc import Sequence
from math import exp, log
from statistics import median

from seatrial.compare.axes import (
    distinct,
    number,
    one_line,
    ratio_axis,
    rows_axis,
    side_scales,
)
from seatrial.compare.records import Comparison, PairedNumber, Ratio
from seatrial.compare.wording import interval, percent, times
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.text import short
from seatrial.report.render.vega import (
    Row,
    channel,
    keep,
    layer,
    mark,
    specification,
    tips,
)

MAX_CHECKS = 40
_ROW_PX, _LEAST_PX = 17, 60


def score_figure(comparison: Comparison) -> Figure:
    """Draw the score of every side with its interval."""
    names = side_names(comparison)
    scores = [(standing.side, standing.score) for standing in comparison.ranking]
    colour, shape, _ = side_scales([*names.values()], first=0)
    place = {
        "y": rows_axis("side", [names[side] for side, _ in scores]),
        "color": colour | {"legend": None},
    }
    confidence = percent(comparison.confidence)
    return Figure(
        name="scores",
        title="Scores",
        detail=f"times better than {short(comparison.sides[0].name)}, weighted "
        f"geometric mean; the bar is the interval of {confidence}; log axis",
        spec=_forest(
            comparison,
            [({"side": names[side]}, score) for side, score in scores],
            place,
            shape | {"legend": None},
            _height(len(scores), 2),
            "Scores of the sides.",
        ),
        table=Table(
            ("Side", "Score", f"Interval, {confidence}"),
            tuple((side, times(score), interval(score)) for side, score in scores),
        ),
    )


def selection_figure(comparison: Comparison) -> Figure | None:
    """Draw how often each side comes first; None if nothing can be resampled."""
    names = side_names(comparison)
    known = [
        (names[standing.side], standing.selected)
        for standing in comparison.ranking
        if standing.selected is not None
    ]
    if not known:
        return None
    rows = [
        {"side": name, "share": number(100 * share), "words": percent(share)}
        for name, share in known
    ]
    y = rows_axis("side", [name for name, _ in known])
    x = channel(
        "share:Q",
        title="first in % of resamples",
        scale={"domain": [0, 115], "nice": False},
        axis={"values": [0, 20, 40, 60, 80, 100]},
    )
    bar = mark("bar", color="var(--line-1)", height=14)
    words = mark("text", align="left", dx=5, color="var(--ink)")
    layers = [
        layer("shares", bar, x=x, y=y),
        layer("shares", words, x=x, y=y, text={"field": "words"}),
    ]
    return Figure(
        name="selection",
        title="How often each comes first",
        detail=f"share of {comparison.resamples:,} bootstrap resamples, which draw the "
        f"repeats of each side anew; seed {comparison.seed}",
        spec=specification(
            layers, {"shares": rows}, _height(len(rows), 2), "Selection frequencies."
        ),
        table=Table(
            ("Side", "First in"), tuple((name, percent(share)) for name, share in known)
        ),
    )


def group_figure(comparison: Comparison) -> Figure | None:
    """Draw each group's ratio, side by side; None without any."""
    others = [*side_names(comparison).values()][1:]
    groups = distinct(group.name for group in comparison.groups)
    marks = [
        ({"row": name, "side": side}, ratio)
        for name, group in zip(groups, comparison.groups, strict=True)
        for side, ratio in zip(others, group.ratios[1:], strict=True)
        if ratio is not None
    ]
    if not marks:
        return None
    cells = (times, interval)
    heads = [head for name in others for head in (name, f"{name}: interval")]
    table = Table(
        ("Group", "Weight", "Numbers", *heads),
        tuple(
            (
                *(group.name, percent(group.weight), str(group.numbers)),
                *(form(ratio) for ratio in group.ratios[1:] for form in cells),
            )
            for group in comparison.groups
        ),
    )
    return Figure(
        name="groups",
        title="Groups",
        detail=f"times better than {short(comparison.sides[0].name)}, geometric mean "
        f"of the group; the bar is the interval of {percent(comparison.confidence)}, "
        "of each by itself; log axis",
        spec=_grouped_forest(comparison, marks, "bar"),
        table=table,
        wide=True,
    )


def side_names(comparison: Comparison) -> dict[str, str]:
    """Return the names of the sides as charts have them, in their order."""
    names = [side.name for side in comparison.sides]
    return dict(zip(names, distinct(names), strict=True))


def checks_figure(comparison: Comparison) -> Figure | None:
    """Draw, for each check and side, the worst, middle and best of its ratios.

    Published numbers have no check: their metric stands for it.
    """
    of: dict[tuple[str, int], list[tuple[float, PairedNumber]]] = defaultdict(list)
    weights: dict[str, float] = defaultdict(float)
    for paired in comparison.numbers:
        check = paired.check or paired.metric
        weights[check] += paired.weight
        for at, ratio in enumerate(paired.ratios):
            if at and ratio is not None:
                of[check, at].append((ratio.value, paired))
    checks = sorted({check for check, _ in of}, key=lambda name: (-weights[name], name))
    drawn = dict(zip(checks, distinct(checks[:MAX_CHECKS]), strict=False))
    names = side_names(comparison)
    marks, lines = list[tuple[Row, Ratio]](), []
    for check, at in sorted(of, key=lambda key: (checks.index(key[0]), key[1])):
        pairs = sorted(of[check, at], key=lambda pair: pair[0])
        middle = exp(median(log(value) for value, _ in pairs))
        side = comparison.sides[at].name
        (worst, worst_of), (best, best_of) = pairs[0], pairs[-1]
        lines.append(
            (
                *(check, side, str(len(pairs)), times(Ratio(worst))),
                *(worst_of.name, times(Ratio(middle))),
                *(times(Ratio(best)), best_of.name),
            )
        )
        if check in drawn:
            labels = {"row": drawn[check], "side": names[side]}
            marks.append((labels, Ratio(*map(number, (middle, worst, best)))))
    if not marks:
        return None
    left = len(checks) - len(drawn)
    columns = ("Check", "Side", "Numbers", "Worst", "of", "Middle", "Best", "of")
    return Figure(
        name="checks",
        title="Checks",
        detail=f"times better than {short(comparison.sides[0].name)}: middle of all "
        "ratios of a check, and a bar from the worst to the best; log axis",
        spec=_grouped_forest(comparison, marks, "range"),
        table=Table(columns, tuple(lines)),
        note=f"{left} more checks, of less weight, are in the table." if left else "",
        wide=True,
    )


def _grouped_forest(
    comparison: Comparison, marks: Sequence[tuple[Row, Ratio]], ends: str
) -> Row:
    """Draw rows of ratios, the sides of a row beneath each other."""
    names = list(dict.fromkeys(labels["row"] for labels, _ in marks))
    sides = [*side_names(comparison).values()][1:]
    colour, shape, _ = side_scales(sides)
    place = {
        "y": rows_axis("row", names),
        "yOffset": channel("side:N", scale={"domain": sides}),
        "color": colour,
    }
    height = _height(len(names), len(sides))
    description = f"Ratios with their {ends}, {len(names)} rows, {len(sides)} sides."
    return _forest(comparison, marks, place, shape, height, description)


def _forest(
    comparison: Comparison,
    marks: Sequence[tuple[Row, Ratio]],
    place: Row,
    shape: Row,
    height: int,
    description: str,
) -> Row:
    """Draw ratios with their labels as dots on bars, beside the baseline's line."""
    rows = [labels | _ratio_row(ratio) for labels, ratio in marks]
    values = [value for _, ratio in marks for value in (ratio.value, *ratio.bounds)]
    x = ratio_axis(values, comparison.sides[0].name)
    line = mark("rule", strokeWidth=2)
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}}
    dot = mark("point", filled=True, size=60, opacity=1)
    titles = [(f"{name}:N", name) for name in marks[0][0]]
    titles += [(f"{name}:Q", name) for name in ("ratio", "low", "high")]
    layers = [
        one_line(),
        layer("ratios", line, keep("isValid(datum.low)"), **ends, **place),
        layer("ratios", dot, x=x, **place, shape=shape, tooltip=tips(*titles)),
    ]
    return specification(layers, {"ratios": rows}, height, description)


def _ratio_row(ratio: Ratio) -> Row:
    values = (ratio.value, *ratio.bounds)
    return dict(zip(("ratio", "low", "high"), map(number, values), strict=False))


def _height(rows: int, sides: int) -> int:
    return max(_LEAST_PX, rows * (_ROW_PX * sides + 8))
