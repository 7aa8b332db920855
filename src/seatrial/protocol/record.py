"""A protocol as a folder: its record, and the list of its files that is signed."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, NoReturn

import msgspec
from msgspec import Meta

from seatrial.criteria.signatures import ROLE
from seatrial.errors import Exit, SeatrialError
from seatrial.limits import Limit
from seatrial.names import is_name

LIST = "SHA256SUMS"
"""The signed file: SHA-256 and name of all others, as `sha256sum` writes and checks."""

RECORD = "protocol.json"
TEXT, PAPER = "protocol.md", "protocol.pdf"
CRITERIA = "criteria.yaml"
LEDGER = "ledger.jsonl"
REPORT_FOLDER, RUNS_FOLDER, SIGNATURES_FOLDER = "report", "runs", "signatures"

NAMESPACE = "seatrial-protocol-"
"""Purpose of a signature: the role follows, so that a key can be limited to it."""

LIST_SIZE = Limit("size of the file", 1 << 20, "bytes")
RECORD_SIZE = Limit("size of the file", 1 << 20, "bytes")
FILE_SIZE = Limit("size of a file of a protocol", 1 << 34, "bytes")

_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
_SIGNATURE = re.compile(rf"{SIGNATURES_FOLDER}/({ROLE})-[\w.@-]+\.sig", re.ASCII)
_UNFINISHED = re.compile(rf"{SIGNATURES_FOLDER}/\.{ROLE}-[0-9a-f]+\.sig\.new", re.ASCII)

_Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class SignedRun(msgspec.Struct, frozen=True):
    """A run of a protocol: the SHA-256 of its manifest, and the file that packs it."""

    run: str
    manifest: _Digest
    file: str


class Record(msgspec.Struct, frozen=True):
    """The record for `seatrial verify`: protocol.json.

    `judgement` is the digest of the judgement, `criteria` the SHA-256 of its criteria.
    `signatures` are the persons that must sign in each role. `written` is a time in
    UTC as ISO 8601.
    """

    schema: Literal[1]
    system: str
    campaign: str
    run: str
    verdict: str
    judgement: _Digest
    criteria: _Digest
    runs: tuple[SignedRun, ...]
    signatures: dict[str, int]
    seatrial: str
    written: str


def list_text(checksums: Mapping[str, str]) -> bytes:
    """Write the list: one line for each file, sorted by name."""
    lines = (f"{checksums[name]}  {name}\n" for name in sorted(checksums))
    return "".join(lines).encode()


def parse_list(content: bytes, where: object) -> dict[str, str]:
    """Return the SHA-256 of each file by its name.

    Raises SeatrialError with exit status 1 if it is not as `list_text` writes it: with
    one form only, the signed bytes and the verified files cannot differ.
    """
    checksums: dict[str, str] = {}
    text = content.decode(errors="replace")
    for number, line in enumerate(text.split("\n")[:-1], 1):
        match = _LINE.fullmatch(line)
        if match is None or not all(map(is_name, match[2].split("/"))):
            _refuse(
                f"{where}:{number}",
                f"expected a SHA-256, two spaces and the name of a file in the "
                f"protocol, got {line[:100]!r}",
            )
        checksums[match[2]] = match[1]
    if list_text(checksums) != content:
        _refuse(where, "expected each file once, sorted by name, a line each")
    for name in (RECORD, TEXT, PAPER, CRITERIA):
        if name not in checksums:
            _refuse(where, f"expected {name} in it, which every protocol has")
    return checksums


def role_of(name: str) -> str | None:
    """Return the role of a file of signatures; None if it is none."""
    match = _SIGNATURE.fullmatch(name)
    return match[1] if match else None


def is_unfinished(name: str) -> bool:
    """Return True for what an interrupted `seatrial sign` leaves: no signature."""
    return _UNFINISHED.fullmatch(name) is not None


def _refuse(where: object, reason: str) -> NoReturn:
    raise SeatrialError(
        f"{where}: {reason}; the list is not as Seatrial wrote it", Exit.FAILED
    )
