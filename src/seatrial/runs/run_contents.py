"""The files of a closed run, each read once: the parsed bytes are the hashed ones.

Every command that judges, reports, compares, verifies, seals, packs or fetches a run
reads it through `read_contents`.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.errors import Exit, SeatrialError
from seatrial.limits import SIGNATURE_SIZE, YAML_SIZE, Limit
from seatrial.model.manifest import MANIFEST, manifest_bytes, parse_manifest
from seatrial.plain_files import read_plain
from seatrial.runs.listed_files import Difference, compare_files
from seatrial.runs.ssh_signature import (
    REASONS,
    REASONS_NAMESPACE,
    REASONS_SIGNATURE,
    SIGNATURE,
    Sealed,
)

LOCK_FILE = "driver.lock"


@dataclass(frozen=True)
class Contents:
    """A closed run as it was read; `digest` is the SHA-256 of its manifest.

    `kept` has the bytes of requested files that match the manifest. `sealed` is None
    without a signature. `reasons` are those for missing numbers, None without a file.
    `files` counts the files that the manifest lists, `size_bytes` sums those that
    exist.
    """

    path: Path
    manifest: dict[str, Any]
    manifest_bytes: bytes = field(repr=False)
    digest: str
    sealed: Sealed | None
    files: int
    size_bytes: int
    differences: tuple[Difference, ...]
    kept: Mapping[str, bytes] = field(repr=False)
    reasons: Sealed | None

    @property
    def run(self) -> str:
        """Return the id of the run."""
        return str(self.manifest["run"])

    @property
    def system(self) -> str:
        """Return the name of its system."""
        return str(self.manifest["system"])

    def require_whole(self, purpose: str = "") -> None:
        """Raise SeatrialError if the seal is broken or a file is not as listed.

        The exit status of the latter is 1 with a `purpose`, such as `packed`.
        """
        if self.sealed is not None:
            self.sealed.check()
        for first in self.differences[:1]:
            remedy = f"; only a whole run is {purpose}" if purpose else ""
            raise SeatrialError(
                f"{self.path / first.file}: {first.problem}{remedy}",
                Exit.FAILED if purpose else Exit.USAGE,
            )


def read_contents(path: Path, keep: Mapping[str, Limit] | None = None) -> Contents:
    """Read a closed run and compare all its files with its manifest.

    `keep`: files to return the bytes of, each with its limit. Raises SeatrialError if
    the run is open, its manifest is damaged or of another run, or a file is unreadable.
    """
    content = manifest_bytes(path)
    manifest = parse_manifest(path, content)
    signature, sealed = path / SIGNATURE, None
    if os.path.lexists(signature):
        signed = read_plain(signature, SIGNATURE_SIZE)
        sealed = Sealed(path / MANIFEST, content, signed)
    checksums: dict[str, str] = manifest["checksums"]
    # A driver that was killed while it closed the run leaves its lock.
    # Reasons for missing numbers come after the run; their signature vouches for them.
    beside = (MANIFEST, SIGNATURE, REASONS, REASONS_SIGNATURE, LOCK_FILE)
    files = compare_files(path, checksums, "the manifest", keep, beside)
    return Contents(
        path=path,
        manifest=manifest,
        manifest_bytes=content,
        digest=hashlib.sha256(content).hexdigest(),
        sealed=sealed,
        files=len(checksums),
        size_bytes=files.size_bytes,
        differences=files.differences,
        kept=files.kept,
        reasons=_reasons(path),
    )


def _reasons(path: Path) -> Sealed | None:
    """Read the reasons beside the seal, and their signature, if there are any."""
    file, signature, signed = path / REASONS, path / REASONS_SIGNATURE, b""
    if not os.path.lexists(file):
        return None
    if os.path.lexists(signature):
        signed = read_plain(signature, SIGNATURE_SIZE)
    return Sealed(file, read_plain(file, YAML_SIZE), signed, REASONS_NAMESPACE)
