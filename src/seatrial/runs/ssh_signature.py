"""SSH signatures (`ssh-keygen -Y`, OpenSSH 8.2 and later) of files of a run."""

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
"""Purpose of a seal: a signature for mail or git is refused."""

REASONS = "reasons.yaml"
REASONS_SIGNATURE = f"{REASONS}.sig"
REASONS_NAMESPACE = "seatrial-reasons"
"""Purpose of a signature of reasons: a seal signs none."""

REVOKED = "revoked_keys"
"""The list of revoked keys beside a file of signers: public keys, or a KRL."""

_NOT_VALID = ("key has expired", "key is not yet valid")
_PRINCIPALS = re.compile(r'\s*(?:"[^"]*"|[^\s"]\S*)\s+')
_OPTIONS = re.compile(r'(?:[^\s"]|"(?:\\.|[^"\\])*")*')
_GRANT = re.compile(r'(?:^|,)namespaces="', re.IGNORECASE)
_QUOTED = re.compile(r'(?<==)"(?:\\.|[^"\\])*"')
_GOOD = re.compile(r'Good "\S+" signature (?:for .* )?with (\S+) key (\S+)')
_TOO_OLD = re.compile(b"(unknown|illegal) option -- Y|Unsupported operation for -Y")


@dataclass(frozen=True)
class Signature:
    """A right signature: type and fingerprint of its key, and the owner of the key.

    `problem`: why a key that the signers name does not count, such as an expired one.
    """

    key_type: str
    fingerprint: str
    signer: str | None = None
    signers: Path | None = None
    problem: str = ""


@dataclass(frozen=True)
class Sealed:
    """A signed file of a run and its signature: their bytes, read once.

    It is the manifest of a sealed run, or has reasons for missing numbers, or lists the
    files of a protocol, with a `namespace` of their own. `signature` is b"" if it has
    none; its file is `signature_name`, by default that beside the file.
    """

    file: Path
    content: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    namespace: str = NAMESPACE
    signature_name: str = ""

    def check(
        self,
        signers: Path | None = None,
        at: datetime | None = None,
        *,
        by_name: bool = False,
    ) -> Signature:
        """Check the signature, and find the signer among the signers.

        `signers` is a file as OpenSSH's allowed_signers; keys count if they are valid
        `at` that time (default: now), and `by_name` only if their line names the
        namespace. Raises SeatrialError with exit status 1 if file and signature do not
        belong together, or if the list `REVOKED` beside the signers revokes the key.
        """
        name = self.signature_name or f"{self.file.name}.sig"
        with TemporaryDirectory(prefix="seatrial-seal-") as folder:
            copy = Path(folder, "signature")
            copy.write_bytes(self.signature)
            checked = ["-n", self.namespace, "-s", str(copy)]
            done = _ssh_keygen(["check-novalidate", *checked], self.content)
            good = _GOOD.search(done.stdout.decode(errors="replace"))
            if done.returncode or good is None:
                raise SeatrialError(
                    f"{self.file}: not what was signed: {name} does not belong to "
                    f"it ({_words(done)}); one of the two was changed later",
                    Exit.FAILED,
                )
            if signers is None:
                return Signature(good[1], good[2])
            signer, problem = self._signer(copy, signers, checked, at)
            if signer and by_name:
                signer, problem = self._granted(copy, signers, checked, at, signer)
            return Signature(
                good[1], good[2], signer, signers if signer else None, problem
            )

    def _granted(
        self,
        signature: Path,
        signers: Path,
        checked: list[str],
        at: datetime | None,
        signer: str,
    ) -> tuple[str | None, str]:
        """Return the signer by the lines that name namespaces, or None and why."""
        listed = signature.with_name(signers.name)
        listed.write_bytes(_with_namespaces(signers.read_bytes()))
        granted, _ = self._signer(signature, listed, checked, at)
        if granted is not None:
            return granted, ""
        return None, (
            f"{signers} has {signer} without namespaces; expected namespaces="
            f'"{self.namespace}" in the line of the key'
        )

    def _signer(
        self, signature: Path, signers: Path, checked: list[str], at: datetime | None
    ) -> tuple[str | None, str]:
        """Return the signer, or None and the problem of the key."""
        if not signers.is_file():
            raise SeatrialError(
                f"{signers}: no such file; expected lines such as "
                "`acceptance@example.org ssh-ed25519 AAAA...` (ssh-keygen(1), ALLOWED "
                "SIGNERS)"
            )
        known = ["-f", str(signers)]
        if at is not None:
            known.append(f"-Overify-time={at.astimezone():%Y%m%d%H%M%S}")
        find = ["find-principals", "-s", str(signature), *known]
        done = _ssh_keygen(find, self.content)
        for signer in done.stdout.decode(errors="replace").split():
            # find-principals checks neither namespace nor content
            verify = ["verify", *known, "-I", signer, *checked]
            if _ssh_keygen(verify, self.content).returncode:
                continue
            revoked = signers.with_name(REVOKED)
            listed = [*verify, "-r", str(revoked)]
            if (
                os.path.lexists(revoked)
                and _ssh_keygen(listed, self.content).returncode
            ):
                raise SeatrialError(
                    f"{self.file}: signed with a key of {signer} that {revoked} "
                    "revokes; the signature proves nothing",
                    Exit.FAILED,
                )
            return signer, ""
        stderr, place = done.stderr.decode(errors="replace"), re.escape(str(signers))
        lines = re.findall(rf"^({place}:\d+: (.*))", stderr, re.MULTILINE)
        for line, problem in lines:
            if problem.startswith(_NOT_VALID):
                return None, line
        if lines:
            raise SeatrialError(f"not a file of signers: {lines[0][0]}")
        return None, ""


