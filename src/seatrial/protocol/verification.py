"""Verify a protocol: its files, the runs in it, and who signed in which role."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from seatrial.errors import Exit, SeatrialError
from seatrial.limits import SIGNATURE_SIZE
from seatrial.model.manifest import decoded
from seatrial.plain_files import read_plain
from seatrial.protocol.record import (
    CRITERIA,
    FILE_SIZE,
    LIST,
    LIST_SIZE,
    NAMESPACE,
    RECORD,
    RECORD_SIZE,
    SIGNATURES_FOLDER,
    Record,
    is_unfinished,
    parse_list,
    role_of,
)
from seatrial.runs.listed_files import Difference, compare_files, files_below
from seatrial.runs.pack import unpack
from seatrial.runs.run_contents import read_contents
from seatrial.runs.ssh_signature import Sealed

State = Literal["complete", "incomplete", "broken"]
"""All signatures that are needed; some are missing; a file or signature is wrong."""


@dataclass(frozen=True)
class RoleSignature:
    """A right signature of the list; without a `signer` it does not count.

    `problem` says why it does not.
    """

    file: str
    role: str
    key_type: str
    fingerprint: str
    signer: str | None
    problem: str = ""


@dataclass(frozen=True)
class Verified:
    """A protocol as it was verified; `digest` is the SHA-256 of its list."""

    path: Path
    record: Record
    listed: bytes
    files: int
    size_bytes: int
    differences: tuple[Difference, ...]
    signatures: tuple[RoleSignature, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of the list, which stands for all files."""
        return hashlib.sha256(self.listed).hexdigest()

    @property
    def signers(self) -> Mapping[str, tuple[str, ...]]:
        """The persons that signed, by role, each once; in the order of the roles."""
        persons: dict[str, dict[str, None]] = {role: {} for role in self.required}
        for one in self.signatures:
            if one.signer is not None:
                persons[one.role][one.signer] = None
        return {role: tuple(names) for role, names in persons.items()}

    @property
    def required(self) -> Mapping[str, int]:
        """The number of persons that must sign, by role."""
        return self.record.signatures

    @property
    def state(self) -> State:
        """Return True if it is complete."""
        if self.differences:
            return "broken"
        signed = self.signers
        lacks = any(len(signed[role]) < most for role, most in self.required.items())
        return "incomplete" if lacks else "complete"

    def require_whole(self) -> None:
        """Raise SeatrialError, with exit status 1, if it is broken."""
        for first in self.differences[:1]:
            raise SeatrialError(
                f"{self.path / first.file}: {first.problem}; only a whole protocol is "
                "signed",
                Exit.FAILED,
            )


def is_protocol(path: Path) -> bool:
    """Return True for the folder of a protocol, also of one that lost its list."""
    return any(os.path.lexists(path / name) for name in (LIST, RECORD))


def require_protocol(path: Path) -> None:
    """Raise SeatrialError if a path is not the folder of a protocol."""
    if not is_protocol(path):
        raise SeatrialError(
            f"{path}: no protocol: it has no {LIST}; expected a folder that `seatrial "
            "protocol` wrote"
        )


def system_of(path: Path) -> str:
    """Return the system of a protocol, unverified, to find its `allowed_signers`.

    Raises SeatrialError if its record cannot be read.
    """
    return _record(path, read_plain(path / RECORD, RECORD_SIZE)).system


def verify_protocol(
    path: Path, signers: Path | None = None, at: datetime | None = None
) -> Verified:
    """Verify all files and signatures of a protocol.

    `signers`: OpenSSH's allowed_signers, with keys that are valid `at` that time
    (default: now). Raises SeatrialError if it cannot be read, or has no list or record
    that Seatrial wrote.
    """
    if not os.path.lexists(path / LIST):
        lost = "missing, and it states what was signed; the protocol is broken"
        raise SeatrialError(f"{path / LIST}: {lost}", Exit.FAILED)
    listed = read_plain(path / LIST, LIST_SIZE)
    checksums = parse_list(listed, path / LIST)
    there = sorted(name for name, _ in files_below(path))
    signed = [name for name in there if role_of(name)]
    beside = {LIST, *signed, *filter(is_unfinished, there)}
    keep = {RECORD: RECORD_SIZE}
    files = compare_files(path, checksums, LIST, keep, beside, FILE_SIZE)
    if RECORD not in files.kept:
        first = next(one for one in files.differences if one.file == RECORD)
        raise SeatrialError(f"{path / RECORD}: {first.problem}", Exit.FAILED)
    record = _record(path, files.kept[RECORD])
    differences = files.differences or tuple(_inside(path, record, checksums))
    wrong: list[Difference] = []
    signatures = [*_signatures(path, listed, record, signed, signers, at, wrong)]
    return Verified(
        path=path,
        record=record,
        listed=listed,
        files=len(checksums),
        size_bytes=files.size_bytes,
        differences=(*differences, *wrong, *_twice(signatures)),
        signatures=tuple(signatures),
    )


