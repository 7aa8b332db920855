"""Space of a file system that a run may take, and sizes that keep within it."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError

BLOCK_BYTES = 4096
"""Space that a small file takes at least, on most file systems."""
FOLDERS = 4
"""Files and folders of a task besides those that are counted."""


@dataclass(frozen=True)
class Room:
    """Space and files that are free, and the share of them that the suite may take.

    `total_files` is 0 on a file system that does not count them.
    """

    name: str
    path: str
    share: float
    total_bytes: int
    free_bytes: int
    total_files: int
    free_files: int

    @property
    def allowed_bytes(self) -> int:
        """Return the space that the suite may take."""
        return int(self.share * self.free_bytes)

    @property
    def allowed_files(self) -> int | None:
        """Return the number of files that the suite may create; None: any."""
        return int(self.share * self.free_files) if self.total_files else None

    def row(self, **use: int) -> dict[str, Any]:
        """Return the row of the step `space`, with what a run takes."""
        allowed = {
            "allowed_bytes": self.allowed_bytes,
            "allowed_files": self.allowed_files,
        }
        return {"type": "space", **asdict(self), **allowed, **use}

    def limit(self) -> str:
        """Describe the limit, for an error message."""
        files = self.allowed_files
        counted = "" if files is None else f" and {files} files"
        return (
            f"{self.name} ({self.path}): its share {self.share:g} of what is free "
            f"allows {self.allowed_bytes / 2**20:.1f} MiB{counted}"
        )


def room_of(name: str, path: Path, share: float) -> Room:
    """Ask a file system for its space; SeatrialError if its folder is not usable."""
    try:
        found = os.statvfs(path)
    except OSError as error:
        raise SeatrialError(
            f"{name}: path {path}: {error.strerror}; make the folder on the file "
            "system, or change its path in suite_file_systems"
        ) from None
    return Room(
        name=name,
        path=str(path),
        share=share,
        total_bytes=found.f_blocks * found.f_frsize,
        free_bytes=found.f_bavail * found.f_frsize,
        total_files=found.f_files,
        free_files=found.f_favail,
    )


def block_bytes(room: Room, ranks: int, wanted_bytes: int, transfer: int) -> int:
    """Return the bytes of each rank: a multiple of the transfer size.

    It is what is wanted, or what the share allows. Raises SeatrialError if that is less
    than a transfer.
    """
    most = min(wanted_bytes, room.allowed_bytes)
    block = most // ranks // transfer * transfer
    if block == 0:
        least = ranks * transfer / 2**20
        raise SeatrialError(
            f"{room.limit()}, {ranks} ranks that transfer {transfer} B need "
            f"{least:.1f} MiB; raise the share, free some space, or use fewer ranks"
        )
    return block


def files_of_rank(room: Room, ranks: int, wanted: int, file_bytes: int) -> int:
    """Return the files of each rank; it creates as many folders.

    It is what is wanted, or what the share allows. Raises SeatrialError if that is
    less than one.
    """
    size = max(file_bytes, BLOCK_BYTES) + BLOCK_BYTES
    most = room.allowed_bytes // ranks // size
    if room.allowed_files is not None:
        most = min(most, (room.allowed_files // ranks - FOLDERS) // 2)
    if most < 1:
        raise SeatrialError(
            f"{room.limit()}; {ranks} ranks need more for a file each; raise the "
            "share, free some space, or use fewer ranks"
        )
    return min(wanted, most)
