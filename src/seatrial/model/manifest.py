"""The manifest of a closed run: read from its bytes, every type checked."""

import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from seatrial.errors import SeatrialError
from seatrial.limits import MANIFEST_SIZE
from seatrial.model.metrics import Metric, own_metric
from seatrial.names import checked_name, is_inside
from seatrial.plain_files import read_plain

MANIFEST = "manifest.json"
OPEN_SUFFIX = ".open"
NEWEST_SCHEMA = 2
"""Schema of the manifests that are written today; all older ones can be read."""

_MOST_AHEAD_S = 3600.0
"""How far clocks may differ before a run counts as one of the future."""

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_NAMES = ("run", "system", "campaign")

_T = TypeVar("_T")
_Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class _Hca(msgspec.Struct):
    name: str
    firmware: str | None
    board: str | None
    driver: str


class Facts(msgspec.Struct):
    """Facts of a node that the suite reads; other keys may be anything."""

    cpu_model: str | None = None
    cores_per_socket: int | None = None
    sockets: int | None = None
    memory_mib: float = 0
    kernel: str | None = None
    os: str | None = None
    hcas: tuple[_Hca, ...] = ()


class _Node(msgspec.Struct):
    name: str
    facts: Facts | None = None
    state: Literal["present", "absent", "lost"] = "present"
    reason: str | None = None


class _Loss(msgspec.Struct):
    node: str
    time: float


class _Session(msgspec.Struct):
    name: str
    repeat: int
    started: datetime
    ended: datetime
    cases: int | tuple[Any, ...]
    interrupted: tuple[str, ...] = ()
    clock_went_back_s: float = 0
    absent: dict[str, str] = {}
    lost: tuple[_Loss, ...] = ()


class _Start(msgspec.Struct):
    started: datetime


class _Built(msgspec.Struct):
    """A program that site.yml built from an archive: of the release, or the user's."""

    name: str
    version: str
    sha256: _Digest
    origin: Literal["release", "user"]


class _Stack(msgspec.Struct):
    name: str
    version: str | None = None
    compiler: str | None = None
    provider: str | None = None
    built: tuple[_Built, ...] = ()
    not_built: dict[str, str] = {}


class _Environment(msgspec.Struct):
    name: str
    lock: str
    sha256: str


class _Spack(msgspec.Struct):
    commit: str
    packages_commit: str
    environments: tuple[_Environment, ...]


class Software(msgspec.Struct):
    """Software of a run."""

    seatrial: str | None = None
    git_commit: str | None = None
    dirty: bool | None = None
    reframe: str | None = None
    python: str | None = None
    slurm: str | None = None
    stacks: tuple[_Stack | str, ...] | None = None
    spack: _Spack | None = None


class _Weights(msgspec.Struct):
    name: str
    sha256: str


class _Imported(msgspec.Struct):
    source: str | None = None


class Place(msgspec.Struct, frozen=True):
    """The place of a run in the ledger of its system: entry, and number of the run.

    `number` counts the runs of the campaign. `head` is the SHA-256 of the line that
    records the start: it stands for all lines up to that one.
    """

    entry: int
    number: int
    head: _Digest


class Manifest(msgspec.Struct):
    """The keys of a manifest that the suite reads; other keys may be anything."""

    run: str
    system: str
    campaign: str
    nodes: tuple[_Node, ...]
    started: str
    ended: str
    checksums: dict[str, _Digest]
    description: str = ""
    checks: tuple[str, ...] = ()
    weights: _Weights | None = None
    partial: bool = False
    demonstration: bool = False
    model: bool = False
    replay: str | None = None
    software: Software | None = None
    starts: tuple[_Start, ...] = ()
    sessions: tuple[_Session, ...] = ()
    settings: dict[str, dict[str, str]] = {}
    imported: _Imported | None = None
    ledger: Place | None = None
    repeat_of: str = ""
    own_metrics: tuple[Metric, ...] = ()


