"""Write files of a node's file system as root, and never outside of it.

Root of a node can put links anywhere in it. On this machine they would lead out: an
`etc` that is a link to `/etc` is that of this machine. openat2(2) resolves every path
as if the node's file system were all there is.
"""

import ctypes
import os
from contextlib import suppress
from pathlib import Path, PurePosixPath

_OPENAT2 = 437
"""The number of the system call, the same on every architecture of Linux >= 5.6."""

_RESOLVE_IN_ROOT = 0x10
_RESOLVE_NO_MAGICLINKS = 0x02


class _How(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def write_beneath(root: Path, name: str, text: str, owner: int) -> None:
    """Write a file below `root`, with the folders above it; all get that owner.

    A link in place of the file is replaced. Raises OSError if a folder above it is
    something else, or cannot be created.
    """
    *folders, last = PurePosixPath(name).parts
    folder = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        for depth in range(1, len(folders) + 1):
            _make(folder, "/".join(folders[:depth]))
        inside = _open(folder, "/".join(folders) or ".")
    finally:
        os.close(folder)
    try:
        new = f".{last}.seatrial"
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=inside)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        file = os.open(new, flags, 0o644, dir_fd=inside)
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            stream.write(text)
            os.fchown(file, owner, owner)
        os.rename(new, last, src_dir_fd=inside, dst_dir_fd=inside)
        os.fchown(inside, owner, owner)
    finally:
        os.close(inside)


def _make(root: int, name: str) -> None:
    """Create a folder below a root unless it is there."""
    above, _, last = name.rpartition("/")
    folder = _open(root, above or ".")
    try:
        with suppress(FileExistsError):
            os.mkdir(last, 0o755, dir_fd=folder)
    finally:
        os.close(folder)


def _open(root: int, name: str) -> int:
    """Open a folder; every link in its path is resolved below the root."""
    resolve = _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS
    how = _How(os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0, resolve)
    libc = ctypes.CDLL(None, use_errno=True)
    size = ctypes.sizeof(how)
    folder = libc.syscall(_OPENAT2, root, name.encode(), ctypes.byref(how), size)
    if folder < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return int(folder)
