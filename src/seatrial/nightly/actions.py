"""Quarantine and release nodes, within caps.

A quarantine writes the ledger first, with a token, then changes Slurm, then reads Slurm
back. Without an entry in the ledger nothing is ours, so a node that is out without one
would stay out. An entry without a change does no harm: the next night finds no trace in
Slurm, and notes `released`. A release changes Slurm first, then writes the ledger, for
the same reason. A node that came back without us is not quarantined again for the same
alarm: a person may have wanted it back.
"""

import secrets
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from seatrial.errors import SeatrialError
from seatrial.history.records import Alarm
from seatrial.nightly import slurm_actions as slurm
from seatrial.nightly.refusals import FAILED, refusal
from seatrial.nightly.settings import OFF
from seatrial.nightly.state import State
from seatrial.runs.ledger import note_night
from seatrial.runs.ledger_entries import Entry

Verb = Literal["quarantine", "renew", "release", "nothing"]

_WORDS = {
    ("quarantine", True): "taken out of service",
    ("quarantine", False): "not taken out of service",
    ("renew", True): "still out of service",
    ("renew", False): "its reservation is not renewed",
    ("release", True): "no longer held by us",
    ("release", False): "not brought back",
}


@dataclass(frozen=True)
class Action:
    """An action on a node for an alarm, and its reason, also if it was not done.

    `command` does the same by hand.
    """

    node: str
    verb: Verb
    alarm: str
    command: tuple[str, ...]
    done: bool
    reason: str

    def __str__(self) -> str:
        if self.verb == "nothing":
            return f"nodes: nothing is done: {self.reason}"
        text = f"{self.node}: {_WORDS[self.verb, self.done]}: {self.reason}"
        by_hand = f"; by hand: {shlex.join(self.command)}" if self.command else ""
        return text if self.done else text + by_hand


def recommended(state: State, alarm: Alarm) -> list[str]:
    """Return the commands that take the node of an alarm out and bring it back.

    None for an alarm of another kind: no single node is its cause.
    """
    if alarm.kind != "node":
        return []
    (node,) = alarm.nodes
    out, back = slurm.reserving(node), slurm.deleting(node)
    entry = state.quarantined.get(node)
    if _mode(state, entry) == "drain":
        token = entry.token if entry else "hand"
        out = slurm.draining(node, _reason(token, alarm.name))
        back = slurm.resuming(node)
    return [shlex.join(out), shlex.join(back)]


def act(state: State, today: date) -> list[Action]:
    """Quarantine the nodes of open alarms, and release those of closed ones.

    Returns all actions, done or not, with reasons. Every mode notes in the ledger which
    nodes are no longer out. SeatrialError if that fails.
    """
    return _Night(state, today).actions()


def _mode(state: State, entry: Entry | None) -> str:
    return entry.reason if entry else state.settings.action


def _reason(token: str, alarm: str) -> str:
    return f"seatrial:1:{token} {alarm}"


