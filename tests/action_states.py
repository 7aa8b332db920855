"""The state of nights with some alarms, and without any measurement."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from seatrial.history.records import Alarm, Decision, Kind, Visits
from seatrial.history.rules import Rules
from seatrial.nightly.settings import Settings
from seatrial.nightly.state import State
from seatrial.nightly.window import Window
from seatrial.runs.ledger import read_ledger
from seatrial.runs.ledger_entries import parse_ledger

NODES = [f"cn{n:02d}" for n in range(1, 101)]
TODAY = date(2026, 11, 25)
NIGHT = np.datetime64("2026-11-25")
NO_VISITS = Visits(
    np.array([], dtype="datetime64[D]"),
    (),
    (),
    (),
    (),
    np.empty((0, 0, 0)),
    np.empty((0, 0), dtype=np.int64),
    (),
    np.empty((0, 0), dtype=bool),
)


def alarm(node: str, kind: Kind = "node", days: int = 0, closed: bool = False) -> Alarm:
    night = NIGHT - np.timedelta64(days, "D")
    end = NIGHT if closed else None
    name = f"{night}-{node}"
    return Alarm(name, kind, (node,), night, (night, night), closed=end)


def state(folder: Path, *alarms: Alarm, **settings: Any) -> State:
    settings = {"action": "reservation", **settings}
    window = Window(datetime.min.time(), datetime.max.time())
    file = folder / "nightly.yaml"
    return State(
        system="lab",
        settings=Settings(file, window, 1.0, Rules(), (), (), **settings),
        folder=folder / "runs",
        classes={"batch": NODES},
        visits=NO_VISITS,
        decision=Decision((), (), (), ()),
        alarms=alarms,
        ledger=parse_ledger(read_ledger(folder / "runs") or b""),
        last=None,
    )
