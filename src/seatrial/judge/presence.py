"""When a delivered node was away in the sessions of runs, and how often it measured."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from seatrial.runs.closed_run import Run


def presence(node: str, runs: Sequence[Run]) -> str:
    """Return `absent from .. to .., measured in 5 of 8 sessions`; times are in UTC.

    '' for a node that no session measured, or that was never away.
    """
    sessions = [session for run in runs for session in run.manifest.get("sessions", ())]
    away = [span for session in sessions for span in _away(node, session)]
    measured = {
        (run.manifest["run"], case.session)
        for run in runs
        for case in run.cases
        if case.result != "skip" and node in case.nodes
    }
    if not away or not measured:
        return ""
    begin, end = min(first for first, _ in away), max(last for _, last in away)
    to = f"{end:%H:%M}" if end.date() == begin.date() else f"{end:%Y-%m-%d %H:%M}"
    return (
        f"absent from {begin:%Y-%m-%d %H:%M} to {to} UTC, measured in "
        f"{len(measured)} of {len(sessions)} sessions"
    )


def last_away(node: str, run: Run) -> float | None:
    """Return when a node was last away, or unseen, in a run (UTC seconds), or None.

    It is the latest of three times: its last loss, the start of the last session
    without it, and the last resume, before which no driver saw the nodes.
    """
    sessions = run.manifest.get("sessions", ())
    starts = run.manifest.get("starts", ())
    losses = (loss for session in sessions for loss in session.get("lost", ()))
    without = [one for one in sessions if node in one.get("absent", {})]
    times = [loss["time"] for loss in losses if loss["node"] == node]
    times += [_seconds(one["started"]) for one in (*without, *starts[1:])]
    return max(times, default=None)


def _away(node: str, session: dict[str, Any]) -> Iterable[tuple[datetime, datetime]]:
    """Yield from when to when a node was away in a session: from its loss, or all."""
    end = datetime.fromisoformat(session["ended"])
    lost = [loss["time"] for loss in session.get("lost", ()) if loss["node"] == node]
    if lost:
        yield datetime.fromtimestamp(min(lost), UTC), end
    elif node in session.get("absent", {}):
        yield datetime.fromisoformat(session["started"]), end


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
