"""Plain ReFrame's records: run reports (JSON) and results databases (SQLite).

Both have sessions of the same form, since ReFrame 4.7: `session_info` and `runs`; later
runs are retries or reruns. Form 4.0 is of ReFrame 4.7, 4.1 of 4.8, 4.2 of 4.9 and 4.10.
"""

import hashlib
import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from seatrial.errors import SeatrialError

_SQLITE = b"SQLite format 3\0"
_FORM = 4
"""Major version of the form; 3 is of ReFrame 4.6 and older, which had no database."""

_UUID = re.compile(r"[0-9A-Za-z-]{8,}")
_NOT_FINITE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(NaN|-?Infinity)')


class Value(msgspec.Struct, array_like=True, gc=False):
    """A performance value: `value` is None if not measured, text if not finite.

    The bounds are relative to the reference; None where there is none.
    """

    value: float | str | None
    reference: Any
    lower: Any
    upper: Any
    unit: str


class Entry(msgspec.Struct, gc=False):
    """The fields of a test case in ReFrame's records that an import needs."""

    display_name: str
    system: str
    partition: str
    environ: str
    result: str
    fail_phase: str | None = None
    fail_reason: str | None = None
    jobid: Any = None
    job_nodelist: Any = None
    job_submit_time: Any = None
    time_total: Any = None
    perfvalues: dict[str, Value] = {}

    @property
    def check(self) -> str:
        """Return the class name of the check, or the name that it chose."""
        return self.display_name.split(" ", 1)[0]


class _Info(msgspec.Struct):
    data_version: str = ""
    version: str = ""
    uuid: str | None = None
    time_start_unix: float | None = None
    time_end_unix: float | None = None
    hostname: str | None = None


class _Run(msgspec.Struct):
    testcases: list[msgspec.Raw]


class _Head(msgspec.Struct):
    session_info: _Info


class _Report(_Head):
    runs: list[_Run]


_T = TypeVar("_T", bound=_Head)

_HEAD = msgspec.json.Decoder(_Head)
_REPORT = msgspec.json.Decoder(_Report)
_ENTRY = msgspec.json.Decoder(Entry)


@dataclass(frozen=True)
class ReframeRun:
    """The cases of a run, decoded one by one: all at once take gigabytes.

    Iterating raises SeatrialError at a damaged one.
    """

    source: str
    _cases: list[msgspec.Raw]

    def __iter__(self) -> Iterator[Entry]:
        for raw in self._cases:
            try:
                yield _ENTRY.decode(raw)
            except msgspec.MsgspecError as error:
                raise _no_report(self.source, str(error)) from error


@dataclass(frozen=True)
class ReframeSession:
    """A session of ReFrame: its first run, then retries or reruns.

    Times are UTC seconds since the epoch. `sha256` is that of its JSON.
    """

    sha256: str
    version: str
    started: float
    ended: float
    host: str | None
    runs: tuple[ReframeRun, ...]


@dataclass(frozen=True)
class Stored:
    """The place of a session: `file`, and `source` for messages."""

    file: Path
    source: str
    uuid: str
    started: float
    _content: Callable[[], bytes]

    def read(self) -> ReframeSession:
        """Read the session; SeatrialError if it is damaged, or of an older ReFrame."""
        content = self._content()
        report = _decode(self.source, content, _REPORT)
        info = report.session_info
        started, ended = info.time_start_unix, info.time_end_unix
        if info.uuid != self.uuid or started is None or ended is None:
            raise _no_report(self.source, "session_info lacks times, or is another's")
        return ReframeSession(
            sha256=hashlib.sha256(content).hexdigest(),
            version=info.version or "unknown",
            started=started,
            ended=ended,
            host=info.hostname,
            runs=tuple(ReframeRun(self.source, run.testcases) for run in report.runs),
        )


def stored_sessions(file: Path) -> list[Stored]:
    """Return the sessions in a report or a database, oldest first.

    Raises SeatrialError if the file cannot be read, or is neither.
    """
    try:
        with file.open("rb") as stream:
            start = stream.read(len(_SQLITE))
    except OSError as error:
        raise SeatrialError(f"{file}: {error.strerror}") from error
    if start == _SQLITE:
        return _of_database(file)
    source = str(file)
    info = _decode(source, file.read_bytes(), _HEAD).session_info
    return [_stored(file, source, info.uuid, info.time_start_unix, file.read_bytes)]


def _stored(
    file: Path, source: str, uuid: Any, started: Any, content: Callable[[], bytes]
) -> Stored:
    if not isinstance(uuid, str) or not _UUID.fullmatch(uuid):
        raise _no_report(source, f"uuid of the session is {uuid!r}")
    if not isinstance(started, float) or not math.isfinite(started):
        raise _no_report(source, f"start of the session is {started!r}")
    return Stored(file, source, uuid, started, content)


def _decode(source: str, content: bytes, decoder: msgspec.json.Decoder[_T]) -> _T:
    """Decode a session; NaN and Infinity, which JSON lacks, become texts."""
    try:
        try:
            head = decoder.decode(content)
        except msgspec.ValidationError:
            _check_version(source, _HEAD.decode(content).session_info)
            raise
        except msgspec.DecodeError:
            if b"NaN" not in content and b"Infinity" not in content:
                raise
            quoted = _NOT_FINITE.sub(
                lambda match: b'"%b"' % match[1] if match[1] else match[0], content
            )
            head = decoder.decode(quoted)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _no_report(source, str(error)) from error
    _check_version(source, head.session_info)
    return head


def _check_version(source: str, info: _Info) -> None:
    major = info.data_version.partition(".")[0]
    if not major.isdecimal():
        raise _no_report(source, "session_info has no data_version")
    if int(major) != _FORM:
        remedy = f"this Seatrial knows form {_FORM}; upgrade this Seatrial"
        if int(major) < _FORM:
            remedy = (
                f"expected form {_FORM}, of ReFrame 4.7 or later; run these checks "
                "again with a newer ReFrame"
            )
        raise SeatrialError(
            f"{source}: made by ReFrame {info.version or 'of unknown version'}, with "
            f"reports of form {info.data_version}; {remedy}"
        )


def _of_database(file: Path) -> list[Stored]:
    with _database(file) as database:
        rows = database.execute(
            "SELECT rowid, uuid, session_start_unix FROM sessions "
            "ORDER BY session_start_unix, uuid"
        ).fetchall()
    return [
        _stored(
            file, f"{file}: session {uuid}", uuid, started, partial(_blob, file, row)
        )
        for row, uuid, started in rows
    ]


def _blob(file: Path, row: int) -> bytes:
    # SQLite would copy a column, but not a blob.
    with (
        _database(file) as database,
        database.blobopen("sessions", "json_blob", row, readonly=True) as blob,
    ):
        return blob.read()


@contextmanager
def _database(file: Path) -> Iterator[sqlite3.Connection]:
    uri = f"{file.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            yield database
    except sqlite3.Error as error:
        raise SeatrialError(
            f"{file}: not a readable results database of ReFrame: {error}; expected "
            "its table of sessions; take a whole copy of results.db, made while no "
            "ReFrame ran, or import the run reports instead"
        ) from error


def _no_report(source: str, why: str) -> SeatrialError:
    return SeatrialError(
        f"{source}: not a whole run report of ReFrame: {why}; expected a JSON report "
        "or a results database (results.db) of ReFrame 4.7 or later"
    )
