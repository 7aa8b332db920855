"""Write a tar file of the needed parts of a wheel; runs on the control machine.

Usage: pack_wheel.py REQUIREMENT ARCHIVE PATTERN PLATFORMS

wheels.sh of the role suite downloads the wheel that the requirements file REQUIREMENT
pins, for the system's PLATFORMS, and checks its hash. Files that match the regular
expression PATTERN go into ARCHIVE, named by the pattern's groups below a folder called
like the archive. Files of equal content become links: a wheel cannot hold links.
`.complete` is the last entry.
"""

import io
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEELS = Path(__file__).parents[2] / "suite" / "files" / "wheels.sh"


def main(requirement: str, archive: Path, pattern: str, platforms: str) -> None:
    """Download, pick, and write the archive under its name only when it is whole."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    unfinished = archive.with_suffix(".part")
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        wheels = Path(folder, "wheels.tar")
        command = ["bash", str(WHEELS), str(wheels), sys.executable, version, platforms]
        done = subprocess.run([*command, requirement], check=False)
        if done.returncode:
            sys.exit(done.returncode)
        with tarfile.open(wheels) as packed, tarfile.open(unfinished, "w") as target:
            (name,) = (name for name in packed.getnames() if name.endswith(".whl"))
            wheel = packed.extractfile(name)
            assert wheel is not None, "it is a file"
            with zipfile.ZipFile(wheel) as source:
                pick(source, target, archive.stem, re.compile(pattern))
    unfinished.rename(archive)


def pick(
    source: zipfile.ZipFile, target: tarfile.TarFile, top: str, pattern: re.Pattern[str]
) -> None:
    """Copy the matching files, equal ones once."""
    seen: dict[tuple[int, int], str] = {}
    for entry in source.infolist():
        match = pattern.fullmatch(entry.filename)
        if match is None or entry.is_dir():
            continue
        info = tarfile.TarInfo(f"{top}/{''.join(filter(None, match.groups()))}")
        executable = entry.external_attr >> 16 & 0o100
        info.mode = 0o755 if executable else 0o644
        first = seen.setdefault((entry.CRC, entry.file_size), info.name)
        if first != info.name:
            info.type, info.linkname = tarfile.LNKTYPE, first
            target.addfile(info)
        else:
            info.size = entry.file_size
            with source.open(entry) as content:
                target.addfile(info, content)
    target.addfile(tarfile.TarInfo(f"{top}/.complete"), io.BytesIO())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4])
