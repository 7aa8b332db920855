"""Plain files of folders that others may write: read once, and no link followed."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.limits import Limit

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def open_plain(file: Path) -> Iterator[BufferedReader]:
    """Open a plain file for reading.

    Raises SeatrialError if it is a link, a pipe, a device or a folder, or if it cannot
    be read.
    """
    try:
        descriptor = os.open(file, _FLAGS)
    except OSError as error:
        if file.is_symlink():
            raise _not_plain(file) from error
        raise _unreadable(file, error) from error
    except ValueError as error:  # a NUL in its name
        raise SeatrialError(f"{str(file)!r}: no name of a file: {error}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_plain(file)
    with os.fdopen(descriptor, "rb") as stream:
        try:
            yield stream
        except OSError as error:
            raise _unreadable(file, error) from error


def read_plain(file: Path, limit: Limit) -> bytes:
    """Read a whole plain file; SeatrialError as `open_plain`, or if it is too large."""
    with open_plain(file) as stream:
        content = stream.read(limit.most + 1)
    limit.check(len(content), file)
    return content


def sha256_plain(file: Path) -> str:
    """Return the SHA-256 of a plain file; SeatrialError as `open_plain`."""
    with open_plain(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_exclusively(file: Path, chunks: Iterable[bytes]) -> None:
    """Write a new file where none is, not even a link; OSError if that fails."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o644), "wb") as stream:
        stream.writelines(chunks)


def _not_plain(file: Path) -> SeatrialError:
    return SeatrialError(f"{file}: not a plain file; expected no link, pipe or device")


def _unreadable(file: Path, error: OSError) -> SeatrialError:
    return SeatrialError(f"{file}: cannot be read: {error.strerror}")
