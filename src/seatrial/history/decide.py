"""Decide which nodes became worse, from all nights so far.

The nights are taken in their order, each once. So the decision about a night never
depends on later nights. Only the state of an alarm may grow: a later node may join it,
and it may close.
"""

import numpy as np

from seatrial.history.book import Book
from seatrial.history.causes import Changes
from seatrial.history.detector import LAG, LEAST, Integers
from seatrial.history.entries import Class
from seatrial.history.part import Part
from seatrial.history.records import Decision, Learning, Visits, Watched
from seatrial.history.rules import Rules

NEEDED = LEAST + LAG
"""Visits until a baseline is known."""


def decide(visits: Visits, rules: Rules) -> Decision:
    """Return the alarms, watched and learning nodes, and notes after the last night."""
    book = Book(visits, rules, Changes(visits))
    classes = _classes(visits, rules)
    days = visits.nights.astype("datetime64[D]").astype(np.int64)
    for row, day in enumerate(days.tolist()):
        _night(book, classes, row, day - int(days[0]))
    return Decision(
        book.alarms(),
        tuple(one for of in classes for one in _watched(of, visits)),
        tuple(one for of in classes for one in _learning(of, visits)),
        tuple(book.notes),
    )


def _classes(visits: Visits, rules: Rules) -> list[Class]:
    """Return the classes, each with the metrics that a node of it has."""
    signs = np.array([1.0 if m.higher_is_better else -1.0 for m in visits.metrics])
    measured = np.zeros((len(visits.nodes), len(visits.metrics)), dtype=bool)
    for values in visits.values:
        measured |= ~np.isnan(values)
    names = np.array(visits.classes, dtype=object)
    classes = []
    for name in sorted({*visits.classes}):
        nodes = np.flatnonzero(names == name)
        metrics = np.flatnonzero(measured[nodes].any(axis=0))
        if metrics.size:
            classes.append((name, nodes, metrics))
    count = len(classes)
    return [
        Class(
            name,
            Part(len(nodes), signs[metrics], rules, len(nodes) / len(names), count),
            nodes,
            metrics,
        )
        for name, nodes, metrics in classes
    ]


def _night(book: Book, classes: list[Class], row: int, night: int) -> None:
    visits = book.visits
    changed, repaired = book.changes.night(row, night), visits.repaired[row]
    book.changed(set(np.flatnonzero(changed | repaired).tolist()))
    found, seen = [], set()
    for of in classes:
        values = visits.values[row][np.ix_(of.nodes, of.metrics)].astype(np.float64)
        visited = visits.configurations[row, of.nodes] >= 0
        here = visited | ~np.isnan(values).all(axis=1)
        local, nodes = np.flatnonzero(here), of.nodes[here]
        seen.update(nodes.tolist())
        marks = changed[nodes], repaired[nodes]
        found.append((of, of.part.night(night, local, values[here], *marks)))
    book.night(found)
    book.follow(night, seen)


def _watched(of: Class, visits: Visits) -> list[Watched]:
    fresh = of.part.nodes.losses.fresh
    nodes: Integers = of.part.watched
    start = visits.nights[0].astype("datetime64[D]") if nodes.size else None
    return [
        Watched(
            visits.nodes[of.nodes[node]],
            start + fresh.since[node],
            int(fresh.visits[node]),
            float(evidence),
        )
        for node, evidence in zip(nodes, fresh.evidence(nodes), strict=True)
    ]


def _learning(of: Class, visits: Visits) -> list[Learning]:
    recent = of.part.nodes.losses.detector.baselines.recent
    counts = (~np.isnan(recent)).sum(axis=2).max(axis=1)
    return [
        Learning(visits.nodes[of.nodes[node]], int(counts[node]), NEEDED)
        for node in np.flatnonzero(counts < NEEDED)
    ]
