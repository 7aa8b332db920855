"""The entries of a ledger: their fields, and the chain that they make."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec

from seatrial.model.manifest import Place

NightEvent = Literal["acknowledged", "notified", "quarantined", "released", "skipped"]
Event = (
    Literal["started", "resumed", "closed", "removed", "repaired", "torn"] | NightEvent
)


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a ledger; keys that do not belong to its event are left out.

    `entry` counts the lines from 1, `number` the runs of the campaign that started.
    `criteria` is the SHA-256 of criteria.yaml at the start, '' without one; `manifest`
    that of the manifest of a closed run; `previous` that of the line before, '' in the
    first. A repeat names the run that it is `repeat_of`. `time` is UTC. A run that was
    found missing is `removed` without a reason. Events of nights name their `alarm`: it
    is `acknowledged` `until` a date, `notified` with its state as `reason`; a node is
    `quarantined` and `released` by a `token`. A night that did not run is `skipped` for
    a `reason`.
    """

    entry: int
    event: Event
    time: str
    host: str
    previous: str
    run: str = ""
    campaign: str = ""
    number: int = 0
    criteria: str = ""
    partial: bool = False
    repeat_of: str = ""
    manifest: str = ""
    node: str = ""
    reason: str = ""
    alarm: str = ""
    until: str = ""
    token: str = ""


@dataclass(frozen=True)
class Ledger:
    """The lines of a ledger up to the first that breaks the chain.

    `heads` are the SHA-256 of the lines; `problem` describes the break, '' without;
    `torn` counts the bytes of an incomplete last line.
    """

    entries: tuple[Entry, ...] = ()
    heads: tuple[str, ...] = ()
    problem: str = ""
    torn: int = 0

    def started(self, run: str) -> Entry | None:
        """Return the entry of the start of a run; None if it is not listed."""
        return self._starts.get(run)

    def holds(self, place: Place) -> bool:
        """Return True if the line of a place has its SHA-256."""
        index = place.entry - 1
        return 0 <= index < len(self.heads) and self.heads[index] == place.head

    def last(self, event: Event, run: str) -> Entry | None:
        """Return the last entry of an event of a run; None if there is none."""
        return self._last.get((event, run))

    @cached_property
    def _starts(self) -> dict[str, Entry]:
        return {e.run: e for e in reversed(self.entries) if e.event == "started"}

    @cached_property
    def _last(self) -> dict[tuple[Event, str], Entry]:
        return {(entry.event, entry.run): entry for entry in self.entries}


def parse_ledger(content: bytes) -> Ledger:
    """Parse and check the bytes of a ledger; a broken one has a `problem`."""
    *lines, tail = content.split(b"\n")
    entries: list[Entry] = []
    heads: list[str] = []
    numbers: dict[str, int] = {}
    decode, problem = msgspec.json.Decoder(Entry).decode, ""
    for line in lines:
        where = f"line {len(entries) + 1}"
        try:
            entry = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = f"{where} is no entry: {error}"
            break
        if entry.entry != len(entries) + 1:
            problem = f"{where} is entry {entry.entry}; an entry is missing"
        elif entry.previous != (heads[-1] if heads else ""):
            problem = f"{where} does not follow line {len(entries)}, which was changed"
        elif entry.event == "started":
            numbers[entry.campaign] = numbers.get(entry.campaign, 0) + 1
            if entry.number != numbers[entry.campaign]:
                expected = numbers[entry.campaign]
                problem = f"{where} is run {entry.number}; expected run {expected}"
        if problem:
            break
        entries.append(entry)
        heads.append(hashlib.sha256(line).hexdigest())
    return Ledger(tuple(entries), tuple(heads), problem, len(tail))
