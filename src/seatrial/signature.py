"""SSH signatures (`ssh-keygen -Y`, OpenSSH 8.2 and later) of a run's manifest."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import Exit, SeatrialError

SIGNATURE = "manifest.json.sig"
NAMESPACE = "seatrial-run"
"""What the signature is for: one that was made for mail or git is refused."""

_GOOD = re.compile(r'Good "\S+" signature (?:for .* )?with (\S+) key (\S+)')
_TOO_OLD = (
    "unknown option -- Y",
    "illegal option -- Y",
    "Unsupported operation for -Y",
)


@dataclass(frozen=True)
class Signature:
    """A right signature: type and fingerprint of its key, and whose key that is."""

    key_type: str
    fingerprint: str
    signer: str | None = None
    signers: Path | None = None


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


def check_signature(file: Path, signers: Path | None = None) -> Signature:
    """Check the signature beside a file, and find whose it is among the signers.

    `signers` is a file as OpenSSH's allowed_signers. Raises SeatrialError with exit
    status 1 if file and signature do not belong together.
    """
    content, signature = file.read_bytes(), file.with_name(file.name + ".sig")
    checked = ["-n", NAMESPACE, "-s", str(signature)]
    done = _ssh_keygen(["check-novalidate", *checked], content)
    good = _GOOD.search(done.stdout.decode(errors="replace"))
    if done.returncode or good is None:
        raise SeatrialError(
            f"{file}: not what was signed: {signature.name} does not belong to it: "
            f"{_words(done)}; one of the two was changed after the run was sealed",
            Exit.FAILED,
        )
    signer = _signer(content, signature, signers, checked) if signers else None
    return Signature(good[1], good[2], signer, signers if signer else None)


def known_signers(references: Path, system: str) -> Path | None:
    """Find allowed_signers of a system, else of all systems; None: there is none.

    `references` is the folder reference-data.
    """
    plain = re.fullmatch(r"\w[\w.-]*", system)  # it is the manifest that says it
    folders = (references / system, references) if plain else (references,)
    files = [folder / "allowed_signers" for folder in folders]
    return next((file for file in files if file.is_file()), None)


def _signer(
    content: bytes, signature: Path, signers: Path, checked: list[str]
) -> str | None:
    """Name the signer of a right signature; None if no line of the file is his."""
    if not signers.is_file():
        raise SeatrialError(
            f"{signers}: no such file; expected lines such as "
            "`acceptance@example.org ssh-ed25519 AAAA...` (ssh-keygen(1), ALLOWED "
            "SIGNERS)"
        )
    found = _ssh_keygen(
        ["find-principals", "-s", str(signature), "-f", str(signers)], content
    )
    for signer in found.stdout.decode(errors="replace").split():
        # find-principals knows nothing of namespaces and of what was signed
        done = _ssh_keygen(
            ["verify", "-f", str(signers), "-I", signer, *checked], content
        )
        if done.returncode == 0:
            return signer
    told = found.stderr.decode(errors="replace")
    broken = re.search(rf"^{re.escape(str(signers))}:\d+: .*", told, re.MULTILINE)
    if broken:
        raise SeatrialError(f"not a file of signers: {broken[0]}")
    return None


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
    """Give what ssh-keygen said, in one line."""
    text = (done.stderr + b"\n" + done.stdout).decode(errors="replace")
    return " ".join(text.split()) or f"status {done.returncode}"
