"""Drift as a chapter: words, a chart over the time of the campaign, a table."""

import statistics
from collections.abc import Sequence

from seatrial.judge.judge import Judgement
from seatrial.report.content import Chapter
from seatrial.report.drift import LEAST_SESSIONS, RISK, Drift, Level, drifts
from seatrial.report.render import text
from seatrial.report.render.figure import Figure, Table
from seatrial.report.render.text import few, short
from seatrial.report.render.vega import (
    STYLES,
    Row,
    Style,
    channel,
    layer,
    line_layers,
    mark,
    specification,
    style_channels,
    tips,
)
from seatrial.runs.closed_run import Run

MAX_ROWS = 50
_MAX_NAMED, _MAX_DRAWN = 6, 200
_SHORT = 2.0  # hours up to which a campaign is told in minutes
_TITLE = "Drift over the campaign"
_INTRO = (
    "Each number beside the median of its case, by session, in the order of time: on a "
    "machine that stays as it is, it goes up and down around 1 without a trend."
)
_METHOD = (
    "Tested by Kendall's rank correlation of the sessions with time; of the metrics "
    f"named at most {100 * RISK:g} % are expected to be wrong (Benjamini and Hochberg, "
    "over all tested). The slope is that of Theil and Sen. It decides nothing."
)
_OF_ALL: Style = ("var(--ink)", "diamond", [1, 0], 2.5)
_OF_REST: Style = ("var(--quiet)", "circle", [1, 0], 0.75)
_HEIGHT = 260
_ALL, _REST = "median of all", "others"


def drift_chapter(run: Run, judgement: Judgement) -> Chapter:
    """Build the chapter: metrics that drift, and those that were not tested."""
    if judgement.replay:
        return _empty("A replay has no times of its own.")
    trends = drifts(run, judgement)
    if not trends:
        return _empty(
            "No metric with a criterion was measured in several sessions whose times "
            "are known."
        )
    drifting = [each for each in trends if each.drifts]
    more = len(drifting) - MAX_ROWS
    table = ("Metrics that drift", drift_table(drifting[:MAX_ROWS]))
    return Chapter(
        "drift",
        _TITLE,
        f"{_INTRO} {words(trends)}",
        figures=(drift_figure(trends),),
        tables=(table,) if drifting else (),
        notes=(f"{more} more metrics drift.", _METHOD) if more > 0 else (_METHOD,),
    )


def words(trends: Sequence[Drift]) -> str:
    """Summarise the tests: 'No drift shown in 41 of 43 metrics; ...'."""
    tested = [each for each in trends if each.p is not None]
    drifting = [each for each in tested if each.drifts]
    untested = len(trends) - len(tested)
    if not tested:
        return (
            f"None of {_metrics(len(trends))} was measured in {LEAST_SESSIONS} or "
            "more sessions, which a test for a trend needs at least."
        )
    calm = f"{len(tested) - len(drifting)} of {len(tested)}" if drifting else ""
    sentence = f"No drift shown in {calm or _metrics(len(tested))}"
    sentence += " metrics" if calm else ""
    if drifting:
        sentence += "; " + "; ".join(few(map(trend_words, drifting), _MAX_NAMED))
    sentence += "."
    if untested:
        sentence += (
            f" {_metrics(untested)} {'was' if untested == 1 else 'were'} measured in "
            f"fewer than {LEAST_SESSIONS} sessions, too few to tell."
        )
    return sentence


def trend_words(drift: Drift) -> str:
    """Describe a drift: 'ImbRing bw_4MiB falls by 3 % per hour (p = 2e-5)'."""
    moves = "rises" if drift.per_hour > 0 else "falls"
    return (
        f"{short(drift.check)} {drift.metric} {moves} by {_share(drift.per_hour)} per "
        f"hour, {'worse' if drift.worse else 'better'} (p = {drift.p:.2g})"
    )


