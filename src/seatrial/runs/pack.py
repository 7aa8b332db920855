"""A closed run as one file, to be sent: a tar archive, which opens into the run again.

The seal goes with it, and what vouches for the run is the seal, not the archive.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from seatrial.errors import SeatrialError
from seatrial.limits import PACK_MEMORY
from seatrial.names import is_name
from seatrial.plain_files import open_plain
from seatrial.runs.archive import Readable, extract_plain
from seatrial.runs.closed_run import MANIFEST
from seatrial.runs.open_run import disk_errors
from seatrial.runs.run_contents import Contents, read_contents
from seatrial.runs.seal import require_whole
from seatrial.runs.ssh_signature import SIGNATURE

SUFFIX = ".seatrial.tar.xz"
"""How the names of such files end; one that is called otherwise opens as well."""


def pack(path: Path, file: Path) -> None:
    """Write a whole run to a new file; the same run gives the same bytes.

    Raises SeatrialError if the run is open or changed, or if the file exists or cannot
    be written.
    """
    contents = read_contents(path)
    require_whole(contents, "packed")
    if contents.sealed is not None:
        contents.sealed.check()
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
    """Write the files of the manifest, and only those, as they were verified."""
    path = contents.path
    read = {MANIFEST: contents.manifest_bytes}
    if contents.sealed is not None:
        read[SIGNATURE] = contents.sealed.signature
    names = {*read, *contents.manifest["checksums"]}
    with tarfile.open(part, "w:xz", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(names, key=lambda name: Path(name).parts):
            info = tarfile.TarInfo(f"{path.name}/{name}")
            with ExitStack() as stack:
                if name in read:
                    stream: BinaryIO = io.BytesIO(read[name])
                else:
                    stream = stack.enter_context(open_plain(path / name))
                info.size = stream.seek(0, io.SEEK_END)
                stream.seek(0)
                archive.addfile(info, stream)


def unpack(file: Path, folder: Path) -> Path:
    """Open a packed run in a folder; give the folder of the run there.

    Raises SeatrialError if the file is no run, is damaged, exceeds a limit, or has
    something in it that is neither a plain file nor below the folder of the run.
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
    runs = [each.parent for each in folder.glob(f"*/{MANIFEST}")]
    if len(runs) != 1 or not is_name(runs[0].name):
        raise SeatrialError(
            f"{file}: {len(runs)} runs in it; expected one, written by `seatrial pack`"
        )
    return runs[0]


def _decompressed(packed: BinaryIO, stack: ExitStack) -> tuple[Readable, int]:
    """Find out how a file is compressed: a stream of what is in it, and its size.

    The size is 0 if it is not compressed.
    """
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
    """A stream out of an xz file, in bounded memory: `lzma.open` has no bound."""

    def __init__(self, packed: BinaryIO) -> None:
        self.packed = packed
        self.xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=PACK_MEMORY.most)

    def read(self, size: int) -> bytes:
        """Read some bytes; EOFError if the file ends too early."""
        while not self.xz.eof:
            more = self.packed.read(1 << 16) if self.xz.needs_input else b""
            if self.xz.needs_input and not more:
                raise EOFError("it ends too early")
            content = self.xz.decompress(more, max_length=size)
            if content:
                return content
        return b""
