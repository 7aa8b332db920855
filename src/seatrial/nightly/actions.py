"""Which bad nodes are taken out of service and put back, within caps.

The ledger is written first: `quarantined` is the intent, with a token. Then Slurm is
asked. After a crash in between the next night compares the intent with Slurm. One that
is there counts; one that is not is `released`, 'was gone'. A quarantine without an
entry in the ledger is never ours.
"""

import json
import os
import pwd
import secrets
import shlex
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from seatrial.errors import SeatrialError
from seatrial.history.records import Alarm
from seatrial.nightly import slurm_actions as slurm
from seatrial.nightly.settings import OFF
from seatrial.nightly.state import State
from seatrial.runs.ledger import note_night
from seatrial.runs.ledger_entries import Entry

_UNWRITTEN = {"entry": 0, "time": "", "host": "", "previous": ""}
_NIGHT = timedelta(hours=12)
_AGENT_S = 90.0
_LOOK_S = 2.0
_NOT_DONE = "not done"
_GONE = "was gone"
_DRAINED = ("drained", "draining")


@dataclass(frozen=True)
class Action:
    """What was done to a node for an alarm, or why not; `command` does it by hand."""

    node: str
    verb: Literal["quarantine", "release"]
    alarm: str
    command: tuple[str, ...]
    done: bool
    reason: str

    def __str__(self) -> str:
        how = "done" if self.done else f"not done: {self.reason}"
        return f"{self.verb} {self.node} for {self.alarm}: {how}"


def recommended(state: State, alarm: Alarm) -> list[str]:
    """Return the commands that take the node of an alarm out, and put it back.

    None for an alarm that is not of one node.
    """
    if alarm.kind != "node":
        return []
    (node,) = alarm.nodes
    if state.settings.action == "drain":
        entry = state.quarantined.get(node)
        token = entry.token if entry else "TOKEN"
        both = slurm.drain(node, _reason(token, alarm.name)), slurm.resume(node)
    else:
        both = slurm.reserve(node, user_name(), "now"), slurm.delete(node)
    return [shlex.join(command) for command in both]


def user_name() -> str:
    """Return the name of the user who runs the nights."""
    return pwd.getpwuid(os.getuid()).pw_name


def act(state: State, today: date) -> tuple[Action, ...]:
    """Take out the nodes of open alarms and put back those of closed ones.

    Nothing is done if the off-switch is set, or if Slurm cannot be read: then each
    action says so.
    """
    if state.settings.action == "recommend":
        return ()
    return _Night(state, today).actions()


def _reason(token: str, alarm: str) -> str:
    return f"seatrial:1:{token} {alarm}"


