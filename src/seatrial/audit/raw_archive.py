"""Raw outputs of an audit as one archive: what `save` writes, as NAME.tar.gz."""

import gzip
import io
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from seatrial.audit.collect import Collected, of_folder, save
from seatrial.errors import SeatrialError


def packed(collected: Collected) -> bytes:
    """Return the archive; the same outputs give the same bytes."""
    with TemporaryDirectory(prefix="seatrial-audit-") as name:
        folder = Path(name)
        save(folder, collected)
        buffer = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w") as tar,
        ):
            for file in sorted(folder.iterdir()):
                member = tarfile.TarInfo(file.name)
                member.size = file.stat().st_size
                with file.open("rb") as content:
                    tar.addfile(member, content)
    return buffer.getvalue()


def unpacked(archive: Path) -> Collected:
    """Read an archive; SeatrialError if it is damaged or none of an audit."""
    with TemporaryDirectory(prefix="seatrial-audit-") as name:
        try:
            with tarfile.open(archive, "r:gz") as tar:
                for member in tar:
                    content = tar.extractfile(member) if member.isfile() else None
                    if content is not None:
                        Path(name, Path(member.name).name).write_bytes(content.read())
        except (tarfile.TarError, EOFError, OSError) as error:
            raise SeatrialError(f"{archive}: not readable: {error}") from error
        return of_folder(Path(name))