class _Night:
    """The actions of one night."""

    def __init__(self, state: State, today: date) -> None:
        self.state, self.today, self.settings = state, today, state.settings
        self.out = dict(state.quarantined)
        self.alarms = {alarm.name: alarm for alarm in state.alarms}
        self.night = f"{today:%Y%m%d}"  # begins the tokens of a night
        self.taken = sum(
            entry.event == "quarantined" and entry.token.startswith(self.night)
            for entry in state.ledger.entries
        )
        self.slurm = slurm.Slurm({}, {})

    def actions(self) -> list[Action]:
        """Run the actions; return them."""
        recommends = self.settings.action == "recommend"
        suspects = [] if recommends else self._suspects()
        if not self.out and not suspects:
            return []
        try:
            self.slurm = slurm.read_slurm()
        except SeatrialError as error:
            return [_nothing(f"the state of Slurm is not known: {error}")]
        done = self._gone()
        if recommends:
            return done
        if self.settings.off:
            return [*done, _nothing(f"the off-switch is set: {OFF}")]
        done += [one for entry in [*self.out.values()] for one in self._goes_on(entry)]
        return [*done, *(self._quarantine(alarm) for alarm in self._suspects())]

    def _suspects(self) -> list[Alarm]:
        """Return the open alarms of single nodes that are in service, oldest first."""
        return [
            alarm
            for alarm in self.state.open_alarms(self.today)
            if alarm.kind == "node" and alarm.nodes[0] not in self.out
        ]

    def _gone(self) -> list[Action]:
        """Note `released` for each entry that Slurm does not show as we left it."""
        done = []
        for node, entry in [*self.out.items()]:
            if node not in self.slurm.nodes or self._shows(entry):
                continue
            reason = "was not there"
            if entry.reason == "drain":
                reason = "was not there: somebody resumed it or changed its reason"
            elif _time(entry) + timedelta(days=slurm.DAYS) <= datetime.now(UTC):
                reason = "expired"
            self._note("released", entry.node, entry.alarm, entry.token, reason)
            del self.out[node]
            done.append(Action(node, "release", entry.alarm, (), True, reason))
        return done

    def _shows(self, entry: Entry) -> bool:
        """Return True if Slurm has the node out exactly as an entry says."""
        node = self.slurm.nodes.get(entry.node)
        if entry.reason == "drain":
            ours = _reason(entry.token, entry.alarm)
            return node is not None and node.drained and node.reason == ours
        found = self.slurm.reservations.get(slurm.reservation_of(entry.node))
        return found is not None and found.is_of(entry.node, _time(entry))

    def _goes_on(self, entry: Entry) -> list[Action]:
        """Release the node if its alarm is closed; else renew its reservation.

        The reservation of an unknown alarm is not renewed: it expires.
        """
        node, alarm = entry.node, self.alarms.get(entry.alarm)
        drained = entry.reason == "drain"
        if alarm is None:
            why = "its alarm is no longer known; look at it, and bring it back"
            command = slurm.resuming(node) if drained else slurm.deleting(node)
            return [Action(node, "release", entry.alarm, command, False, why)]
        if alarm.closed is None:
            return [] if drained else [self._renew(entry)]
        if drained:
            why = "its alarm is closed, but a drained node cannot be tested by Slurm"
            command = slurm.resuming(node)
            return [Action(node, "release", entry.alarm, command, False, why)]
        command = slurm.deleting(node)
        failure = self._change(
            command, "release", entry, lambda: not self._shows(entry)
        )
        if failure:
            return [Action(node, "release", entry.alarm, command, False, failure)]
        reason = "its alarm is closed"
        self._note("released", node, entry.alarm, entry.token, reason)
        del self.out[node]
        return [Action(node, "release", entry.alarm, command, True, reason)]

    def _renew(self, entry: Entry) -> Action:
        command = slurm.renewing(entry.node)
        least = datetime.now() + timedelta(days=slurm.DAYS, hours=-2)

        def renewed() -> bool:
            found = self.slurm.reservations.get(slurm.reservation_of(entry.node))
            return found is not None and found.end > least

        failure = self._change(command, "quarantine", entry, renewed)
        reason = failure or "its alarm lasts"
        return Action(entry.node, "renew", entry.alarm, command, not failure, reason)

    def _quarantine(self, alarm: Alarm) -> Action:
        (node,), mode = alarm.nodes, self.settings.action
        token = self.night + secrets.token_hex(4)
        command = slurm.reserving(node)
        if mode == "drain":
            command = slurm.draining(node, _reason(token, alarm.name))

        def left(why: str) -> Action:
            return Action(node, "quarantine", alarm.name, command, False, why)

        try:
            self.slurm = slurm.read_slurm()  # an administrator may have drained it
            why = refusal(self.state, alarm, self.slurm, self.out, self.taken)
            if why:
                return left(why)
            entry = self._note("quarantined", node, alarm.name, token, mode)
        except SeatrialError as error:
            return left(str(error))
        self.taken += 1
        self.out[node] = entry
        failure = self._change(command, "quarantine", entry, lambda: self._shows(entry))
        if failure and self._is_absent(entry):
            self._note("released", node, alarm.name, token, FAILED + failure)
            del self.out[node]
        if failure:
            return left(failure)
        return Action(node, "quarantine", alarm.name, command, True, alarm.name)

    def _change(
        self, command: slurm.Command, verb: str, entry: Entry, seen: Callable[[], bool]
    ) -> str:
        """Change Slurm, and read it back; return what failed, '' if it is `seen`."""
        try:
            if self.settings.spool is None:
                slurm.run(command)
                self.slurm = slurm.read_slurm()
                return "" if seen() else "Slurm does not show it afterwards"
            request = {"verb": verb, "node": entry.node, "token": entry.token}
            request |= {"alarm": entry.alarm, "mode": entry.reason}
            slurm.ask(self.settings.spool, request, lambda: self._reads(seen))
        except SeatrialError as error:
            return str(error)
        return ""

    def _reads(self, seen: Callable[[], bool]) -> bool:
        """Read Slurm; return True if it answers and shows what is asked for."""
        with suppress(SeatrialError):
            self.slurm = slurm.read_slurm()
            return seen()
        return False

    def _is_absent(self, entry: Entry) -> bool:
        """Return True if Slurm answers, and does not show an entry.

        Without an answer the next night compares them.
        """
        return self._reads(lambda: not self._shows(entry))

    def _note(
        self,
        event: Literal["quarantined", "released"],
        node: str,
        alarm: str,
        token: str,
        reason: str,
    ) -> Entry:
        fields = {"node": node, "alarm": alarm, "token": token, "reason": reason}
        return note_night(self.state.folder, event, **fields)


def _nothing(reason: str) -> Action:
    return Action("", "nothing", "", (), False, reason)


def _time(entry: Entry) -> datetime:
    return datetime.fromisoformat(entry.time)
