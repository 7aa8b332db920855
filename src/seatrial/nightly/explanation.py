"""An alarm in words: for the terminal, for a mail, for a ticket."""

import shlex
from collections.abc import Iterator
from datetime import date

from seatrial.history.records import Alarm, Change, Loss
from seatrial.names import node_set
from seatrial.nightly.actions import recommended
from seatrial.nightly.state import State

_WHAT = {
    "node": "one node became slower",
    "machine": "the nodes of a class became slower together",
    "common": "several nodes or one part, with a common cause",
    "explained": "the configuration changed, and nodes became slower with it",
}


def title(alarm: Alarm) -> str:
    """Return an alarm in one line."""
    where = alarm.shared or node_set(alarm.nodes)
    loss = max(alarm.losses, key=lambda one: one.share, default=None)
    if loss is not None:
        return f"{where}: {_percent(loss.share)} worse in {loss.metric.metric}"
    return f"{where}: {alarm.faults[0] if alarm.faults else _WHAT[alarm.kind]}"


def onset(alarm: Alarm) -> str:
    """Return the nights at which an alarm may have begun."""
    first, last = alarm.onset
    return f"{first}" if first == last else f"{first} to {last}"


def loss_text(loss: Loss) -> str:
    """Return a loss with the levels before and after."""
    unit = loss.metric.unit
    return (
        f"{loss.metric}: {loss.before:.4g} {unit} before, {loss.after:.4g} {unit} "
        f"after: {_percent(loss.share)} worse"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def change_text(change: Change) -> str:
    """Return a change of the configuration, and if its nodes differ from others."""
    told = {
        True: "these nodes lost more than the unchanged ones",
        False: "these nodes lost no more than the unchanged ones",
        None: "too few unchanged nodes are there to compare with",
    }
    return (
        f"{change.key} was {change.was}, is {change.now} on {node_set(change.nodes)}; "
        f"{told[change.differs]}"
    )


def explained(state: State, alarm: Alarm, today: date) -> Iterator[str]:
    """Yield the lines that explain an alarm, for the terminal and for mail."""
    yield f"{alarm.name}: {_WHAT[alarm.kind]}"
    if alarm.kind != "explained":
        yield f"  state: {state.standing(alarm, today)}"
    if alarm.nodes:
        yield f"  nodes: {node_set(alarm.nodes)}"
    if alarm.shared:
        yield f"  they share: {alarm.shared}"
    yield f"  found in the night of {alarm.night}; onset: {onset(alarm)}"
    if alarm.closed is not None and alarm.kind != "explained":
        yield f"  ended in the night of {alarm.closed}"
    for loss in alarm.losses:
        yield f"  {loss_text(loss)}"
    for fault in alarm.faults:
        yield f"  limits of a night: {fault}"
    if alarm.evidence:
        yield (
            f"  evidence {alarm.evidence:,.0f} to 1 by nights after the suspicion; "
            f"expected false alarms: {state.settings.rules.alarms_a_year:g} a year"
        )
    for change in alarm.changes:
        yield f"  {change_text(change)}"
    if not alarm.changes and alarm.losses:
        yield "  no known configuration changed in these nights"
    if alarm.kind == "node" and alarm.closed is None:
        retest = f"seatrial nightly retest {state.system} {alarm.nodes[0]}"
        out, back = recommended(state, alarm)
        yield f"  measure it again: {retest}"
        yield f"  take it out: {out}"
        yield f"  put it back: {back}"
    if state.standing(alarm, today) == "open":
        yield f"  known? {acknowledging(state, alarm)}"


def acknowledging(state: State, alarm: Alarm) -> str:
    """Return the command that acknowledges an alarm; parts may have any name."""
    command = f"seatrial nightly ack {state.system} {shlex.quote(alarm.name)}"
    return f"{command} --until DATE --reason TEXT"


def ticket(state: State, alarm: Alarm) -> list[str]:
    """Return the lines of a ticket about an alarm, in Markdown."""
    lines = [
        f"# {state.system}: {_cell(title(alarm))}",
        "",
        f"- Alarm {_cell(alarm.name)}: {_WHAT[alarm.kind]}.",
        f"- Nodes: {_cell(node_set(alarm.nodes)) or 'none by name'}.",
        f"- Found in the night of {alarm.night}; onset: {onset(alarm)}.",
    ]
    if alarm.shared:
        lines.append(f"- Shared: {_cell(alarm.shared)}.")
    if alarm.evidence:
        lines.append(f"- Evidence: {alarm.evidence:,.0f} to 1.")
    if alarm.losses:
        lines += ["", "| metric | before | after | worse by |", "|---|---|---|---|"]
        for loss in alarm.losses:
            unit = loss.metric.unit
            lines.append(
                f"| {_cell(str(loss.metric))} | {loss.before:.4g} {unit} "
                f"| {loss.after:.4g} {unit} | {_percent(loss.share)} |"
            )
    if alarm.faults:
        lines += ["", "Limits of a night:", ""]
        lines += [f"- {_cell(fault)}" for fault in alarm.faults]
    if alarm.changes:
        lines += ["", "Configuration:", ""]
        lines += [f"- {_cell(change_text(change))}" for change in alarm.changes]
    if alarm.kind == "node":
        commands = [f"seatrial nightly retest {state.system} {alarm.nodes[0]}"]
        commands += recommended(state, alarm)
        lines += ["", "Measure it again; take it out; put it back:", ""]
        lines += [f"    {command}" for command in commands]
    return lines


def _cell(text: str) -> str:
    """Keep a text from being Markdown."""
    for sign in "\\`*_|<>[]#":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
