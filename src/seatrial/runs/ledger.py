"""The ledger of the runs of a system: every start, resume, end and removal.

`results/<system>/ledger.jsonl` has one JSON object per line, each with the SHA-256 of
the line before. It is written where the driver works: in the results folder of the
login node. Each run keeps a copy of it from the moment of its close. Replays and
imports are no runs of the machine, and are not in it.
"""

import fcntl
import hashlib
import os
import socket
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.limits import LEDGER_SIZE
from seatrial.model.manifest import OPEN_SUFFIX, Place
from seatrial.plain_files import read_plain
from seatrial.runs.ledger_entries import (
    Entry,
    Event,
    Ledger,
    NightEvent,
    parse_ledger,
)

LEDGER = "ledger.jsonl"
"""Name of the ledger beside the runs of a system, and of its copy in each run."""

_PATIENCE_S = 60.0
"""Longest wait for another process that writes to the ledger."""

_LOOK_S = 0.05


def read_ledger(folder: Path) -> bytes | None:
    """Read the ledger of a folder of runs; None without one."""
    file = folder / LEDGER
    return read_plain(file, LEDGER_SIZE) if os.path.lexists(file) else None


def begin(
    folder: Path,
    run: str,
    *,
    campaign: str,
    criteria: str,
    partial: bool,
    repeat_of: str = "",
) -> Place:
    """Record a start of a run, or one more, on disk; return the place of the first.

    Listed runs whose folder is gone are recorded as removed. Raises SeatrialError if
    the ledger is broken: no verdict on a run in it could pass.
    """
    with _opened(folder) as book:
        ledger = book.ledger
        if ledger.problem:
            raise SeatrialError(
                f"{folder / LEDGER}: {ledger.problem}; expected every line as it was "
                "written; nothing was started; restore the file, or keep it elsewhere "
                "as evidence: then a new ledger begins, and verdicts say so"
            )
        for entry in ledger.entries:
            if entry.event == "started" and entry.run != run:
                book.note_gone(entry.run)
        started = ledger.started(run)
        if started is None:
            starts = [e for e in ledger.entries if e.event == "started"]
            number = 1 + sum(e.campaign == campaign for e in starts)
            started = book.append(
                "started",
                run=run,
                number=number,
                campaign=campaign,
                criteria=criteria,
                partial=partial,
                repeat_of=repeat_of,
            )
        else:
            book.append("resumed", run=run)
        return Place(
            started.entry, started.number, book.ledger.heads[started.entry - 1]
        )


def close(folder: Path, run: str, manifest: str) -> None:
    """Record, once, that a run closed with a manifest of this SHA-256."""
    with _opened(folder) as book:
        closed = book.ledger.last("closed", run)
        if closed is None or closed.manifest != manifest:
            book.append("closed", run=run, manifest=manifest)


def note_removed(folder: Path, run: str, reason: str) -> None:
    """Record why a run was removed.

    Raises SeatrialError if the ledger does not list it, or if its folder is there.
    """
    with _opened(folder) as book:
        if book.ledger.started(run) is None:
            raise SeatrialError(f"{folder / LEDGER}: lists no run {run!r}")
        if is_there(folder, run):
            raise SeatrialError(
                f"{folder / run}: this run is there; expected one that was removed"
            )
        book.append("removed", run=run, reason=reason)


def note_repair(folder: Path, node: str, reason: str) -> None:
    """Record that a node was repaired: its earlier numbers no longer describe it."""
    with _opened(folder) as book:
        book.append("repaired", node=node, reason=reason)


def note_night(folder: Path, event: NightEvent, **fields: str) -> Entry:
    """Record an event of the nights, as `note_nights` does; return its entry."""
    return note_nights(folder, event, [fields])[0]


def note_nights(
    folder: Path, event: NightEvent, several: Iterable[Mapping[str, str]]
) -> list[Entry]:
    """Record events of the nights of one kind; each has fields of `Entry`.

    Raises SeatrialError as `note_repair` does.
    """
    with _opened(folder) as book:
        return [book.append(event, **fields) for fields in several]


def is_there(folder: Path, run: str) -> bool:
    """Return True if a folder of runs has a run, open or closed."""
    # In this order: a run that is being closed is renamed.
    return any((folder / name).is_dir() for name in (run + OPEN_SUFFIX, run))


class _Book:
    """A ledger that is locked and open for writing."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder, self.descriptor = folder, descriptor
        content = read_plain(folder / LEDGER, LEDGER_SIZE)
        self.ledger = parse_ledger(content)
        whole = content.rpartition(b"\n")[0].split(b"\n") if b"\n" in content else []
        self.lines = len(whole)
        self.previous = hashlib.sha256(whole[-1]).hexdigest() if whole else ""
        if self.ledger.torn:
            torn = self.ledger.torn
            os.ftruncate(descriptor, len(content) - torn)
            self.append("torn", reason=f"{torn} bytes of an entry without its end")

    def append(self, event: Event, **fields: Any) -> Entry:
        """Write an entry to disk."""
        moment = utc_now()
        host = socket.gethostname()
        number = self.lines + 1
        entry = Entry(number, event, moment, host, self.previous, **fields)
        line = msgspec.json.encode(entry)
        _write(self.descriptor, line + b"\n")
        os.fsync(self.descriptor)
        self.lines, self.previous = number, hashlib.sha256(line).hexdigest()
        known = self.ledger
        self.ledger = Ledger(
            (*known.entries, entry), (*known.heads, self.previous), known.problem
        )
        return entry

    def note_gone(self, run: str) -> None:
        """Record that a listed run is gone, if that is not recorded."""
        gone = not is_there(self.folder, run)
        if gone and self.ledger.last("removed", run) is None:
            self.append("removed", run=run)


@contextmanager
def _opened(folder: Path) -> Iterator[_Book]:
    """Lock the ledger of a folder of runs, which is created if it is not there.

    It can be written by those who can write to the folder. Raises SeatrialError if it
    is no plain file, cannot be written, or if another process holds it for too long.
    """
    from seatrial.runs.open_run import disk_errors, sync

    file, flags = folder / LEDGER, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(descriptor, 0o644 | folder.stat().st_mode & 0o022)
            sync(folder)
        except FileExistsError:
            descriptor = os.open(file, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SeatrialError(f"{file}: not a plain file; expected no pipe or device")
        _wait(descriptor, file)
        with disk_errors(folder):
            yield _Book(folder, descriptor)
    finally:
        os.close(descriptor)


def utc_now() -> str:
    """Return the time of an entry that is written now."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _wait(descriptor: int, file: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise SeatrialError(
                    f"{file}: another process has held it for more than "
                    f"{_PATIENCE_S:.0f} s; wait for its end and start again"
                ) from None
        time.sleep(_LOOK_S)


def place_in(manifest: dict[str, Any]) -> Place | None:
    """Return the place of a run in its ledger; None if its manifest has none."""
    record = manifest.get("ledger")
    return None if record is None else msgspec.convert(record, Place)
