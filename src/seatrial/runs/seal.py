"""Is a closed run as it was when it was closed, and who vouches for it?"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from seatrial.errors import Exit, SeatrialError
from seatrial.model.manifest import MANIFEST
from seatrial.runs.open_run import disk_errors, write_file
from seatrial.runs.run_contents import Contents, Difference, read_contents
from seatrial.runs.ssh_signature import SIGNATURE, Sealed, Signature, sign

SealState = Literal["none", "known", "unknown", "wrong"]
"""Not sealed; sealed by a known signer; by somebody; and the seal is broken."""


@dataclass(frozen=True)
class Verification:
    """The result of verifying a closed run; `digest` is the SHA-256 of its manifest.

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
        """True if no change since the run was closed is visible."""
        return not self.differences


def verify(
    path: Path, signers: Path | None = None, at: datetime | None = None
) -> Verification:
    """Compare every file of a closed run with its manifest, and check its seal.

    `signers`: whose signature is known (OpenSSH's allowed_signers), by keys that are
    valid `at` that time (default: now). Raises
    SeatrialError if the run is open, or if a file cannot be read.
    """
    return verification(read_contents(path), signers, at)


def require_signer(path: Path, sealed: Sealed | None, signers: Path) -> Signature:
    """Require that a known signer sealed a run; `sealed` is what was read of it.

    Raises SeatrialError, with exit status 1 if the run is not sealed or its seal is
    broken, and 3 if its signature is right but not that of a known signer.
    """
    if sealed is None:
        raise not_sealed(path)
    signature = sealed.check(signers)
    if signature.signer is None:
        raise SeatrialError(
            f"{path}: sealed with a key that does not count: {signature.problem}; "
            "`seatrial verify --at TIME` tells whether it did when the run was sealed"
            if signature.problem
            else f"{path}: sealed with a key that {signers} does not name: "
            f"{key_text(signature)}",
            Exit.UNDECIDED,
        )
    return signature


def not_sealed(path: Path) -> SeatrialError:
    """Return the error for a run without the seal that was asked for."""
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
    cannot sign, if the signature cannot be written, or if the run changes meanwhile.
    """
    contents = read_contents(path)
    if contents.sealed is not None:
        raise SeatrialError(
            f"{path}: sealed already; `seatrial verify` says by whom; to seal it anew, "
            f"move {SIGNATURE} away first"
        )
    require_whole(contents, "sealed")
    signature = sign(contents.manifest_bytes, key)
    with disk_errors(path):
        write_file(path / SIGNATURE, signature)
    after = verify(path)
    if not after.whole or after.digest != contents.digest:
        with disk_errors(path):
            (path / SIGNATURE).unlink(missing_ok=True)
        what = after.differences[0].file if after.differences else MANIFEST
        raise SeatrialError(
            f"{path / what}: changed while the run was sealed, and the seal is removed "
            "again; expected a run that nobody writes to; verify it, then seal it",
            Exit.FAILED,
        )
    return after


def require_whole(contents: Contents, what: str) -> None:
    """Raise SeatrialError with exit status 1 if a run is not whole."""
    for first in contents.differences[:1]:
        raise SeatrialError(
            f"{contents.path / first.file}: {first.problem}; only a whole run is "
            f"{what}",
            Exit.FAILED,
        )


def verification(
    contents: Contents, signers: Path | None, at: datetime | None = None
) -> Verification:
    """Describe what was read of a run, as `verify` does."""
    state, signature, broken = _seal(contents.sealed, signers, at)
    return Verification(
        path=contents.path,
        run=contents.manifest["run"],
        system=contents.manifest["system"],
        digest=contents.digest,
        files=contents.files,
        size_bytes=contents.size_bytes,
        differences=(*broken, *contents.differences),
        seal=state,
        signature=signature,
    )


def _seal(
    sealed: Sealed | None, signers: Path | None, at: datetime | None
) -> tuple[SealState, Signature | None, list[Difference]]:
    if sealed is None:
        return "none", None, []
    try:
        signature = sealed.check(signers, at)
    except SeatrialError as error:
        if error.exit_code != Exit.FAILED:
            raise
        return "wrong", None, [Difference(MANIFEST, str(error).partition(": ")[2])]
    return "known" if signature.signer else "unknown", signature, []
