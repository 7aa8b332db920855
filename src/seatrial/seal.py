"""Is a closed run as it was when it was closed, and who vouches for it?"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from seatrial.errors import Exit, SeatrialError
from seatrial.results import MANIFEST, read_manifest, require_closed, sha256
from seatrial.runfolder import LOCK_FILE, disk_errors, write_file
from seatrial.signature import SIGNATURE, Signature, check_signature, sign

SealState = Literal["none", "known", "unknown", "wrong"]
"""Not sealed; sealed by a known signer; by somebody; and the seal is broken."""


@dataclass(frozen=True)
class Difference:
    """A file that is not what the manifest says; checksums are SHA-256, '': no file."""

    file: str
    problem: str
    expected: str = ""
    found: str = ""


@dataclass(frozen=True)
class Verification:
    """What verifying a closed run found; `digest` is the SHA-256 of its manifest.

    `files` and `size_bytes` count what the manifest lists, as far as it is there. A
    broken seal is a difference, too.
    """

    path: Path
    run: str
    system: str
    digest: str
    files: int
    size_bytes: int
    differences: tuple[Difference, ...]
    seal: SealState
    signature: Signature | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing changed since the run was closed, as far as one can see."""
        return not self.differences


def verify(
    path: Path, signers: Path | None = None, at: datetime | None = None
) -> Verification:
    """Compare every file of a closed run with its manifest, and check its seal.

    `signers`: whose signature is known (OpenSSH's allowed_signers), by keys that are
    valid `at` that time (default: now). Raises
    SeatrialError if the run is open, or if a file cannot be read.
    """
    require_closed(path)
    manifest = read_manifest(path)
    checksums = _checksums(path, manifest)
    state, signature, broken = _seal(path, signers, at)
    there = dict(_files(path))
    return Verification(
        path=path,
        run=str(manifest.get("run")),
        system=str(manifest.get("system")),
        digest=sha256(path / MANIFEST),
        files=len(checksums),
        size_bytes=sum(there[name].st_size for name in checksums if name in there),
        differences=(*broken, *_differences(path, checksums, there)),
        seal=state,
        signature=signature,
    )


def require_sealed(path: Path, signers: Path) -> Verification:
    """Verify a run that must be whole and sealed by a known signer.

    Raises SeatrialError, with exit status 1 if the run is not, and 3 if its signature
    is right but not that of a known signer.
    """
    found = verify(path, signers)
    if not found.whole:
        first = found.differences[0]
        raise SeatrialError(f"{path / first.file}: {first.problem}", Exit.FAILED)
    if found.seal == "none":
        raise not_sealed(path)
    if found.seal == "unknown":
        problem = found.signature.problem if found.signature else ""
        raise SeatrialError(
            f"{path}: sealed with a key that does not count: {problem}; `seatrial "
            "verify --at TIME` tells whether it did when the run was sealed"
            if problem
            else f"{path}: sealed with a key that {signers} does not name: "
            f"{key_text(found.signature)}",
            Exit.UNDECIDED,
        )
    return found


def not_sealed(path: Path) -> SeatrialError:
    """Make the error of a run without a seal where one is asked for."""
    return SeatrialError(
        f"{path}: not sealed; expected {SIGNATURE} in it; whoever is to vouch for it "
        "runs `seatrial seal`",
        Exit.FAILED,
    )


def key_text(signature: Signature | None) -> str:
    """Name a key by type and fingerprint."""
    return f"{signature.key_type} {signature.fingerprint}" if signature else ""


def seal(path: Path, key: Path) -> Verification:
    """Sign the manifest of a whole run: everything in it is then vouched for.

    Raises SeatrialError if the run is open, changed or sealed already, if the key
    cannot sign, or if the signature cannot be written.
    """
    before = verify(path)
    if before.seal != "none":
        raise SeatrialError(
            f"{path}: sealed already; `seatrial verify` says by whom; to seal it anew, "
            f"move {SIGNATURE} away first"
        )
    if before.differences:
        first = before.differences[0]
        raise SeatrialError(
            f"{path / first.file}: {first.problem}; only a whole run is sealed",
            Exit.FAILED,
        )
    signature = sign((path / MANIFEST).read_bytes(), key)
    with disk_errors(path):
        write_file(path / SIGNATURE, signature)
    return verify(path)


def _seal(
    path: Path, signers: Path | None, at: datetime | None
) -> tuple[SealState, Signature | None, list[Difference]]:
    if not os.path.lexists(path / SIGNATURE):
        return "none", None, []
    try:
        signature = check_signature(path / MANIFEST, signers, at)
    except SeatrialError as error:
        if error.exit_code != Exit.FAILED:
            raise
        return "wrong", None, [Difference(MANIFEST, str(error).partition(": ")[2])]
    return "known" if signature.signer else "unknown", signature, []


def _checksums(path: Path, manifest: dict[str, Any]) -> dict[str, str]:
    checksums = dict(manifest["checksums"])
    for name in checksums:
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts:
            raise SeatrialError(
                f"{path / MANIFEST}: {name!r} is not in the run; expected files in it"
            )
    return checksums


def _differences(
    path: Path, checksums: dict[str, str], there: dict[str, os.stat_result]
) -> Iterator[Difference]:
    for name, expected in checksums.items():
        if name not in there:
            yield Difference(name, "missing", expected)
        elif not stat.S_ISREG(there[name].st_mode):
            yield Difference(name, "not a plain file", expected)
        elif (found := _digest(path / name)) != expected:
            problem = f"changed: SHA-256 is {found}, the manifest says {expected}"
            yield Difference(name, problem, expected, found)
    # A driver that was killed at the very end leaves its lock.
    known = {*checksums, MANIFEST, SIGNATURE, LOCK_FILE}
    for name in sorted(there.keys() - known):
        yield Difference(name, "not in the manifest: it was added later")


def _files(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """List everything in a run that is no folder, symbolic links unfollowed."""

    def give_up(error: OSError) -> None:
        raise _unreadable(error)

    for folder, folders, files in os.walk(path, onerror=give_up):
        inside = Path(folder)
        links = [name for name in folders if (inside / name).is_symlink()]
        for name in (*files, *links):
            file = inside / name
            yield str(file.relative_to(path)), file.lstat()


def _digest(file: Path) -> str:
    try:
        return sha256(file)
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: OSError) -> SeatrialError:
    return SeatrialError(f"{error.filename}: cannot be read: {error.strerror}")
