"""Pages of the nights: an index with what matters this morning, and one for each night.

A page is written only if its content has changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from seatrial.history.records import Alarm
from seatrial.names import natural_key, node_set
from seatrial.nightly import explanation
from seatrial.nightly.actions import recommended
from seatrial.nightly.charts import chart
from seatrial.nightly.state import Standing, State, local_time
from seatrial.report.render.html import FILTERS, SIZES, render
from seatrial.report.wording import MODEL_NOTICE
from seatrial.runs.open_run import write_file

INDEX = "index.html"
_MOST_CHARTS, _MOST_LEARNING, _MOST_NOTES, _MOST_SKIPPED = 3, 50, 30, 30


@dataclass(frozen=True)
class Shown:
    """An alarm as pages show it; `charts` are SVG.

    An open alarm has commands: they take its node out, and acknowledge it.
    """

    alarm: Alarm
    standing: Standing
    title: str
    onset: str
    lines: tuple[str, ...]
    commands: tuple[str, ...]
    acknowledging: str
    charts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A night in the index: its run, and counts of nodes, alarms and lost cases.

    `alarms` began in it; `yielded` cases gave way.
    """

    night: date
    run: str
    nodes: int
    alarms: int
    yielded: int


def write_pages(state: State, home: Path, out: Path, today: date) -> list[Path]:
    """Write the index and the page of each night to a folder; return what is new.

    Templates are those below `home`. Raises SeatrialError if one is missing, OSError if
    a page cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in _pages(state, home, out, today):
        file = out / name
        if not file.is_file() or file.read_bytes() != text.encode():
            write_file(file, text.encode())
            written.append(file)
    return written


def _pages(
    state: State, home: Path, out: Path, today: date
) -> Iterator[tuple[str, str]]:
    """Yield name and content of each page that may be new, the index last.

    The page of a night without an alarm changes until the next night, by a test of a
    node in between too, or with the declared rate of false alarms.
    """
    mark = out / f".rate-{state.settings.rules.alarms_a_year:g}"
    if not mark.exists():
        for old in (*out.glob(".rate-*"), *out.glob("????-??-??.html")):
            old.unlink()
        mark.touch()
    rows = list(_rows(state))
    by_night: dict[date, list[Alarm]] = {row.night: [] for row in rows}
    for alarm in state.alarms:
        by_night.setdefault(alarm.night.astype(date), []).append(alarm)
    for index, row in enumerate(rows):
        name = f"{row.night}.html"
        if row not in rows[-2:] and not row.alarms and (out / name).is_file():
            continue
        shown = [_shown(state, a, today, charts=True) for a in by_night[row.night]]
        yield name, _night_page(state, home, index, row, shown)
    yield INDEX, _index(state, home, rows, today)


def _rows(state: State) -> Iterator[Row]:
    visits = state.visits
    new = [alarm.night.astype(date) for alarm in state.alarms]
    counts = (visits.configurations >= 0).sum(axis=1).tolist()
    nights = visits.nights.tolist()
    for night, run, nodes in zip(nights, visits.runs, counts, strict=True):
        gave_way = state.yielded.get(night, 0)
        yield Row(night, run, nodes, new.count(night), gave_way)


def _shown(state: State, alarm: Alarm, today: date, *, charts: bool) -> Shown:
    losses = alarm.losses[:_MOST_CHARTS] if charts else ()
    standing = state.standing(alarm, today)
    is_open = standing == "open"
    out = recommended(state, alarm) if is_open else []
    return Shown(
        alarm,
        standing,
        explanation.title(alarm),
        explanation.onset(alarm),
        tuple(map(explanation.change_text, alarm.changes)),
        tuple(out),
        explanation.acknowledging(state, alarm) if is_open else "",
        tuple(filter(None, (chart(state.visits, alarm, loss) for loss in losses))),
    )


def _night_page(
    state: State, home: Path, index: int, row: Row, alarms: list[Shown]
) -> str:
    measured = state.visits.configurations[index] >= 0
    names = np.array(state.visits.nodes, dtype=object)
    classes = np.array(state.visits.classes, dtype=object)
    nodes = {
        name: node_set(names[measured & (classes == name)].tolist())
        for name in sorted({*classes[measured].tolist()})
    }
    notes = state.decision.notes
    return _render(
        state,
        home,
        "night.html.j2",
        row=row,
        nodes=nodes,
        alarms=alarms,
        improvements=[n for n in notes if n.night.astype(date) == row.night],
    )


def _index(state: State, home: Path, rows: list[Row], today: date) -> str:
    every = state.settings.rules.every
    ages = state.unseen(today)
    unseen = {node: age for node, age in ages.items() if age is None or age > every}
    learning = sorted(
        state.decision.learning, key=lambda one: (one.visits, natural_key(one.node))
    )
    shown = [_shown(state, alarm, today, charts=False) for alarm in state.alarms]
    return _render(
        state,
        home,
        "nights.html.j2",
        today=today,
        rows=rows[::-1],
        lasting=[one for one in shown if one.standing == "open"],
        quiet=[one for one in shown if one.standing == "acknowledged"],
        closed=[one for one in shown if one.standing == "closed"][::-1],
        coverage=f"{100 * state.coverage(today):.0f} %",
        never=node_set(node for node, age in unseen.items() if age is None),
        unseen={node: age for node, age in unseen.items() if age is not None},
        learning=learning[:_MOST_LEARNING],
        learners=len(learning),
        out=_out(state),
        improvements=state.decision.notes[-_MOST_NOTES:][::-1],
        skipped=[
            (f"{local_time(entry):%Y-%m-%d %H:%M}", entry.reason)
            for entry in state.skipped[-_MOST_SKIPPED:][::-1]
        ],
    )


def _out(state: State) -> dict[str, list[str]]:
    """Return the history of each node in quarantine, from the ledger."""
    events = ("quarantined", "released", "repaired")
    return {
        node: [
            f"{local_time(entry):%Y-%m-%d %H:%M}: {entry.event}"
            + (f", {entry.alarm}" if entry.alarm else "")
            + (f": {entry.reason}" if entry.reason else "")
            for entry in state.ledger.entries
            if entry.node == node and entry.event in events
        ]
        for node in state.quarantined
    }


def _render(state: State, home: Path, template: str, **more: Any) -> str:
    notes = [MODEL_NOTICE] if state.model else []
    shared = {"state": state, "rules": state.settings.rules, "notes": notes}
    filters = {**FILTERS, "loss": explanation.loss_text, "nodes": node_set}
    return render(home, template, filters, charts=False, **SIZES, **shared, **more)
