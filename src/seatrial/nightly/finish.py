"""The end of a night: actions on nodes, notification, metrics, pages.

A step that fails does not stop the others.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.nightly.actions import act
from seatrial.nightly.metrics_file import write_metrics
from seatrial.nightly.night import Site
from seatrial.nightly.notification import notify
from seatrial.nightly.pages import write_pages
from seatrial.nightly.state import State


def finish(site: Site) -> tuple[State, list[str]]:
    """Act on bad nodes, notify people, write metrics and pages.

    Returns the state after it, then what was done to nodes and what failed. Raises
    SeatrialError if the nights cannot be read: then nothing is done.
    """
    today = site.today()
    lines: list[str] = []
    state = site.state()
    lines += _tried("nodes", lambda: map(str, act(state, today)))
    state = state.with_new_entries()
    lines += _tried("notification", lambda: notify(state, today))
    state = state.with_new_entries()
    lines += _tried("metrics", lambda: write_metrics(state, today))
    out = site.home / "reports" / "out" / site.system.name / "nightly"
    lines += _tried("pages", lambda: _drawn(write_pages(state, site.home, out, today)))
    return state, lines


def _drawn(pages: list[Path]) -> list[str]:
    return [f"pages: {pages[-1]}"] if pages else []


def _tried(step: str, do: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return [*do()]
    except (SeatrialError, OSError) as error:
        return [f"{step}: {error}"]