def decoded(content: bytes, file: Path, kind: type[_T], what: str) -> _T:
    """Decode JSON of one type.

    Raises SeatrialError if it is no JSON, is nested too deeply, has a NUL in a text,
    or if a value has another type; the message names the place of the value.
    """
    if _NUL.search(content):
        raise SeatrialError(f"{file}: a text has a NUL in it; expected {what}")
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise SeatrialError(f"{file}: damaged: {error}; expected {what}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SeatrialError(f"{file}: not valid JSON: {error}") from error
    except RecursionError as error:
        raise SeatrialError(f"{file}: nested too deeply; expected {what}") from error


def read_manifest(path: Path) -> dict[str, Any]:
    """Read manifest.json of a closed run; SeatrialError as `parse_manifest`."""
    return parse_manifest(path, manifest_bytes(path))


def manifest_bytes(path: Path) -> bytes:
    """Read the bytes of a run's manifest.

    Raises SeatrialError if there is none, or if the run is still open.
    """
    if is_unfinished(path.name):
        raise SeatrialError(
            f"{path}: this run is not closed: it is still going on, or it was "
            "interrupted; it is never judged"
        )
    if not (path / MANIFEST).is_file():
        raise SeatrialError(f"{path}: not a run: it has no {MANIFEST}")
    return read_plain(path / MANIFEST, MANIFEST_SIZE)


def parse_manifest(path: Path, content: bytes) -> dict[str, Any]:
    """Parse the manifest of the run in a folder.

    Raises SeatrialError if its schema is unknown, a value has the wrong type, a name
    or a path in it is none, or if it is the manifest of a run of another name.
    """
    file = path / MANIFEST
    manifest: Any = decoded(content, file, object, "a manifest")
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if type(schema) is int and schema > NEWEST_SCHEMA:
        raise SeatrialError(
            f"{file}: made by a newer Seatrial: schema {schema}, this one knows up to "
            f"{NEWEST_SCHEMA}; upgrade this Seatrial"
        )
    if type(schema) is not int or schema < 1:
        expected = f"expected a manifest of schema 1 to {NEWEST_SCHEMA}"
        raise SeatrialError(f"{file}: {expected}")
    checked = decoded(content, file, Manifest, "a manifest of Seatrial")
    for key in _NAMES:
        checked_name(manifest[key], f"{file}: {key}")
    for session in checked.sessions:
        checked_name(session.name, f"{file}: session")
    for metric in checked.own_metrics:
        try:
            own_metric(metric)
        except ValueError as error:
            raise SeatrialError(f"{file}: own_metrics: {error}") from None
    for name in checked.checksums:
        if not is_inside(name):
            reason = f"{name!r} is not in the run; expected files in it"
            raise SeatrialError(f"{file}: {reason}")
    for key in ("started", "ended"):
        _seconds(file, key, manifest[key])
    if path.name != checked.run:
        reason = f"holds run {checked.run}; expected a folder of the same name"
        raise SeatrialError(f"{path}: {reason}; rename it")
    return dict(manifest)


def is_unfinished(name: str) -> bool:
    """Return True if a folder's name is that of an open run or an unfinished copy."""
    return name.endswith(OPEN_SUFFIX) or name.startswith(".")


def check_times(path: Path, manifest: dict[str, Any]) -> None:
    """Refuse a run that says it started or ended more than an hour from now.

    If the clock was set back in the middle of it, which its sessions tell, only its end
    counts.
    """
    sessions = manifest.get("sessions", ())
    set_back = any("clock_went_back_s" in session for session in sessions)
    for key in ("ended",) if set_back else ("started", "ended"):
        text = manifest[key]
        if _seconds(path / MANIFEST, key, text) > time.time() + _MOST_AHEAD_S:
            raise SeatrialError(
                f"{path / MANIFEST}: {key} lies in the future: {text}; set the clock "
                "of this machine; if it is right, that of the machine that ran it was "
                "wrong, and the run must be repeated"
            )


def _seconds(file: Path, key: str, text: str) -> float:
    """Return a time in UTC seconds since the epoch; SeatrialError if it is none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).timestamp()
    except (ValueError, OverflowError) as error:
        expected = "expected for example 2026-11-21T06:30:15+00:00"
        raise SeatrialError(
            f"{file}: {key}: {text!r} is no time; {expected}"
        ) from error
