"""Sign a protocol in a role: all of it, or nothing."""

from pathlib import Path

from seatrial.errors import Exit, SeatrialError
from seatrial.protocol.record import NAMESPACE, SIGNATURES_FOLDER
from seatrial.protocol.verification import (
    RoleSignature,
    Verified,
    checked,
    next_to,
    verify_protocol,
)
from seatrial.runs.open_run import disk_errors, write_file
from seatrial.runs.ssh_signature import sign


def sign_protocol(
    path: Path, role: str, key: Path, signers: Path
) -> tuple[Verified, RoleSignature]:
    """Sign the list of a whole protocol in a role; return it verified after that.

    The signature is a new file, made at once; earlier ones stay. Raises SeatrialError,
    and writes nothing, if the protocol is broken, the role is not declared, the signers
    do not grant it to the key, or if the person or key has signed already.
    """
    before = verify_protocol(path, signers)
    before.require_whole()
    if role not in before.required:
        raise SeatrialError(
            f"--role {role}: no role of this protocol; expected one of "
            f"{', '.join(before.required)}, as its criteria.yaml declares them"
        )
    signature = sign(before.listed, key, f"{NAMESPACE}{role}")
    new = checked(path, before.listed, signature, "", role, signers)
    if new.signer is None:
        raise SeatrialError(
            f"{key}: must not sign as {role}: {new.problem}; expected a line such as "
            f'`jane@example.org namespaces="{NAMESPACE}{role}" ssh-ed25519 AAAA...` '
            f"in {signers}; nothing was signed"
        )
    for one in before.signatures:
        if new.signer == one.signer or new.fingerprint == one.fingerprint:
            raise SeatrialError(
                f"{path}: {one.signer or one.fingerprint} signed it already, as "
                f"{one.role}; expected another person; nothing was signed"
            )
    file = next_to(path, role, new.fingerprint)
    with disk_errors(path):
        (path / SIGNATURES_FOLDER).mkdir(exist_ok=True)
        write_file(file, signature)
    after = verify_protocol(path, signers)
    if after.state == "broken" or after.listed != before.listed:
        with disk_errors(path):
            file.unlink(missing_ok=True)
        raise SeatrialError(
            f"{path}: changed while it was signed, and the signature is removed again; "
            "expected a protocol that no process writes to; verify it, then sign it",
            Exit.FAILED,
        )
    return after, new
