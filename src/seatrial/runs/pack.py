"""A closed run as one file: a tar archive with its seal, which alone proves origin."""

import bz2
import gzip
import io
import lzma
import shutil
import tarfile
import zlib
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol, cast

from seatrial import limits
from seatrial.errors import SeatrialError
from seatrial.model.manifest import MANIFEST
from seatrial.names import is_name
from seatrial.plain_files import open_plain
from seatrial.runs.open_run import disk_errors
from seatrial.runs.run_contents import Contents, read_contents
from seatrial.runs.ssh_signature import REASONS, REASONS_SIGNATURE, SIGNATURE

SUFFIX = ".seatrial.tar.xz"
"""Usual end of the name of a pack; others open as well."""


class Readable(Protocol):
    """Input stream of an archive."""

    def read(self, size: int, /) -> bytes:
        """Read some bytes; b'' at the end."""


def pack(path: Path, file: Path) -> None:
    """Write a whole run to a new file; the same run gives the same bytes.

    Raises SeatrialError if the run is open or changed, or if the file exists or cannot
    be written.
    """
    contents = read_contents(path)
    contents.require_whole("packed")
    if file.exists():
        raise SeatrialError(f"{file}: exists already; expected the name of a new file")
    part = file.with_name(f".{file.name}.part")
    try:
        with disk_errors(file.parent):
            _write(contents, part)
            part.rename(file)
    finally:
        part.unlink(missing_ok=True)


def _write(contents: Contents, part: Path) -> None:
    """Write the files of the manifest, and those of its signers, as they were read."""
    path = contents.path
    read = {MANIFEST: contents.manifest_bytes}
    if contents.sealed is not None:
        read[SIGNATURE] = contents.sealed.signature
    if contents.reasons is not None:
        read[REASONS] = contents.reasons.content
        if contents.reasons.signature:
            read[REASONS_SIGNATURE] = contents.reasons.signature
    names = {*read, *contents.manifest["checksums"]}
    with tarfile.open(part, "w:xz", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(names, key=lambda name: Path(name).parts):
            info = tarfile.TarInfo(f"{path.name}/{name}")
            source: AbstractContextManager[BinaryIO] = (
                io.BytesIO(read[name]) if name in read else open_plain(path / name)
            )
            with source as stream:
                info.size = stream.seek(0, io.SEEK_END)
                stream.seek(0)
                archive.addfile(info, stream)


def unpack(file: Path, folder: Path) -> Path:
    """Unpack a run into a folder; return the folder of the run there.

    Raises SeatrialError if the file is no run, is damaged, exceeds a limit, or contains
    anything that is no plain file below the folder of the run.
    """
    try:
        with disk_errors(folder), ExitStack() as stack:
            packed = stack.enter_context(file.open("rb"))
            stream, size = _decompressed(packed, stack)
            extract_plain(stream, folder, str(file), size)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError) as error:
        raise SeatrialError(
            f"{file}: not a packed run, or damaged on the way: {error}; expected a "
            "file written by `seatrial pack`"
        ) from error
    runs = [manifest.parent for manifest in folder.glob(f"*/{MANIFEST}")]
    if len(runs) != 1 or not is_name(runs[0].name):
        raise SeatrialError(
            f"{file}: {len(runs)} runs in it; expected one, written by `seatrial pack`"
        )
    return runs[0]


def _decompressed(packed: BinaryIO, stack: ExitStack) -> tuple[Readable, int]:
    """Return the decompressed stream of a file; its size, 0 if not compressed."""
    magic = packed.read(6)
    size = packed.seek(0, io.SEEK_END)
    packed.seek(0)
    if magic == b"\xfd7zXZ\0":
        return _Xz(packed), size
    if magic.startswith(b"\x1f\x8b"):
        return stack.enter_context(gzip.open(packed)), size
    if magic.startswith(b"BZh"):
        return stack.enter_context(bz2.open(packed)), size
    return packed, 0


class _Xz:
    """A stream from an xz file, in bounded memory: `lzma.open` has no bound."""

    def __init__(self, packed: BinaryIO) -> None:
        self.packed = packed
        self.xz = lzma.LZMADecompressor(
            lzma.FORMAT_XZ, memlimit=limits.PACK_MEMORY.most
        )

    def read(self, size: int) -> bytes:
        """Read some bytes; EOFError if the file ends too early."""
        while not self.xz.eof:
            more = self.packed.read(1 << 16) if self.xz.needs_input else b""
            if self.xz.needs_input and not more:
                raise EOFError("unexpected end of file")
            content = self.xz.decompress(more, max_length=size)
            if content:
                return content
        return b""


def extract_plain(
    stream: Readable, folder: Path, where: str, packed_size: int = 0
) -> None:
    """Write the files of a tar archive below a folder; errors name `where` it is.

    `packed_size` is the size of the compressed archive in bytes; 0: not compressed.
    `tarfile` has filters of its own, but not in Debian 12's Python (3.11.2). Raises
    tarfile.TarError at an entry that is neither file nor folder, is there twice, or is
    not below the folder, and SeatrialError if a limit is exceeded.
    """
    meter = _Meter(stream, where, packed_size)
    number = 0
    # tarfile needs nothing of a file but `read`
    with tarfile.open(fileobj=cast(Any, meter), mode="r|") as archive:
        while (info := archive.next()) is not None:
            number += 1
            limits.PACK_FILES.check(number, where)
            _extract(archive, info, folder, meter)
            archive.members.clear()  # type: ignore[attr-defined]  # a million take GBs
            meter.allow()


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
    plain = info.isfile() and not info.issparse()
    content = archive.extractfile(info) if plain else None
    if content is None:
        raise tarfile.TarError(f"{info.name!r} is no plain file")
    target.parent.mkdir(parents=True, exist_ok=True)
    meter.allow(info.size)
    try:
        with content, target.open("xb") as file:
            shutil.copyfileobj(content, file)
    except FileExistsError as error:
        raise tarfile.TarError(f"{info.name!r} is in it twice") from error


class _Meter:
    """A stream bounded by the allowed size of the next header or file."""

    def __init__(self, stream: Readable, where: str, packed_size: int) -> None:
        self.stream, self.where = stream, where
        self.total = 0
        self.most, self.limit = limits.PACK_SIZE.most, limits.PACK_SIZE
        unpacked = max(limits.PACK_SMALL, limits.PACK_RATIO.most * packed_size)
        if packed_size and unpacked < self.most:
            self.most, self.limit = unpacked, limits.PACK_RATIO
        self.allow()

    def allow(self, size: int = 0) -> None:
        """Allow a header, and a file of `size` bytes."""
        self.left = size + limits.PACK_HEADER.most

    def read(self, size: int) -> bytes:
        """Read from the stream; SeatrialError beyond a limit."""
        content = self.stream.read(size)
        self.total += len(content)
        self.left -= len(content)
        if self.total > self.most:
            raise self.limit.exceeded(self.where)
        if self.left < 0:
            raise limits.PACK_HEADER.exceeded(self.where)
        return content
