"""Exchanged hardware: a node of the same name with another serial number or GUID.

The settings at start and end of each run tell. An exchange is a repair: numbers of the
old hardware do not count for the new one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl

from seatrial.judge.joint_runs import start_time
from seatrial.judge.presence import last_away
from seatrial.model.serial_numbers import is_placeholder
from seatrial.runs.closed_run import Run
from seatrial.runs.ledger_view import LedgerView, Repair

_IDENTITY = ("serial", "guid")


def with_exchanges(ledger: LedgerView | None, runs: Sequence[Run]) -> LedgerView | None:
    """Add the exchanges between runs, and within them, to the declared repairs.

    `runs` are in the order of time. Replays and imports have none.
    """
    if ledger is None:
        return None
    repairs = sorted((*ledger.repairs, *exchanges(runs)), key=lambda one: one.time)
    return replace(ledger, repairs=tuple(repairs))


def exchanges(runs: Sequence[Run]) -> Iterator[Repair]:
    """Yield an exchange for each node that another serial number or GUID was read of.

    It counts from the start of the run that first read the new one. If that run began
    with the old one, it counts from when the node was last away in it, or else from the
    end of the run. A reading that is missing, or a placeholder, shows nothing.
    """
    known: dict[tuple[str, str, str], str] = {}
    for run in runs:
        for moment in ("start", "end"):
            changed: dict[str, list[str]] = {}
            for (node, subject, key), value in _identities(run, moment):
                before = known.get((node, subject, key), value)
                if before != value:
                    one = f"{subject} {key} {before}, now {value}"
                    changed.setdefault(node, []).append(one)
                known[node, subject, key] = value
            for node, words in changed.items():
                when, time = _moment(node, run, moment)
                yield Repair(node, time, f"exchanged: {'; '.join(words)}, {when}")


def _moment(node: str, run: Run, moment: str) -> tuple[str, float]:
    """Return when a node got hardware that was first read at a moment of a run."""
    name = run.manifest["run"]
    if moment == "start":
        return f"at the start of run {name}", start_time(run)
    away = last_away(node, run)
    if away is None:
        return f"at the end of run {name}", _end_time(run)
    return f"in run {name}", away


def _identities(run: Run, moment: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield the serial numbers and GUIDs that a run read at a moment."""
    if run.settings is None:
        return
    wanted = pl.col("key").is_in(_IDENTITY) & (pl.col("moment") == moment)
    rows = run.settings.filter(wanted & pl.col("actual").is_not_null())
    columns = ("node", "subject", "key", "actual")
    for node, subject, key, actual in rows.select(columns).iter_rows():
        if not is_placeholder(actual):
            yield (node, subject, key), actual


def _end_time(run: Run) -> float:
    text = run.manifest.get("ended")
    return datetime.fromisoformat(text).timestamp() if text else start_time(run)