def drift_table(trends: Sequence[Drift]) -> Table:
    """Return check, metric, slope, the change from first to last session, and p."""
    return Table(
        ("check", "metric", "per hour", "over the campaign", "to the", "sessions", "p"),
        tuple(
            (
                short(each.check),
                each.metric,
                _signed(each.per_hour),
                _signed(each.per_hour * each.hours),
                "worse" if each.worse else "better",
                text.exact(len(each.levels)),
                "" if each.p is None else f"{each.p:.2g}",
            )
            for each in trends
        ),
    )


def drift_figure(trends: Sequence[Drift]) -> Figure:
    """Draw the levels of all metrics, those that drift by name."""
    last = max((level.hours for each in trends for level in each.levels), default=0)
    unit, per_hour = ("minutes", 60) if last < _SHORT else ("hours", 1)
    drifting = [each for each in trends if each.drifts][:_MAX_NAMED]
    names = [f"{short(each.check)} {each.metric}" for each in drifting]
    rest = [each for each in trends if each not in drifting][:_MAX_DRAWN]
    series = [*zip(names, drifting, strict=True), *((_REST, each) for each in rest)]
    rows = [
        {
            "line": group,
            "name": f"{short(each.check)} {each.metric}",
            "n": number,
            "x": round(level.hours * per_hour, 4),
            "y": float(f"{level.value:.5g}"),
        }
        for number, (group, each) in enumerate(series)
        for level in each.levels
    ]
    middle = [(x * per_hour, y) for x, y in _middle(trends)]
    rows += [
        {"line": _ALL, "name": _ALL, "n": -1, "x": round(x, 4), "y": float(f"{y:.5g}")}
        for x, y in middle
    ]
    heads = [*names, _ALL, *([_REST] if rest else [])]
    note = ""
    if len(trends) > len(drifting) + len(rest):
        note = f"Drawn are {len(drifting) + len(rest)} of {len(trends)} metrics."
    return Figure(
        name="drift",
        title="Every metric with a criterion, by session",
        detail="value of a session beside the median of its case; 1 is the median over "
        "the campaign",
        spec=_spec(rows, heads, unit, f"{_TITLE}: {words(trends)}"),
        table=drift_table(sorted(trends, key=lambda each: each.p is None)[:MAX_ROWS]),
        note=note,
        wide=True,
    )


def _middle(trends: Sequence[Drift]) -> list[tuple[float, float]]:
    """Return the median level of all metrics in each session, in the order of time."""
    sessions: dict[str, list[Level]] = {}
    for each in trends:
        for level in each.levels:
            sessions.setdefault(level.session, []).append(level)
    return sorted(
        (
            statistics.median(level.hours for level in levels),
            statistics.median(level.value for level in levels),
        )
        for levels in sessions.values()
    )


def _spec(rows: list[Row], heads: list[str], unit: str, description: str) -> Row:
    own = iter(STYLES)
    fixed = {_ALL: _OF_ALL, _REST: _OF_REST}
    styles = [fixed[head] if head in fixed else next(own) for head in heads]
    x = channel(
        "x:Q",
        title=f"{unit} since the first number",
        scale={"padding": 10, "nice": False},
        axis={"format": "~g", "tickCount": 8},
    )
    y = channel(
        "y:Q",
        title="value beside the median of its case",
        scale={"zero": False, "padding": 10},
        axis={"format": "~g"},
    )
    colours, shapes, _, _ = zip(*styles, strict=True)
    place = {"x": x, "detail": channel("n:N")}
    points = layer(
        "levels",
        mark("point", filled=True, opacity=1, size=26),
        **place,
        **style_channels("line", heads, color=colours, shape=shapes),
        y=y,
        tooltip=tips(("name:N", "metric"), ("x:Q", unit), ("y:Q", "beside its median")),
    )
    places = {head: order for order, head in enumerate(heads)}
    return specification(
        [*line_layers("levels", styles, place, y), points],
        {"levels": [row | {"order": places[row["line"]]} for row in rows]},
        _HEIGHT,
        description,
    )


def _share(value: float) -> str:
    return f"{100 * abs(value):.2g} %"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "\N{MINUS SIGN}") + _share(value)


def _metrics(count: int) -> str:
    return f"{count} metric{'' if count == 1 else 's'}"


def _empty(words: str) -> Chapter:
    return Chapter("drift", _TITLE, _INTRO, empty=words)
