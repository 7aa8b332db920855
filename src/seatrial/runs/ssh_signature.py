"""SSH signatures (`ssh-keygen -Y`, OpenSSH 8.2 and later) of a run's manifest."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from seatrial.errors import Exit, SeatrialError
from seatrial.names import is_name

SIGNATURE = "manifest.json.sig"
NAMESPACE = "seatrial-run"
"""What the signature is for: one that was made for mail or git is refused."""

REVOKED = "revoked_keys"
"""The list of revoked keys beside a file of signers: public keys, or a KRL."""

_NOT_VALID = ("key has expired", "key is not yet valid")
_GOOD = re.compile(r'Good "\S+" signature (?:for .* )?with (\S+) key (\S+)')
_TOO_OLD = (
    "unknown option -- Y",
    "illegal option -- Y",
    "Unsupported operation for -Y",
)


@dataclass(frozen=True)
class Signature:
    """A right signature: type and fingerprint of its key, and whose key that is.

    `problem` tells why a key that the signers name does not count: it has expired.
    """

    key_type: str
    fingerprint: str
    signer: str | None = None
    signers: Path | None = None
    problem: str = ""


@dataclass(frozen=True)
class Sealed:
    """The manifest `file` of a sealed run and its signature: their bytes, read once."""

    file: Path
    content: bytes = field(repr=False)
    signature: bytes = field(repr=False)

    def check(
        self, signers: Path | None = None, at: datetime | None = None
    ) -> Signature:
        """Check the signature, and find the signer among the signers.

        `signers` is a file as OpenSSH's allowed_signers; keys count if they are valid
        `at` that time (default: now). Raises SeatrialError with exit status 1 if
        manifest and signature do not belong together, or if the list `REVOKED` beside
        the signers revokes the key.
        """
        with TemporaryDirectory(prefix="seatrial-seal-") as folder:
            copy = Path(folder, SIGNATURE)
            copy.write_bytes(self.signature)
            return _check(self.content, copy, self.file, signers, at)


def sign(content: bytes, key: Path) -> bytes:
    """Sign content with a private key, or with a public one whose other half an agent
    holds; SeatrialError if that fails. May ask for a passphrase on the terminal.
    """
    done = _ssh_keygen(["sign", "-f", str(key), "-n", NAMESPACE], content)
    if done.returncode:
        raise SeatrialError(
            f"{key}: cannot sign with this key: {_words(done)}; expected a private key "
            "of ssh-keygen, or the public half of one that ssh-agent holds"
        )
    return done.stdout


def _check(
    content: bytes,
    signature: Path,
    file: Path,
    signers: Path | None,
    at: datetime | None,
) -> Signature:
    checked = ["-n", NAMESPACE, "-s", str(signature)]
    done = _ssh_keygen(["check-novalidate", *checked], content)
    good = _GOOD.search(done.stdout.decode(errors="replace"))
    if done.returncode or good is None:
        raise SeatrialError(
            f"{file}: not what was signed: {signature.name} does not belong to it: "
            f"{_words(done)}; one of the two was changed after the run was sealed",
            Exit.FAILED,
        )
    if signers is None:
        return Signature(good[1], good[2])
    signer, problem = _signer(content, signature, file, signers, checked, at)
    return Signature(good[1], good[2], signer, signers if signer else None, problem)


def known_signers(references: Path, system: str) -> Path | None:
    """Find allowed_signers of a system, else of all systems; None: there is none.

    `references` is the folder reference-data.
    """
    plain = is_name(system)  # it is the manifest that says it
    folders = (references / system, references) if plain else (references,)
    files = [folder / "allowed_signers" for folder in folders]
    return next((file for file in files if file.is_file()), None)


def _signer(
    content: bytes,
    signature: Path,
    file: Path,
    signers: Path,
    checked: list[str],
    at: datetime | None,
) -> tuple[str | None, str]:
    """Return the signer of a right signature; else None, and the problem of its key."""
    if not signers.is_file():
        raise SeatrialError(
            f"{signers}: no such file; expected lines such as "
            "`acceptance@example.org ssh-ed25519 AAAA...` (ssh-keygen(1), ALLOWED "
            "SIGNERS)"
        )
    moment = [] if at is None else [f"-Overify-time={at.astimezone():%Y%m%d%H%M%S}"]
    known = ["-f", str(signers), *moment]
    found = _ssh_keygen(["find-principals", "-s", str(signature), *known], content)
    for signer in found.stdout.decode(errors="replace").split():
        # find-principals knows nothing of namespaces and of what was signed
        verify = ["verify", *known, "-I", signer, *checked]
        if _ssh_keygen(verify, content).returncode:
            continue
        revoked = signers.with_name(REVOKED)
        listed = ["-r", str(revoked)] if os.path.lexists(revoked) else []
        if listed and _ssh_keygen([*verify, *listed], content).returncode:
            raise SeatrialError(
                f"{file}: sealed with a key of {signer} that {revoked} revokes; "
                "the seal proves nothing",
                Exit.FAILED,
            )
        return signer, ""
    stderr = found.stderr.decode(errors="replace")
    lines = re.findall(rf"^({re.escape(str(signers))}:\d+: (.*))", stderr, re.MULTILINE)
    for line, problem in lines:
        if problem.startswith(_NOT_VALID):
            return None, line
    if lines:
        raise SeatrialError(f"not a file of signers: {lines[0][0]}")
    return None, ""


def _ssh_keygen(
    arguments: list[str], content: bytes
) -> subprocess.CompletedProcess[bytes]:
    try:
        done = subprocess.run(
            ["ssh-keygen", "-Y", *arguments],
            input=content,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise SeatrialError(
            "ssh-keygen is not installed; signatures need that of OpenSSH 8.2 or later"
        ) from error
    if any(words in done.stderr.decode(errors="replace") for words in _TOO_OLD):
        raise SeatrialError(
            "ssh-keygen on PATH knows no signatures (-Y); expected that of OpenSSH 8.2 "
            "or later"
        )
    return done


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what ssh-keygen said, in one line."""
    text = (done.stderr + b"\n" + done.stdout).decode(errors="replace")
    return " ".join(text.split()) or f"status {done.returncode}"
