"""Nights as arrays: what was measured of each node in each night."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from seatrial.history.records import Metric, Visits
from seatrial.names import natural_key
from seatrial.nightly.nights import Night
from seatrial.nightly.window import Window
from seatrial.runs.ledger_entries import Entry


def day_of(night: Night, window: Window) -> date:
    """Return the night of a run: the day on which its window opened.

    A run outside of the window, a re-test by hand, belongs to the next night: it cannot
    change what was decided about an earlier one.
    """
    local = datetime.fromtimestamp(night.started)
    return window.night(local) or window.next_opening(local).date()


def visits_of(
    nights: Sequence[Night],
    class_of: dict[str, str],
    window: Window,
    repairs: Sequence[Entry],
) -> Visits:
    """Arrange nights as arrays; of two runs in one night, the later numbers count.

    The run of a night is the one of the most nodes: re-tests are smaller.

    `class_of` has the class of each node of the system; nodes that it does not have are
    left out. `repairs` are entries of the ledger.
    """
    days = [day_of(night, window) for night in nights]
    dates = sorted(set(days))
    row = {day: index for index, day in enumerate(dates)}
    names = {name for night in nights for name in night.configurations}
    nodes = sorted(names & class_of.keys(), key=natural_key)
    column = {name: index for index, name in enumerate(nodes)}
    metrics = _metrics(nights)
    size = (len(dates), len(nodes))
    values = np.full((*size, len(metrics)), np.nan, np.float32)
    configurations = np.full(size, -1)
    configured: dict[tuple[tuple[str, str], ...], int] = {}
    times = np.full(size, np.nan)
    runs: list[Night | None] = [None] * len(dates)
    leafs: dict[str, str] = {}
    for day, night in zip(days, nights, strict=True):
        at = row[day]
        largest = runs[at]
        if largest is None or _size(night) >= _size(largest):
            runs[at] = night
        leafs |= night.leafs
        for one in night.series:
            known = [
                (column[n], value) for n, value in one.values.items() if n in column
            ]
            places, numbers = zip(*known, strict=True) if known else ((), ())
            values[at, list(places), metrics[one.metric]] = numbers
        for name, texts in night.configurations.items():
            if name in column:
                key = tuple(sorted(texts.items()))
                number = configured.setdefault(key, len(configured))
                configurations[at, column[name]] = number
                times[at, column[name]] = night.started
    return Visits(
        nights=np.array(dates, dtype="datetime64[D]"),
        runs=tuple(night.run for night in runs if night is not None),
        nodes=tuple(nodes),
        classes=tuple(class_of[name] for name in nodes),
        metrics=tuple(metrics),
        values=values,
        configurations=configurations,
        configured=tuple(dict(texts) for texts in configured),
        repaired=_repaired(times, column, repairs),
        groups=_groups(leafs, column),
    )


def _size(night: Night) -> int:
    return len(night.configurations)


def _metrics(nights: Sequence[Night]) -> dict[Metric, int]:
    known = {one.metric: None for night in nights for one in night.series}
    return {metric: index for index, metric in enumerate(known)}


def _groups(
    leafs: dict[str, str], column: dict[str, int]
) -> dict[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for node, leaf in leafs.items():
        if node in column:
            groups.setdefault(f"leaf {leaf}", []).append(node)
    return {name: tuple(nodes) for name, nodes in sorted(groups.items())}


def _repaired(times: Any, column: dict[str, int], repairs: Sequence[Entry]) -> Any:
    """Mark the first visit of a node after each of its repairs."""
    marks = np.zeros(times.shape, dtype=bool)
    for entry in repairs:
        if entry.node in column:
            moment = datetime.fromisoformat(entry.time).timestamp()
            later = np.flatnonzero(times[:, column[entry.node]] >= moment)
            marks[later[:1], column[entry.node]] = True
    return marks
