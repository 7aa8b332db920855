"""Verify a closed run and its seal; seal it."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from seatrial.errors import Exit, SeatrialError
from seatrial.model.manifest import MANIFEST
from seatrial.runs.listed_files import Difference
from seatrial.runs.open_run import disk_errors, write_file
from seatrial.runs.run_contents import Contents, read_contents
from seatrial.runs.ssh_signature import SIGNATURE, Sealed, Signature, sign

SealState = Literal["none", "known", "unknown", "wrong"]
"""Not sealed; sealed by a known signer; by another; the seal is broken."""


@dataclass(frozen=True)
class Verification(Contents):
    """A closed run as it was verified; a broken seal is a difference, too."""

    seal: SealState
    signature: Signature | None

    @property
    def whole(self) -> bool:
        """Return True if no change since the run was closed is visible."""
        return not self.differences


def verify(
    path: Path, signers: Path | None = None, at: datetime | None = None
) -> Verification:
    """Read a closed run as `read_contents` does, and verify it."""
    return verification(read_contents(path), signers, at)


def verification(
    contents: Contents, signers: Path | None, at: datetime | None = None
) -> Verification:
    """Check the seal of a run that was read.

    `signers`: OpenSSH's allowed_signers, with keys that are valid `at` that time
    (default: now). Raises SeatrialError if they cannot be read.
    """
    state: SealState = "none"
    signature, differences = None, contents.differences
    if contents.sealed is not None:
        try:
            signature = contents.sealed.check(signers, at)
            state = "known" if signature.signer else "unknown"
        except SeatrialError as error:
            if error.exit_code != Exit.FAILED:
                raise
            state, problem = "wrong", str(error).partition(": ")[2]
            differences = (Difference(MANIFEST, problem), *differences)
    fields = {**vars(contents), "differences": differences}
    return Verification(**fields, seal=state, signature=signature)


def require_signer(path: Path, sealed: Sealed | None, signers: Path) -> Signature:
    """Require that a known signer sealed a run; `sealed` are its bytes.

    Raises SeatrialError, with exit status 1 if the run is not sealed or its seal is
    broken, and 3 if its signature is right but not that of a known signer.
    """
    if sealed is None:
        raise not_sealed(path)
    signature = sealed.check(signers)
    if signature.signer is not None:
        return signature
    if signature.problem:
        problem = (
            f"does not count: {signature.problem}; `seatrial verify --at TIME` checks "
            "it as of the time of the seal"
        )
    else:
        problem = f"{signers} does not name: {key_text(signature)}"
    raise SeatrialError(f"{path}: sealed with a key that {problem}", Exit.UNDECIDED)


def not_sealed(path: Path) -> SeatrialError:
    """Return the error for a run without the seal that was asked for."""
    return SeatrialError(
        f"{path}: not sealed; expected {SIGNATURE} in it; run `seatrial seal` with the "
        "key of the person who vouches for it",
        Exit.FAILED,
    )


def key_text(signature: Signature | None) -> str:
    """Format a key as its type and fingerprint."""
    return f"{signature.key_type} {signature.fingerprint}" if signature else ""


def seal(path: Path, key: Path) -> Verification:
    """Sign the manifest of a whole run.

    Raises SeatrialError if the run is open, changed or sealed already, if the key
    cannot sign, if the signature cannot be written, or if the run changes meanwhile.
    """
    contents = read_contents(path)
    if contents.sealed is not None:
        raise SeatrialError(
            f"{path}: sealed already; `seatrial verify` names the signer; to seal it "
            f"anew, move {SIGNATURE} away first"
        )
    contents.require_whole("sealed")
    signature = sign(contents.manifest_bytes, key)
    with disk_errors(path):
        write_file(path / SIGNATURE, signature)
    after = verify(path)
    if not after.whole or after.digest != contents.digest:
        with disk_errors(path):
            (path / SIGNATURE).unlink(missing_ok=True)
        file = after.differences[0].file if after.differences else MANIFEST
        raise SeatrialError(
            f"{path / file}: changed while the run was sealed, and the seal is removed "
            "again; expected a run that no process writes to; verify it, then seal it",
            Exit.FAILED,
        )
    return after
