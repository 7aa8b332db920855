"""The state of the nights of a system, computed anew from closed runs and the ledger.

The same runs, the same ledger and the same settings give the same alarms.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from seatrial.errors import SeatrialError
from seatrial.history.decide import decide
from seatrial.history.records import Alarm, Decision, Visits
from seatrial.model.manifest import read_manifest
from seatrial.nightly.alarms import limit_alarms, merged
from seatrial.nightly.nights import night_at
from seatrial.nightly.settings import Settings
from seatrial.nightly.visits import day_of, visits_of
from seatrial.runs.closed_run import closed_runs
from seatrial.runs.ledger import LEDGER, read_ledger
from seatrial.runs.ledger_entries import Entry, Ledger, parse_ledger

CAMPAIGN = "nightly"
"""The campaign of the nights."""

Standing = Literal["open", "acknowledged", "closed"]


@dataclass(frozen=True)
class State:
    """The state after the last night.

    `classes` are the nodes of the system by class. `folder` has its runs and its
    ledger. `alarms` are those of `decision` (history) and of the limits of each night,
    in the order of their nights, one for each onset. `last` is when the last night
    ended, in UTC; None before the first. `yielded` counts by night the cases that gave
    way: their jobs made room for users, or the window had no time for them. A run of
    each night of `in_window` began in its window. `unreadable` are runs that count for
    nothing, with the reason. `model`: a run has the numbers of a model machine.
    """

    system: str
    settings: Settings
    folder: Path
    classes: Mapping[str, Sequence[str]]
    visits: Visits
    decision: Decision
    alarms: tuple[Alarm, ...]
    ledger: Ledger
    last: datetime | None
    yielded: Mapping[date, int] = field(default_factory=dict)
    in_window: frozenset[date] = frozenset()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    model: bool = False

    def with_new_entries(self) -> "State":
        """Return the state with the ledger as it is now; it has no new run."""
        return replace(self, ledger=_ledger(self.folder))

    def standing(self, alarm: Alarm, today: date) -> Standing:
        """Return if an alarm is open; an acknowledgement ends after its date."""
        if alarm.closed is not None:
            return "closed"
        noted = [e for e in self._of("acknowledged") if e.alarm == alarm.name]
        if noted and date.fromisoformat(noted[-1].until) >= today:
            return "acknowledged"
        return "open"

    def open_alarms(self, today: date) -> list[Alarm]:
        """Return the alarms that are neither closed nor acknowledged."""
        return [one for one in self.alarms if self.standing(one, today) == "open"]

    def alarm(self, name: str) -> Alarm:
        """Return an alarm by its name; SeatrialError lists the known ones."""
        for alarm in self.alarms:
            if alarm.name == name:
                return alarm
        known = ", ".join(alarm.name for alarm in self.alarms) or "none"
        raise SeatrialError(
            f"no alarm {name!r} of {self.system}; known alarms: {known}"
        )

    @cached_property
    def quarantined(self) -> dict[str, Entry]:
        """The nodes that we took out and did not release, with the entry of each."""
        out: dict[str, Entry] = {}
        for entry in self.ledger.entries:
            if entry.event == "quarantined":
                out[entry.node] = entry
            elif entry.event == "released":
                out.pop(entry.node, None)
        return out

    @property
    def skipped(self) -> list[Entry]:
        """The entries of nights that did not run."""
        return self._of("skipped")

    def unseen(self, today: date) -> dict[str, int | None]:
        """Return the nights since each node was measured; None if it never was."""
        visits, now = self.visits, np.datetime64(today, "D")
        column = {name: index for index, name in enumerate(visits.nodes)}
        nights: dict[str, int | None] = {}
        for name in (node for nodes in self.classes.values() for node in nodes):
            nights[name] = None
            if name in column:
                visited = visits.configurations[:, column[name]] >= 0
                last = visits.nights[visited][-1:]
                nights[name] = int((now - last[0]).astype(int)) if last.size else None
        return nights

    def coverage(self, today: date) -> float:
        """Return the share of nodes that were measured within the declared nights."""
        nights = self.unseen(today).values()
        every = self.settings.rules.every
        seen = sum(1 for one in nights if one is not None and one <= every)
        return seen / len(nights) if nights else 0.0

    def _of(self, event: str) -> list[Entry]:
        return [entry for entry in self.ledger.entries if entry.event == event]


def read_state(
    results: Path,
    system: str,
    settings: Settings,
    classes: Mapping[str, Sequence[str]],
) -> State:
    """Read the nights of a system; SeatrialError if the ledger is damaged."""
    folder = results / system
    ledger = _ledger(folder)
    paths, unreadable = _paths(results, system)
    nights = []
    for path in paths:
        try:
            nights.append(night_at(path, settings.rules.alarms_a_year))
        except SeatrialError as error:
            unreadable[path.name] = str(error)
    class_of = {node: name for name, nodes in classes.items() for node in nodes}
    repairs = [entry for entry in ledger.entries if entry.event == "repaired"]
    visits = visits_of(nights, class_of, settings.window, repairs)
    decision = decide(visits, settings.rules)
    faults: dict[date, dict[str, list[str]]] = {
        day: {} for day in visits.nights.tolist()
    }
    for night in nights:
        for fault in night.faults:
            of_night = faults[day_of(night, settings.window)]
            of_night.setdefault(fault.place, []).append(fault.text)
    pairs: dict[date, set[str]] = {day: set() for day in faults}
    for night in nights:
        pairs[day_of(night, settings.window)].update(night.pairs)
    most = settings.rules.most_suspects
    of_limits = limit_alarms(visits, [*faults.values()], [*pairs.values()], most)
    yielded: Counter[date] = Counter()
    for night in nights:
        yielded[day_of(night, settings.window)] += night.yielded
    return State(
        system=system,
        settings=settings,
        folder=folder,
        classes=classes,
        visits=visits,
        decision=decision,
        alarms=merged([*decision.alarms, *of_limits]),
        ledger=ledger,
        last=max((_moment(n.ended) for n in nights if n.series), default=None),
        in_window=frozenset(
            day
            for one in nights
            if (day := settings.window.night(datetime.fromtimestamp(one.started)))
        ),
        unreadable=unreadable,
        yielded=yielded,
        model=any(one.model for one in nights),
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _ledger(folder: Path) -> Ledger:
    ledger = parse_ledger(read_ledger(folder) or b"")
    if ledger.problem:
        raise SeatrialError(
            f"{folder / LEDGER}: {ledger.problem}; expected every line as it was "
            "written; nothing is decided from it; see `seatrial ledger show "
            f"{folder.name}`"
        )
    return ledger


def _paths(results: Path, system: str) -> tuple[list[Path], dict[str, str]]:
    """Return the closed runs of nights, oldest first, and runs without a manifest."""
    paths, unreadable = [], {}
    for path in closed_runs(results, system):
        try:
            if _is_night(path):
                paths.append(path)
        except SeatrialError as error:
            unreadable[path.name] = str(error)
    return paths, unreadable


def _is_night(path: Path) -> bool:
    manifest = read_manifest(path)
    return manifest.get("campaign") == CAMPAIGN and not manifest.get("replay")


def local_time(entry: Entry) -> datetime:
    """Return the local time of an entry of the ledger."""
    return datetime.fromisoformat(entry.time).astimezone()
