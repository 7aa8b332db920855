"""Opening a tar archive from elsewhere: plain files, and nothing outside a folder."""

import shutil
import tarfile
from pathlib import Path, PurePosixPath


def extract_plain(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files of an archive, which may be a stream, below a folder.

    `tarfile` has filters of its own, but not in Debian 12's Python (3.11.2). Raises
    tarfile.TarError at what is neither file nor folder, or is not below the folder.
    """
    for info in archive:
        path = PurePosixPath(info.name)
        if path.is_absolute() or ".." in path.parts:
            raise tarfile.TarError(f"{info.name!r} is outside the folder")
        target = folder.joinpath(*path.parts)
        content = archive.extractfile(info) if info.isfile() else None
        if info.isdir():
            target.mkdir(parents=True, exist_ok=True)
        elif content is None:
            raise tarfile.TarError(f"{info.name!r} is no plain file")
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            with content, target.open("wb") as file:
                shutil.copyfileobj(content, file)