def _record(path: Path, content: bytes) -> Record:
    file = path / RECORD
    version = decoded(content, file, dict[str, object], "a record of a protocol")
    schema = version.get("schema")
    if type(schema) is int and schema > 1:
        raise SeatrialError(
            f"{file}: made by a newer Seatrial: schema {schema}, this one knows 1; "
            "upgrade this Seatrial"
        )
    return decoded(content, file, Record, "a record of a protocol")


def _inside(
    path: Path, record: Record, checksums: Mapping[str, str]
) -> Iterator[Difference]:
    """Compare criteria and runs with the record; the files are as listed."""
    if checksums[CRITERIA] != record.criteria:
        yield Difference(CRITERIA, f"not the criteria that {RECORD} names")
    for one in record.runs:
        if one.file not in checksums:
            yield Difference(one.file, f"not in {LIST}, but {RECORD} names it")
            continue
        with TemporaryDirectory(prefix="seatrial-protocol-") as folder:
            contents = read_contents(unpack(path / one.file, Path(folder)))
        if (contents.run, contents.digest) != (one.run, one.manifest):
            yield Difference(one.file, f"not the run {one.run} that {RECORD} names")
        for first in contents.differences[:1]:
            yield Difference(one.file, f"{first.file}: {first.problem}")


def _signatures(
    path: Path,
    listed: bytes,
    record: Record,
    names: list[str],
    signers: Path | None,
    at: datetime | None,
    wrong: list[Difference],
) -> Iterator[RoleSignature]:
    """Yield the right signatures; what is wrong with the others goes to `wrong`."""
    for name in names:
        role = role_of(name) or ""
        if role not in record.signatures:
            roles = ", ".join(record.signatures)
            wrong.append(Difference(name, f"{role} is no role; expected {roles}"))
            continue
        try:
            signature = read_plain(path / name, SIGNATURE_SIZE)
        except SeatrialError as error:
            wrong.append(Difference(name, str(error).removeprefix(f"{path / name}: ")))
            continue
        try:
            yield checked(path, listed, signature, name, role, signers, at)
        except SeatrialError as error:
            if error.exit_code != Exit.FAILED:
                raise
            wrong.append(Difference(name, str(error).removeprefix(f"{path / LIST}: ")))


def checked(
    path: Path,
    listed: bytes,
    signature: bytes,
    name: str,
    role: str,
    signers: Path | None,
    at: datetime | None = None,
) -> RoleSignature:
    """Check a signature of the list in a role.

    It counts if the line of its key among the signers grants the role by name. Raises
    SeatrialError with exit status 1 if it does not belong to the list.
    """
    sealed = Sealed(path / LIST, listed, signature, f"{NAMESPACE}{role}", name)
    found = sealed.check(signers, at, by_name=True)
    problem = found.problem
    if found.signer is None and not problem:
        problem = (
            "no known signers; expected allowed_signers, or --signers"
            if signers is None
            else f"{signers} names no such key for the role {role}"
        )
    return RoleSignature(
        name, role, found.key_type, found.fingerprint, found.signer, problem
    )


def _twice(signatures: list[RoleSignature]) -> Iterator[Difference]:
    """Refuse a person, or a key, in two roles."""
    roles: dict[str, dict[str, str]] = defaultdict(dict)
    for one in signatures:
        if one.signer is not None:
            for who in (one.signer, one.fingerprint):
                roles[who].setdefault(one.role, one.file)
    for who, files in roles.items():
        if len(files) > 1:
            yield Difference(
                [*files.values()][-1],
                f"{who} signed as {' and as '.join(files)}; expected one role of each "
                "person and key",
            )


def next_to(path: Path, role: str, fingerprint: str) -> Path:
    """Return the file of a new signature: its name is that of role and key."""
    key = hashlib.sha256(fingerprint.encode()).hexdigest()[:12]
    return path / SIGNATURES_FOLDER / f"{role}-{key}.sig"
