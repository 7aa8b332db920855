"""Alarms of the nights: by the limits of each night, and by history, as one list.

What the limits find is an alarm once, until three good nights in a row end it. An alarm
of history on a node that has one already is the same alarm, with more evidence.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seatrial.history.records import Alarm, Kind, Visits
from seatrial.history.rules import GOOD_NIGHTS
from seatrial.names import natural_key
from seatrial.nightly.tonight import PAIR, pair_name


def _attributed(
    found: Mapping[str, Sequence[str]], suspects: Set[str]
) -> dict[str, tuple[str, ...]]:
    """Return the faults by place: a slow pair of a suspect is a fault of the suspect.

    Both directions of a pair are one place.
    """
    by_place: dict[str, tuple[str, ...]] = {}
    for place, texts in found.items():
        ends = sorted(place.split(PAIR), key=natural_key)
        named = [end for end in ends if end in suspects]
        where = named[0] if named else pair_name(ends)
        by_place[where] = (*by_place.get(where, ()), *texts)
    return by_place


@dataclass
class _Lasting:
    """An alarm of limits that lasts, with the good nights of each of its places."""

    alarm: Alarm
    good: dict[str, int]

    def night(self, found: Set[str], measured: Set[str]) -> bool:
        """Count the good nights of each place; return True if all have enough.

        The places need not have the same good nights.
        """
        for place in self.good:
            if place in found:
                self.good[place] = 0
            elif place in measured:
                self.good[place] += 1
        return min(self.good.values()) >= GOOD_NIGHTS


def limit_alarms(
    visits: Visits,
    faults: Sequence[Mapping[str, Sequence[str]]],
    pairs: Sequence[Set[str]],
    most: int,
) -> list[Alarm]:
    """Return the alarms of the limits of each night.

    `faults` have the texts by place, and `pairs` the measured pairs, for each night of
    `visits`. More than `most` nodes that fail in one night for the first time have a
    common cause.
    """
    alarms: list[Alarm] = []
    lasting: list[_Lasting] = []
    column = {name: index for index, name in enumerate(visits.nodes)}
    for row, (night, found) in enumerate(zip(visits.nights, faults, strict=True)):
        suspects = {place for one in lasting for place in one.good} | found.keys()
        found = _attributed(found, suspects & column.keys())
        measured = _measured(visits, row) | pairs[row]
        for one in [*lasting]:
            if one.night(found.keys(), measured):
                alarms.append(replace(one.alarm, closed=night))
                lasting.remove(one)
        known = {place for one in lasting for place in one.good}
        new = {place: texts for place, texts in found.items() if place not in known}
        lasting += _begun(night, new, column, most)
    alarms += [one.alarm for one in lasting]
    return alarms


def _measured(visits: Visits, row: int) -> set[str]:
    """Return the nodes and leafs that a night measured, and '' for the whole."""
    visited = visits.configurations[row] >= 0
    nodes = {visits.nodes[index] for index in np.flatnonzero(visited)}
    leafs = {name for name, own in visits.groups.items() if not nodes.isdisjoint(own)}
    return {*nodes, *leafs, *([""] if nodes else [])}


def _begun(
    night: np.datetime64,
    found: Mapping[str, Sequence[str]],
    column: Mapping[str, int],
    most: int,
) -> list[_Lasting]:
    """Return the alarms that begin in a night."""

    def alarm(name: str, kind: Kind, nodes: Sequence[str], **more: Any) -> Alarm:
        onset = (night, night)
        return Alarm(f"{night}-{name}", kind, tuple(nodes), night, onset, **more)

    nodes = sorted(found.keys() & column.keys(), key=natural_key)
    begun = []
    if len(nodes) > most:
        texts = tuple(f"{node}: {text}" for node in nodes for text in found[node])
        begun.append(
            _Lasting(
                alarm("limits", "common", nodes, faults=texts), dict.fromkeys(nodes, 0)
            )
        )
    else:
        for node in nodes:
            one = alarm(node, "node", [node], faults=tuple(found[node]))
            begun.append(_Lasting(one, {node: 0}))
    others = sorted(found.keys() - column.keys())
    pairs = [place for place in others if PAIR in place]
    if len(pairs) > most:
        ends = sorted({e for p in pairs for e in p.split(PAIR)}, key=natural_key)
        known = [end for end in ends if end in column]
        texts = tuple(f"{place}: {text}" for place in pairs for text in found[place])
        shared = f"{len(pairs)} pairs of nodes"
        one = alarm("pairs", "common", known, shared=shared, faults=texts)
        begun.append(_Lasting(one, dict.fromkeys(pairs, 0)))
        others = [place for place in others if place not in pairs]
    for place in others:
        name = (place or "run").replace(" ", "")
        ends = [end for end in place.split(PAIR) if end in column]
        shared, texts = place or "the whole run", tuple(found[place])
        one = alarm(name, "common", ends, shared=shared, faults=texts)
        begun.append(_Lasting(one, {place: 0}))
    return begun


def merged(alarms: Sequence[Alarm]) -> tuple[Alarm, ...]:
    """Return the alarms by night; of several of one node at one time, the first.

    It takes over the evidence of the others.
    """
    kept: list[Alarm] = []
    for alarm in sorted(alarms, key=lambda one: (one.night, one.name)):
        for index, first in enumerate(kept):
            if _same(first, alarm):
                kept[index] = replace(
                    first,
                    losses=first.losses or alarm.losses,
                    evidence=max(first.evidence, alarm.evidence),
                    changes=first.changes or alarm.changes,
                    faults=(*first.faults, *alarm.faults),
                    closed=_later(first, alarm),
                )
                break
        else:
            kept.append(alarm)
    return tuple(kept)


def _same(first: Alarm, alarm: Alarm) -> bool:
    """Return True if an alarm of a node comes while that node has one that lasts."""
    lasts = first.closed is None or bool(first.closed > alarm.night)
    return lasts and first.kind == alarm.kind == "node" and first.nodes == alarm.nodes


def _later(first: Alarm, alarm: Alarm) -> np.datetime64 | None:
    if first.closed is None or alarm.closed is None:
        return None
    return max(first.closed, alarm.closed)
