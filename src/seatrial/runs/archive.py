"""Opening a tar archive from elsewhere: plain files, and nothing outside a folder.

The archive is a stream that is metered, because `tarfile` reads whole headers into
memory, whatever their size, and writes sparse files at their full length.
"""

import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from seatrial.limits import (
    PACK_FILES,
    PACK_HEADER,
    PACK_RATIO,
    PACK_SIZE,
    PACK_SMALL,
)


class Readable(Protocol):
    """Input stream of an archive."""

    def read(self, size: int, /) -> bytes:
        """Read some bytes; b'' at the end."""


def extract_plain(
    stream: Readable, folder: Path, where: str, packed_size: int = 0
) -> None:
    """Write the files of a tar archive below a folder; errors say `where` it is.

    `packed_size` is the size of the compressed archive in bytes; 0: not compressed.
    `tarfile` has filters of its own, but not in Debian 12's Python (3.11.2). Raises
    tarfile.TarError at what is neither file nor folder, is there twice, or is not below
    the folder, and SeatrialError if a limit is exceeded.
    """
    meter = _Meter(stream, where, packed_size)
    number = 0
    with tarfile.open(fileobj=_typed(meter), mode="r|") as archive:
        while (info := archive.next()) is not None:
            number += 1
            PACK_FILES.check(number, where)
            _extract(archive, info, folder, meter)
            archive.members.clear()  # type: ignore[attr-defined]  # a million take GBs
            meter.next_header()


def _extract(
    archive: tarfile.TarFile, info: tarfile.TarInfo, folder: Path, meter: "_Meter"
) -> None:
    path = PurePosixPath(info.name)
    if path.is_absolute() or ".." in path.parts:
        raise tarfile.TarError(f"{info.name!r} is outside the folder")
    target = folder.joinpath(*path.parts)
    if info.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    content = None
    if info.isfile() and not info.issparse():
        content = archive.extractfile(info)
    if content is None:
        raise tarfile.TarError(f"{info.name!r} is no plain file")
    target.parent.mkdir(parents=True, exist_ok=True)
    meter.next_file(info.size)
    try:
        with content, target.open("xb") as file:
            shutil.copyfileobj(content, file)
    except FileExistsError as error:
        raise tarfile.TarError(f"{info.name!r} is in it twice") from error


class _Meter:
    """A stream that gives no more than the next header or file may have."""

    def __init__(self, stream: Readable, where: str, packed_size: int) -> None:
        self.stream, self.where = stream, where
        self.total = 0
        self.most, self.limit = PACK_SIZE.most, PACK_SIZE
        unpacked = max(PACK_SMALL, PACK_RATIO.most * packed_size)
        if packed_size and unpacked < self.most:
            self.most, self.limit = unpacked, PACK_RATIO
        self.next_header()

    def next_header(self) -> None:
        """Allow one header."""
        self.left = PACK_HEADER.most

    def next_file(self, size: int) -> None:
        """Allow a file of so many bytes."""
        self.left = size + PACK_HEADER.most

    def read(self, size: int) -> bytes:
        """Read from the stream; SeatrialError if that is more than is allowed."""
        content = self.stream.read(size)
        self.total += len(content)
        self.left -= len(content)
        if self.total > self.most:
            raise self.limit.exceeded(self.where)
        if self.left < 0:
            raise PACK_HEADER.exceeded(self.where)
        return content


def _typed(meter: _Meter) -> Any:
    """Let `tarfile` read from a meter: it needs nothing of a file but `read`."""
    return meter
