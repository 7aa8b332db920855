"""The files of a closed run, each read once: what is parsed is what was hashed.

Every command that judges, reports, compares, verifies, seals, packs or fetches a run
reads it through `read_contents`.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.limits import SIGNATURE_SIZE, Limit
from seatrial.model.manifest import MANIFEST, manifest_bytes, parse_manifest
from seatrial.plain_files import read_plain, sha256_plain
from seatrial.runs.ssh_signature import SIGNATURE, Sealed

LOCK_FILE = "driver.lock"


@dataclass(frozen=True)
class Difference:
    """A file that is not what the manifest says; checksums are SHA-256, '': no file."""

    file: str
    problem: str
    expected: str = ""
    found: str = ""


@dataclass(frozen=True)
class Contents:
    """A closed run as it was read; `digest` is the SHA-256 of its manifest.

    `kept` has the bytes of the files that were asked for, as far as they are what the
    manifest says. `sealed` is None if there is no signature. `files` counts the files
    that the manifest lists, `size_bytes` sums those that are there.
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

    def require_whole(self) -> None:
        """Raise SeatrialError if a file is not what the manifest says."""
        for first in self.differences[:1]:
            raise SeatrialError(f"{self.path / first.file}: {first.problem}")


def read_contents(path: Path, keep: Mapping[str, Limit] | None = None) -> Contents:
    """Read a closed run and compare all its files with its manifest.

    `keep` names files whose bytes are wanted, and how large each may be. Raises
    SeatrialError if the run is open, if its manifest is damaged or of another run, or
    if a file cannot be read.
    """
    content = manifest_bytes(path)
    manifest = parse_manifest(path, content)
    signature = path / SIGNATURE
    sealed = (
        Sealed(path / MANIFEST, content, read_plain(signature, SIGNATURE_SIZE))
        if os.path.lexists(signature)
        else None
    )
    checksums: dict[str, str] = manifest["checksums"]
    there = dict(_files(path))
    kept: dict[str, bytes] = {}
    differences = (*_differences(path, checksums, there, keep or {}, kept),)
    return Contents(
        path=path,
        manifest=manifest,
        manifest_bytes=content,
        digest=hashlib.sha256(content).hexdigest(),
        sealed=sealed,
        files=len(checksums),
        size_bytes=sum(there[name].st_size for name in checksums if name in there),
        differences=differences,
        kept=kept,
    )


def _differences(
    path: Path,
    checksums: Mapping[str, str],
    there: Mapping[str, os.stat_result],
    keep: Mapping[str, Limit],
    kept: dict[str, bytes],
) -> Iterator[Difference]:
    """Compare all files; the bytes of those to keep go to `kept`."""
    for name, expected in checksums.items():
        if name not in there:
            yield Difference(name, "missing", expected)
        elif not stat.S_ISREG(there[name].st_mode):
            yield Difference(name, "not a plain file", expected)
        else:
            content = read_plain(path / name, keep[name]) if name in keep else None
            found = (
                sha256_plain(path / name)
                if content is None
                else hashlib.sha256(content).hexdigest()
            )
            if found != expected:
                problem = f"changed: SHA-256 is {found}, the manifest says {expected}"
                yield Difference(name, problem, expected, found)
            elif content is not None:
                kept[name] = content
    # A driver that was killed at the very end leaves its lock.
    known = {*checksums, MANIFEST, SIGNATURE, LOCK_FILE}
    for name in sorted(there.keys() - known):
        yield Difference(name, "not in the manifest: it was added later")


def _files(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """List everything in a run that is no folder, symbolic links unfollowed."""

    def give_up(error: OSError) -> None:
        raise SeatrialError(f"{error.filename}: cannot be read: {error.strerror}")

    for folder, folders, files in os.walk(path, onerror=give_up):
        inside = Path(folder)
        links = [name for name in folders if (inside / name).is_symlink()]
        for name in (*files, *links):
            file = inside / name
            yield str(file.relative_to(path)), file.lstat()
