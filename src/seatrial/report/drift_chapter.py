"""Drift as a chapter: words, a chart over the time of the campaign, a table."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

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
    five_digits,
    line_layers,
    specification,
    tips,
)
from seatrial.runs.closed_run import Run

MAX_ROWS = 50
_MAX_NAMED, _MAX_DRAWN = 6, 200
_SHORT = 2.0  # hours up to which the time axis is in minutes
_TITLE = "Drift over the campaign"
_INTRO = (
    "Each number divided by the median of its case, by session, in the order of time. "
    "On a stable machine the ratio varies around 1 without a trend."
)
_METHOD = (
    "Test: Kendall's rank correlation of the sessions with time. At most "
    f"{100 * RISK:g} % of the named metrics are expected to be wrong (Benjamini and "
    "Hochberg, over all tested metrics). Slope: Theil and Sen. Drift has no influence "
    "on the verdict."
)
_HEIGHT = 260
_ALL, _REST = "median of all", "others"
_FIXED: dict[str, Style] = {
    _ALL: ("var(--ink)", "diamond", [1, 0], 2.5),
    _REST: ("var(--quiet)", "circle", [1, 0], 0.75),
}


def drift_chapter(run: Run, judgement: Judgement) -> Chapter:
    """Build the chapter: metrics that drift, and those that were not tested."""
    chapter = Chapter("drift", _TITLE, _INTRO)
    if judgement.replay:
        return replace(chapter, empty="A replay has no times of its own.")
    trends = drifts(run, judgement)
    if not trends:
        return replace(
            chapter,
            empty="No metric with a criterion was measured in several sessions with "
            "known times.",
        )
    drifting = [drift for drift in trends if drift.drifts]
    more = len(drifting) - MAX_ROWS
    table = ("Metrics that drift", drift_table(drifting[:MAX_ROWS]))
    return replace(
        chapter,
        intro=f"{_INTRO} {words(trends)}",
        figures=(drift_figure(trends),),
        tables=(table,) if drifting else (),
        notes=(f"{more} more metrics drift.", _METHOD) if more > 0 else (_METHOD,),
    )


def words(trends: Sequence[Drift]) -> str:
    """Summarise the tests: 'No drift shown in 41 of 43 metrics; ...'."""
    tested = [drift for drift in trends if drift.p is not None]
    drifting = [drift for drift in tested if drift.drifts]
    untested = len(trends) - len(tested)
    if not tested:
        return (
            f"None of {_metrics(len(trends))} was measured in {LEAST_SESSIONS} or "
            "more sessions, the least for a test of a trend."
        )
    calm = f"{len(tested) - len(drifting)} of " if drifting else ""
    moves = "; ".join(["", *few(map(trend_words, drifting), _MAX_NAMED)])
    sentence = f"No drift shown in {calm}{_metrics(len(tested))}{moves}."
    if untested:
        sentence += (
            f" {_metrics(untested)} {'was' if untested == 1 else 'were'} measured in "
            f"fewer than {LEAST_SESSIONS} sessions, too few for a test."
        )
    return sentence


def trend_words(drift: Drift) -> str:
    """Describe a drift: 'ImbRing bw_4MiB falls by 3 % per hour (p = 2e-5)'."""
    moves = "rises" if drift.per_hour > 0 else "falls"
    return (
        f"{drift.name} {moves} by {_share(drift.per_hour)} per hour, "
        f"{'worse' if drift.worse else 'better'} (p = {drift.p:.2g})"
    )


def drift_table(trends: Sequence[Drift]) -> Table:
    """Return check, metric, slope, the change from first to last session, and p."""
    return Table(
        ("check", "metric", "per hour", "over the campaign", "to the", "sessions", "p"),
        tuple(
            (
                short(drift.check),
                drift.metric,
                _signed(drift.per_hour),
                _signed(drift.per_hour * drift.hours),
                "worse" if drift.worse else "better",
                text.exact(len(drift.levels)),
                "" if drift.p is None else f"{drift.p:.2g}",
            )
            for drift in trends
        ),
    )


def drift_figure(trends: Sequence[Drift]) -> Figure:
    """Draw the levels of all metrics; drifting metrics have a style of their own."""
    last = max((level.hours for drift in trends for level in drift.levels), default=0)
    unit, per_hour = ("minutes", 60) if last < _SHORT else ("hours", 1)
    drifting = [drift for drift in trends if drift.drifts][:_MAX_NAMED]
    rest = [drift for drift in trends if drift not in drifting][:_MAX_DRAWN]
    own = iter(STYLES)
    lines = [*(drift.name for drift in drifting), _ALL, *([_REST] if rest else [])]
    styles = {line: _FIXED.get(line) or next(own) for line in lines}
    points = [
        (drift.name if number < len(drifting) else _REST, drift.name, number, level)
        for number, drift in enumerate([*drifting, *rest])
        for level in drift.levels
    ]
    points += [(_ALL, _ALL, -1, level) for level in _middle(trends)]
    rows = [
        {
            "line": line,
            "order": lines.index(line),
            "name": name,
            "n": number,
            "x": round(level.hours * per_hour, 4),
            "y": five_digits(level.value),
        }
        for line, name, number, level in points
    ]
    drawn = len(drifting) + len(rest)
    note = f"Drawn are {drawn} of {len(trends)} metrics." if drawn < len(trends) else ""
    return Figure(
        name="drift",
        title="Every metric with a criterion, by session",
        detail="value of a session beside the median of its case; 1 is the median over "
        "the campaign",
        spec=_spec(rows, styles, unit, f"{_TITLE}: {words(trends)}"),
        table=drift_table(sorted(trends, key=lambda drift: drift.p is None)[:MAX_ROWS]),
        note=note,
        wide=True,
    )


def _middle(trends: Sequence[Drift]) -> list[Level]:
    """Return the median level of all metrics in each session, in the order of time."""
    sessions: dict[str, list[Level]] = {}
    for level in chain.from_iterable(drift.levels for drift in trends):
        sessions.setdefault(level.session, []).append(level)
    middle = [
        Level(
            session,
            statistics.median(level.hours for level in levels),
            statistics.median(level.value for level in levels),
            len(levels),
        )
        for session, levels in sessions.items()
    ]
    return sorted(middle, key=lambda level: (level.hours, level.value))


def _spec(
    rows: list[Row], styles: Mapping[str, Style], unit: str, description: str
) -> Row:
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
    layers = line_layers(
        "levels",
        "line",
        styles,
        place={"x": x, "detail": channel("n:N")},
        y=y,
        size=26,
        tooltip=tips(("name:N", "metric"), ("x:Q", unit), ("y:Q", "beside its median")),
    )
    return specification(layers, {"levels": rows}, _HEIGHT, description)


def _share(value: float) -> str:
    return f"{100 * abs(value):.2g} %"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "\N{MINUS SIGN}") + _share(value)


def _metrics(count: int) -> str:
    return f"{count} metric{'' if count == 1 else 's'}"
