"""The progress of an open run as a table."""

import time
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from seatrial.campaign.session_log import Running
from seatrial.campaign.status import Status
from seatrial.progress import duration
from seatrial.runs.raw_output import NO_MEASUREMENT

_MOST = 8
_MOST_NODES = 4


def status_table(status: Status) -> Table:
    """Format one run as a table."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for topic, text, style in _rows(status):
        table.add_row(topic, Text(text, style))
    return table


def status_line(status: Status) -> str:
    """Format the state of a run as one line; it changes only if the run does."""
    waiting = [case for case in status.running if case.waits is not None]
    parts = [
        f"{status.sessions_closed} of {status.sessions} sessions closed",
        _counts(status, "cases done"),
        *([] if status.alive else ["driver not at work"]),
        *(f"running {case.case}" for case in status.running if case.waits is None),
        *(f"pending {case.case}: {case.waits}" for case in waiting),
    ]
    return f"{status.system}/{status.run}: {'; '.join(parts)}"


def _counts(status: Status, unit: str) -> str:
    counts = ", ".join(f"{number} {result}" for result, number in status.done.items())
    return f"{sum(status.done.values())} of {status.cases} {unit}: {counts}"


def _rows(status: Status) -> Iterator[tuple[str, str, str]]:
    """Return topic, text and style of every line."""
    note = f"; {NO_MEASUREMENT}" if status.replay else ""
    run = f"{status.system}/{status.run}, campaign {status.campaign}{note}"
    yield "run", run, "bold"
    yield "driver", _driver(status), "" if status.alive else "red"
    if not status.alive:
        yield "to go on", f"seatrial run {status.system} --resume", "bold"
    if status.closing:
        yield "closing", "all is measured; only the folder is to be finished", ""
    yield "sessions", f"{status.sessions_closed} of {status.sessions} closed", ""
    yield "cases", _counts(status, "done"), ""
    started = [_running(case) for case in status.running if case.waits is None]
    yield from _list("running", started)
    waiting = [
        f"{case.case}{f', job {case.job_id}' if case.job_id else ''}: {case.waits}"
        for case in status.running
        if case.waits is not None
    ]
    yield from _list("pending", waiting, "yellow")
    if not status.slurm_answers:
        yield "slurm", "slurmctld does not answer", "red"
    if status.orphans:
        jobs = ", ".join(status.orphans)
        yield "jobs left", f"{jobs}; resuming cancels them first", "yellow"
    by_node = [f"{node}: {count}" for node, count in status.failed_by_node.items()]
    if by_node:
        yield "failed by node", ", ".join(_first(by_node)), "red"
    lost = [f"{node} {reason}" for node, reason in status.lost.items()]
    yield from _list("lost nodes", lost, "red")
    yield from _list("spoiled", status.spoiled, "yellow")
    if status.retries:
        yield "retries", str(status.retries), "yellow"
    yield from _list("cut off", status.interrupted, "yellow")
    yield from _list("clock went back", status.clock, "red")
    left = "unknown" if status.left_s is None else duration(status.left_s)
    yield "time left", left, ""


def _driver(status: Status) -> str:
    driver = status.driver
    state = "at work" if status.alive else "not at work; the last one"
    place = "unknown"
    if "pid" in driver:
        place = f"process {driver['pid']} on {driver['host']}"
    since = f" since {driver['started']}" if "started" in driver else ""
    return f"{state}: {place}{since}"


def _running(case: Running) -> str:
    parts = [case.case]
    if case.since is not None:
        parts.append(duration(max(time.time() - case.since, 0.0)))
    if case.job_id is not None:
        parts.append(f"job {case.job_id}")
    nodes = case.nodes.split()
    if len(nodes) > _MOST_NODES:
        nodes = [f"{nodes[0]} ... {nodes[-1]} ({len(nodes)} nodes)"]
    return ", ".join([*parts, " ".join(nodes)] if nodes else parts)


def _list(
    topic: str, texts: Sequence[str], style: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Return a row for each text, the topic before the first."""
    for number, text in enumerate(_first(texts)):
        yield topic if not number else "", text, style


def _first(texts: Sequence[str]) -> list[str]:
    rest = len(texts) - _MOST
    return [*texts[:_MOST], *([f"and {rest} more"] if rest > 0 else [])]
