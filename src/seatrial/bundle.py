"""A closed run as one file, to be sent: a tar archive, which opens into the run again.

The seal goes with it, and what vouches for the run is the seal, not the archive.
"""

import lzma
import tarfile
import zlib
from pathlib import Path

from seatrial.archive import extract_plain
from seatrial.errors import Exit, SeatrialError
from seatrial.results import MANIFEST
from seatrial.runfolder import disk_errors
from seatrial.seal import verify

SUFFIX = ".seatrial.tar.xz"
"""How the names of such files end; one that is called otherwise opens as well."""


def pack(path: Path, file: Path) -> None:
    """Write a whole run to a new file; the same run gives the same bytes.

    Raises SeatrialError if the run is open or changed, or if the file exists or cannot
    be written.
    """
    found = verify(path)
    if found.differences:
        first = found.differences[0]
        raise SeatrialError(
            f"{path / first.file}: {first.problem}; only a whole run is packed",
            Exit.FAILED,
        )
    if file.exists():
        raise SeatrialError(f"{file}: exists already; expected the name of a new file")
    part = file.with_name(f".{file.name}.part")
    try:
        with disk_errors(file.parent):
            with tarfile.open(part, "w:xz", format=tarfile.PAX_FORMAT) as archive:
                for each in sorted(path.rglob("*")):
                    name = f"{path.name}/{each.relative_to(path)}"
                    if each.is_file():
                        archive.add(each, name, filter=_plain)
            part.rename(file)
    finally:
        part.unlink(missing_ok=True)


def unpack(file: Path, folder: Path) -> Path:
    """Open a packed run in a folder; give the folder of the run there.

    Raises SeatrialError if the file is no run, is damaged, or has something in it that
    is neither a plain file nor below the folder of the run.
    """
    try:
        with disk_errors(folder), tarfile.open(file) as archive:
            extract_plain(archive, folder)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError) as error:
        raise SeatrialError(
            f"{file}: not a packed run, or damaged on the way: {error}; expected a "
            "file written by `seatrial pack`"
        ) from error
    runs = [each.parent for each in folder.glob(f"*/{MANIFEST}")]
    if len(runs) != 1:
        raise SeatrialError(
            f"{file}: {len(runs)} runs in it; expected one, written by `seatrial pack`"
        )
    return runs[0]


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Forget owner, mode and time: what counts is in the manifest."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    info.mtime = 0
    return info