def _with_namespaces(signers: bytes) -> bytes:
    """Return the lines of allowed_signers whose options name namespaces.

    All others are comments, so that the numbers of lines stay.
    """
    lines = signers.decode(errors="surrogateescape").split("\n")
    kept = [line if _names_namespaces(line) else "#" for line in lines]
    return "\n".join(kept).encode(errors="surrogateescape")


def _names_namespaces(line: str) -> bool:
    principals = _PRINCIPALS.match(line)
    if principals is None:
        return False
    options = _OPTIONS.match(line, principals.end())
    # A quoted value may have the words, too: only its own name counts.
    text = _QUOTED.sub('"', options[0]) if options else ""
    return _GRANT.search(text) is not None


def sign(content: bytes, key: Path, namespace: str = NAMESPACE) -> bytes:
    """Sign content with a private key, or a public one with its half in an agent.

    May ask for a passphrase on the terminal. Raises SeatrialError if that fails.
    """
    done = _ssh_keygen(["sign", "-f", str(key), "-n", namespace], content)
    if done.returncode:
        raise SeatrialError(
            f"{key}: cannot sign with this key: {_words(done)}; expected a private key "
            "of ssh-keygen, or the public half of one that ssh-agent holds"
        )
    return done.stdout


def known_signers(references: Path, system: str) -> Path | None:
    """Find allowed_signers of a system, else of all systems; None without one.

    `references` is the folder reference-data.
    """
    # The name of the system comes from the manifest.
    folders = (references / system, references) if is_name(system) else (references,)
    files = (folder / "allowed_signers" for folder in folders)
    return next((file for file in files if file.is_file()), None)


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
    if _TOO_OLD.search(done.stderr):
        raise SeatrialError(
            "ssh-keygen on PATH knows no signatures (-Y); expected that of OpenSSH "
            "8.2 or later"
        )
    return done


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    """Format the messages of ssh-keygen in one line."""
    text = (done.stderr + b"\n" + done.stdout).decode(errors="replace")
    text = text.replace("Could not verify signature.", "")  # of each failure
    return " ".join(text.split()) or f"status {done.returncode}"
