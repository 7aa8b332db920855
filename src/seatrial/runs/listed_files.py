"""The files of a folder beside a list of their checksums: what is missing or changed.

Runs and protocols are verified by it. Each file is read once, and no link is followed.
"""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.limits import Limit
from seatrial.plain_files import read_plain, sha256_plain

NOT_LISTED = "not in {}: it was added later"
"""The problem of a file that the list does not name."""


@dataclass(frozen=True)
class Difference:
    """A file that is not as listed; checksums are SHA-256, '' without a file."""

    file: str
    problem: str
    expected: str = ""
    found: str = ""


@dataclass(frozen=True)
class ListedFiles:
    """A folder as it was read: what differs from the list, and the size of its files.

    `kept` has the bytes of requested files that are as listed.
    """

    differences: tuple[Difference, ...]
    size_bytes: int
    kept: Mapping[str, bytes]


def compare_files(
    folder: Path,
    checksums: Mapping[str, str],
    list_name: str,
    keep: Mapping[str, Limit] | None = None,
    beside: Collection[str] = (),
    largest: Limit | None = None,
) -> ListedFiles:
    """Compare all files below a folder with their SHA-256 in a list.

    `keep`: files to return the bytes of, each with its limit; `beside`: files that the
    list does not name; `largest`: the limit of every file. Raises SeatrialError if a
    folder or file is unreadable, or too large.
    """
    there = dict(files_below(folder))
    if largest is not None:
        for name, status in there.items():
            largest.check(status.st_size, folder / name)
    kept: dict[str, bytes] = {}
    differences = [*_differences(folder, checksums, there, list_name, keep or {}, kept)]
    differences += [
        Difference(name, NOT_LISTED.format(list_name))
        for name in sorted(there.keys() - {*checksums, *beside})
    ]
    size = sum(there[name].st_size for name in checksums if name in there)
    return ListedFiles(tuple(differences), size, kept)


def _differences(
    folder: Path,
    checksums: Mapping[str, str],
    there: Mapping[str, os.stat_result],
    list_name: str,
    keep: Mapping[str, Limit],
    kept: dict[str, bytes],
) -> Iterator[Difference]:
    """Compare the listed files; the bytes of those to keep go to `kept`."""
    for name, expected in checksums.items():
        if name not in there:
            yield Difference(name, "missing", expected)
        elif not stat.S_ISREG(there[name].st_mode):
            yield Difference(name, "not a plain file", expected)
        else:
            if name in keep:
                content = read_plain(folder / name, keep[name])
                digest = hashlib.sha256(content).hexdigest()
                if digest == expected:
                    kept[name] = content
            else:
                digest = sha256_plain(folder / name)
            if digest != expected:
                problem = f"changed: SHA-256 is {digest}, {list_name} says {expected}"
                yield Difference(name, problem, expected, digest)


def files_below(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything below a folder except folders; links are not followed."""

    def refuse(error: OSError) -> None:
        raise SeatrialError(f"{error.filename}: cannot be read: {error.strerror}")

    for parent, folders, files in os.walk(folder, onerror=refuse):
        inside = Path(parent)
        links = [name for name in folders if (inside / name).is_symlink()]
        for name in (*files, *links):
            file = inside / name
            yield str(file.relative_to(folder)), file.lstat()