class _Night:
    """The actions of one night."""

    def __init__(self, state: State, today: date) -> None:
        self.state, self.user, self.today = state, user_name(), today
        self.mode, self.caps = state.settings.action, state.settings.caps
        self.out = dict(state.quarantined)
        self.slurm = slurm.Slurm({}, {})

    def actions(self) -> tuple[Action, ...]:
        done: list[Action] = []
        stop = self._stop()
        if not stop:
            done += self._put_back()
        suspects = [
            alarm
            for alarm in self.state.open_alarms(self.today)
            if alarm.kind == "node" and alarm.nodes[0] not in self.out
        ]
        for alarm in sorted(suspects, key=lambda one: one.night):
            why = stop or self._refused(alarm, suspects)
            done.append(self._skip(alarm, why) if why else self._quarantine(alarm))
        return tuple(done)

    def _stop(self) -> str:
        if self.state.settings.off:
            return f"the off-switch is set: {OFF}"
        if self.state.ledger.problem:
            return f"the ledger is broken: {self.state.ledger.problem}"
        try:
            self.slurm = slurm.read_slurm()
        except SeatrialError as error:
            return f"the state of Slurm is unknown: {error}"
        return ""

    def _refused(self, alarm: Alarm, suspects: list[Alarm]) -> str:
        """Return why the node of an alarm stays in service, '' if it need not."""
        node, caps = alarm.nodes[0], self.caps
        if sum(one.night == alarm.night for one in suspects) > caps.night:
            return "more suspects in a night than may be taken out: a common cause?"
        entries = self.state.ledger.entries
        mine = [e for e in entries if e.alarm == alarm.name and e.node == node]
        last = mine[-1] if mine else None
        if last and not last.reason.startswith(_NOT_DONE):
            return "it was out for this alarm before, and somebody put it back"
        known = self.slurm.nodes.get(node)
        if known is None:
            return "Slurm does not know the node"
        if known.out or known.reason:
            return f"it is {known.state} already: {known.reason or 'without a reason'}"
        if slurm.reservation(node) in self.slurm.reservations:
            return f"a reservation {slurm.reservation(node)} is there that is not ours"
        since = datetime.now(UTC) - _NIGHT
        tonight = [e for e in entries if e.event == "quarantined"]
        recent = sum(datetime.fromisoformat(e.time) >= since for e in tonight)
        recent += sum(node not in self.state.quarantined for node in self.out)
        if recent >= caps.night:
            return f"{recent} taken out tonight; at most {caps.night} a night"
        return self._full(node)

    def _full(self, node: str) -> str:
        for name, nodes in self.state.classes.items():
            if node not in nodes:
                continue
            share = int(self.state.settings.share * len(nodes))
            most = max(1, min(share, self.caps.at_once))
            known = self.slurm.nodes
            out = sum(n in self.out or n not in known or known[n].out for n in nodes)
            return f"{out} of class {name} are out; at most {most}" * (out >= most)
        return "it belongs to no class"

    def _skip(self, alarm: Alarm, why: str) -> Action:
        node = alarm.nodes[0]
        command = slurm.reserve(node, self.user, "now")
        if self.mode == "drain":
            command = slurm.drain(node, _reason("TOKEN", alarm.name))
        return Action(node, "quarantine", alarm.name, command, False, why)

    def _quarantine(self, alarm: Alarm) -> Action:
        node, token, start = alarm.nodes[0], secrets.token_hex(8), slurm.now()
        how = "agent" if self.state.settings.spool else start
        command = slurm.reserve(node, self.user, start)
        if self.mode == "drain":
            command = slurm.drain(node, _reason(token, alarm.name))
        fields = {"node": node, "alarm": alarm.name, "token": token}
        note_night(
            self.state.folder, "quarantined", reason=f"{self.mode} {how}", **fields
        )
        intent = {**fields, "event": "quarantined", "reason": f"{self.mode} {how}"}
        entry = msgspec.convert(_UNWRITTEN | intent, Entry)
        self.out[node] = entry
        why = self._do(command, "quarantine", entry)
        if not why:
            return Action(node, "quarantine", alarm.name, command, True, "")
        if not self.state.settings.spool and self._absent(entry):
            note_night(
                self.state.folder, "released", reason=f"{_NOT_DONE}: {why}", **fields
            )
        return Action(node, "quarantine", alarm.name, command, False, why)

    def _do(self, command: tuple[str, ...], verb: str, entry: Entry) -> str:
        """Run a command, or ask the agent; return what failed, '' if Slurm shows it."""
        spool, wanted = self.state.settings.spool, verb == "quarantine"
        try:
            if spool is None:
                slurm.run(command)
            else:
                _ask(spool, verb, entry)
            end = time.monotonic() + (_AGENT_S if spool else 0)
            while True:
                self.slurm = slurm.read_slurm()
                if self._ours(entry) == wanted:
                    return ""
                if time.monotonic() >= end:
                    return "Slurm does not show it" + " yet" * (spool is not None)
                time.sleep(_LOOK_S)
        except (SeatrialError, OSError) as error:
            return str(error)

    def _absent(self, entry: Entry) -> bool:
        """Return True if Slurm certainly lacks it; else the next night compares."""
        try:
            self.slurm = slurm.read_slurm()
        except SeatrialError:
            return False
        return not self._ours(entry)

    def _ours(self, entry: Entry) -> bool:
        """Return True if Slurm has exactly the quarantine of an entry."""
        mode, how = [*entry.reason.split(" ", 1), ""][:2]
        if mode == "drain":
            node = self.slurm.nodes.get(entry.node)
            reason = _reason(entry.token, entry.alarm)
            if node is None or node.reason != reason or node.state not in _DRAINED:
                return False
            return how == "agent" or node.user == self.user
        fields = self.slurm.reservations.get(slurm.reservation(entry.node), {})
        if fields.get("Users") != self.user or fields.get("Nodes") != entry.node:
            return False
        return how == "agent" or fields.get("StartTime") == how

    def _put_back(self) -> list[Action]:
        """Reconcile the ledger with Slurm; release closed alarms, renew the others."""
        done: list[Action] = []
        closed = {a.name for a in self.state.alarms if a.closed is not None}
        for node, entry in list(self.out.items()):
            fields = {"node": node, "alarm": entry.alarm, "token": entry.token}
            if not self._ours(entry):
                note_night(self.state.folder, "released", reason=_GONE, **fields)
                del self.out[node]
                command = slurm.delete(node)
                done.append(Action(node, "release", entry.alarm, command, True, _GONE))
            elif entry.alarm in closed:
                done.append(self._release(entry, fields))
            elif not entry.reason.startswith("drain"):
                spool = self.state.settings.spool
                try:
                    if spool is None:
                        slurm.run(slurm.renew(node))
                    else:
                        _ask(spool, "quarantine", entry)
                except (SeatrialError, OSError) as error:
                    command, why = slurm.renew(node), f"not renewed: {error}"
                    done.append(
                        Action(node, "quarantine", entry.alarm, command, False, why)
                    )
        return done

    def _release(self, entry: Entry, fields: dict[str, str]) -> Action:
        node, drained = entry.node, entry.reason.startswith("drain")
        command = slurm.resume(node) if drained else slurm.delete(node)
        if drained:
            why = "a drained node cannot be tested again: a person releases it"
            return Action(node, "release", entry.alarm, command, False, why)
        why = self._do(command, "release", entry)
        if not why:
            reason = "three good nights"
            note_night(self.state.folder, "released", reason=reason, **fields)
            self.out.pop(node, None)
        return Action(node, "release", entry.alarm, command, not why, why)


def _ask(spool: Path, verb: str, entry: Entry) -> None:
    """Write a request for the agent: at once, or not at all."""
    request = {"verb": verb, "node": entry.node, "token": entry.token}
    request |= {"alarm": entry.alarm, "mode": entry.reason.split(" ")[0]}
    content = json.dumps(request | {"time": int(time.time())}).encode()
    name = f"{verb}-{entry.token}"
    part = spool / f".{name}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fsync(file.fileno())
        part.rename(spool / f"{name}.json")
    except OSError:
        part.unlink(missing_ok=True)
        raise
