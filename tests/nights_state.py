"""A modelled state of nights: every kind of alarm, and nodes in every state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from seatrial.history.records import (
    Alarm,
    Change,
    Decision,
    Learning,
    Loss,
    Metric,
    Note,
    Visits,
    Watched,
)
from seatrial.history.rules import Rules
from seatrial.nightly.settings import Notify, Settings
from seatrial.nightly.state import State
from seatrial.nightly.window import Window
from seatrial.runs.ledger import note_night, read_ledger
from seatrial.runs.ledger_entries import parse_ledger

SYSTEM = "lab"
FIRST = np.datetime64("2026-03-01", "D")
NIGHTS = 40
TODAY = (FIRST + NIGHTS - 1).astype(date)
CLASSES = {
    "batch": tuple(f"cn{number:02}" for number in range(1, 11)),
    "fat": ("fat1", "fat2"),
}
BW = Metric("ImbRing", "ring", "mpi", "lab:batch", "bw_4MiB", "mean", "MB/s", True)
LATENCY = Metric("Osu", "osu", "mpi", "lab:batch", "latency_8B", "p50", "us", False)


def night(number: int) -> np.datetime64:
    """Return the date of a night, from 0."""
    return FIRST + number


def alarm(kind: Any, at: int, nodes: Sequence[str], **more: Any) -> Alarm:
    """Return an alarm that history found in a night; `more` are its other fields."""
    name = f"{night(at)}-{nodes[0] if kind == 'node' else kind}"
    fields: dict[str, Any] = {
        "losses": (Loss(BW, 100.0, 90.0, 0.1), Loss(LATENCY, 2.0, 2.2, 0.0909)),
        "evidence": 54_321.0,
    }
    onset = (night(at - 6), night(at - 4))
    return Alarm(name, kind, tuple(nodes), night(at), onset, **fields | more)


FIRMWARE = Change("hca firmware", "20.39", "20.41", CLASSES["batch"], True)
ALARMS = (
    alarm("node", 12, ["cn02"], closed=night(20)),
    alarm("explained", 15, CLASSES["batch"], changes=(FIRMWARE,), closed=night(15)),
    alarm("machine", 22, CLASSES["fat"]),
    alarm("common", 25, ["cn05", "cn06"], shared="leaf l3"),
    alarm("node", 30, ["cn07"]),
    alarm(
        "node", 39, ["cn03"], losses=(), evidence=0.0, faults=("ring bw_4MiB: slow",)
    ),
)
OPEN, ACKNOWLEDGED, CLOSED = ALARMS[5], ALARMS[4], ALARMS[0]
OUT = "cn07"
"""The node in quarantine."""

NEVER, UNSEEN, WATCHED = "fat2", "cn10", "cn08"


def visits(classes: Mapping[str, Sequence[str]], nights: int, every: int) -> Visits:
    """Measure all nodes, each once in `every` nights: cn07 is slower from night 25."""
    nodes = [node for of_class in classes.values() for node in of_class]
    random = np.random.default_rng(7)
    size = (nights, len(nodes))
    values = np.exp(0.02 * random.standard_normal((*size, 2))) * [100.0, 2.0]
    if "cn07" in nodes:
        values[25:, nodes.index("cn07")] *= [0.9, 1.1]
    turn = np.add.outer(np.arange(nights), np.arange(len(nodes)))
    seen = turn % every == 0
    if UNSEEN in nodes:
        seen[12:, nodes.index(UNSEEN)] = False
    values[~seen] = np.nan
    return Visits(
        nights=FIRST + np.arange(nights),
        runs=tuple(f"{night(at)}-nightly" for at in range(nights)),
        nodes=tuple(nodes),
        classes=tuple(name for name, of in classes.items() for _ in of),
        metrics=(BW, LATENCY),
        values=values.astype(np.float32),
        configurations=np.where(seen, 0, -1),
        configured=({"hca firmware": "20.41"},),
        repaired=np.zeros(size, dtype=bool),
        groups={"leaf l3": ("cn05", "cn06")},
    )


@dataclass
class Modelled:
    """A state in the making; its ledger is a file of `folder`."""

    folder: Path
    notify: Notify = field(default_factory=Notify)
    rules: Rules = field(default_factory=lambda: Rules(alarms_a_year=2.5, every=2))
    classes: dict[str, Sequence[str]] = field(default_factory=lambda: {**CLASSES})
    alarms: tuple[Alarm, ...] = ALARMS
    nights: int = NIGHTS
    system: str = SYSTEM
    decision: Decision = field(
        default_factory=lambda: Decision(
            alarms=(),
            watched=(Watched(WATCHED, night(36), 3, 41.5),),
            learning=(Learning("cn09", 9, 14), Learning("fat1", 12, 14)),
            notes=(Note(night(NIGHTS - 1), "", "batch: ring bw_4MiB: 5.0 % better"),),
        )
    )

    def state(self) -> State:
        """Return the state by the ledger as it is now."""
        known = {
            name: [node for node in nodes if node != NEVER and self.nights]
            for name, nodes in self.classes.items()
        }
        of_nights = visits(known, self.nights, self.rules.every)
        end = datetime.combine(TODAY, time(2), UTC)
        return State(
            system=self.system,
            settings=Settings(
                file=self.folder / "nightly.yaml",
                window=Window(time(1), time(5)),
                node_hours=40.0,
                rules=self.rules,
                driver=(),
                jobs=(),
                notify=self.notify,
            ),
            folder=self.folder,
            classes=self.classes,
            visits=of_nights,
            decision=replace(self.decision, alarms=self.alarms),
            alarms=self.alarms,
            ledger=parse_ledger(read_ledger(self.folder) or b""),
            last=end if self.nights else None,
        )

    def note(self, event: Any, **fields: str) -> None:
        """Write an entry of the ledger."""
        note_night(self.folder, event, **fields)

    def events(self, event: str) -> list[tuple[str, str]]:
        """Return alarm and reason of the entries of an event."""
        entries = self.state().ledger.entries
        return [(one.alarm, one.reason) for one in entries if one.event == event]


def modelled(folder: Path, **more: Any) -> Modelled:
    """Return a system with an acknowledged alarm, a node out, and skipped nights."""
    one = Modelled(folder, **more)
    until = str(TODAY + timedelta(days=10))
    one.note("acknowledged", alarm=ACKNOWLEDGED.name, until=until, reason="ordered")
    out = {"node": OUT, "alarm": ACKNOWLEDGED.name, "token": "0123"}
    one.note("quarantined", reason="reservation now", **out)
    one.note("skipped", reason="0 of 12 nodes are idle")
    return one
