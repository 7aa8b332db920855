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
    baseline = comparison.sides[0].name
    scores = [(standing.side, standing.score) for standing in comparison.ranking]
    rows = [{"side": names[side], **_ratio_row(score)} for side, score in scores]
    x = ratio_axis(_ends([score for _, score in scores]), baseline)
    y = rows_axis("side", [row["side"] for row in rows])
    colour, shape, _ = side_scales([*names.values()], first=0)
    no_legend = {"legend": None}
    layers = [
        one_line(),
        _bars(x, {"y": y, "color": {**colour, **no_legend}}),
        _dots(
            {"x": x, "y": y, "color": {**colour, **no_legend}}
            | {"shape": {**shape, **no_legend}},
            ["side"],
        ),
    ]
    table = Table(
        ("Side", "Score", f"Interval, {percent(comparison.confidence)}"),
        tuple((side, times(score), interval(score)) for side, score in scores),
    )
    return Figure(
        name="scores",
        title="Scores",
        detail=f"times better than {short(baseline)}, weighted geometric mean; the "
        f"bar is the interval of {percent(comparison.confidence)}; log axis",
        spec=specification(
            layers, {"ratios": rows}, _height(len(rows), 2), "Scores of the sides."
        ),
        table=table,
    )


def selection_figure(comparison: Comparison) -> Figure | None:
    """Draw how often each side comes first; None if nothing can be resampled."""
    names = side_names(comparison)
    known = [
        (names[each.side], each.selected)
        for each in comparison.ranking
        if each.selected is not None
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
        (name, side, ratio)
        for name, group in zip(groups, comparison.groups, strict=True)
        for side, ratio in zip(others, group.ratios[1:], strict=True)
        if ratio is not None
    ]
    if not marks:
        return None
    rows = [
        {"row": row, "side": side, **_ratio_row(ratio)} for row, side, ratio in marks
    ]
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
        spec=_forest(comparison, rows, _ends([ratio for _, _, ratio in marks]), "bar"),
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
    for each in comparison.numbers:
        check = each.check or each.metric
        weights[check] += each.weight
        for at, ratio in enumerate(each.ratios):
            if at and ratio is not None:
                of[check, at].append((ratio.value, each))
    checks = sorted({check for check, _ in of}, key=lambda name: (-weights[name], name))
    drawn = dict(zip(checks, distinct(checks[:MAX_CHECKS]), strict=False))
    names = side_names(comparison)
    rows, lines = list[Row](), []
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
            ends = _ratio_row(Ratio(middle, worst, best))
            rows.append({"row": drawn[check], "side": names[side], **ends})
    if not rows:
        return None
    left = len(checks) - len(drawn)
    all_ends = [row[name] for row in rows for name in ("low", "high")]
    columns = ("Check", "Side", "Numbers", "Worst", "of", "Middle", "Best", "of")
    return Figure(
        name="checks",
        title="Checks",
        detail=f"times better than {short(comparison.sides[0].name)}: middle of all "
        "ratios of a check, and a bar from the worst to the best; log axis",
        spec=_forest(comparison, rows, all_ends, "range"),
        table=Table(columns, tuple(lines)),
        note=f"{left} more checks, of less weight, are in the table." if left else "",
        wide=True,
    )


def _forest(
    comparison: Comparison, rows: list[Row], ends: Sequence[float], what: str
) -> Row:
    """Draw rows of ratios, the sides of a row beneath each other."""
    names = list(dict.fromkeys(row["row"] for row in rows))
    sides = [*side_names(comparison).values()][1:]
    colour, shape, _ = side_scales(sides)
    x = ratio_axis(ends, comparison.sides[0].name)
    place = {
        "y": rows_axis("row", names),
        "yOffset": channel("side:N", scale={"domain": sides}),
        "color": colour,
    }
    layers = [
        one_line(),
        _bars(x, place),
        _dots({"x": x, **place, "shape": shape}, ["row", "side"]),
    ]
    height = _height(len(names), len(sides))
    description = f"Ratios with their {what}, {len(names)} rows, {len(sides)} sides."
    return specification(layers, {"ratios": rows}, height, description)


def _height(rows: int, sides: int) -> int:
    return max(_LEAST_PX, rows * (_ROW_PX * sides + 8))


def _bars(x: Row, place: Row) -> Row:
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}}
    known = keep("isValid(datum.low)")
    return layer("ratios", mark("rule", strokeWidth=2), known, **ends, **place)


def _dots(encoding: Row, names: Sequence[str]) -> Row:
    titles = [(f"{name}:N", name) for name in names]
    titles += [(f"{name}:Q", name) for name in ("ratio", "low", "high")]
    dot = mark("point", filled=True, size=60, opacity=1)
    return layer("ratios", dot, **encoding, tooltip=tips(*titles))


def _ratio_row(ratio: Ratio) -> Row:
    row = {"ratio": number(ratio.value)}
    if ratio.lower is not None and ratio.upper is not None:
        row |= {"low": number(ratio.lower), "high": number(ratio.upper)}
    return row


def _ends(ratios: Sequence[Ratio]) -> list[float]:
    return [
        end
        for ratio in ratios
        for end in (ratio.value, ratio.lower, ratio.upper)
        if end is not None
    ]
