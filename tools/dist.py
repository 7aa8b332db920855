"""Build the tarball of benchmarks/ for Spack: `make dist`.

    python tools/dist.py [CHECKOUT]

writes build/dist/seatrial-benchmarks-VERSION.tar.gz with its .sha256 beside it, and the
checksum into Spack's recipe: commit that together with the change of benchmarks/.

It packs LICENSE and the files below benchmarks/ in the work tree, committed or not:
all that git tracks or would add, without ignored files. So a clean checkout yields the
release, a dirty one the next commit. The same files yield the same bytes: names are
sorted, owner and time are fixed, modes are 644 or 755. The gzip stream holds stored
blocks, because compressed blocks differ between versions of zlib.
"""

import hashlib
import io
import os
import re
import struct
import subprocess
import sys
import tarfile
import tomllib
import zlib
from pathlib import Path

NAME = "seatrial-benchmarks"
RECIPE = "spack-env/repo/spack_repo/seatrial/packages/seatrial_benchmarks/package.py"

_MTIME = 315532800  # 1980-01-01: the first day that every archive format can hold
_BLOCK = 65535  # bytes: the largest stored block of deflate


def version_of(home: Path) -> str:
    """Read the project's version from pyproject.toml, its only place."""
    project = tomllib.loads((home / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def files_of(home: Path) -> list[str]:
    """List the files to pack, relative to `home`, in byte order."""
    command = ["git", "-C", str(home), "ls-files", "-z", "--cached", "--others"]
    command += ["--exclude-standard", "--", "benchmarks", "LICENSE"]
    listed = subprocess.run(command, check=True, capture_output=True).stdout
    names = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    return sorted(name for name in names if (home / name).is_file())


def tar_of(home: Path, folder: str) -> bytes:
    """Pack the files below `folder`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in files_of(home):
            content = (home / name).read_bytes()
            entry = tarfile.TarInfo(f"{folder}/{name.removeprefix('benchmarks/')}")
            entry.size = len(content)
            entry.mtime = _MTIME
            entry.mode = 0o755 if os.access(home / name, os.X_OK) else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def gzip_of(content: bytes) -> bytes:
    """Wrap in a gzip stream of stored blocks (RFC 1951, 3.2.4; RFC 1952)."""
    stream = [b"\x1f\x8b\x08" + bytes(6) + b"\xff"]  # deflate; no flags, time or system
    for start in range(0, len(content), _BLOCK):
        block = content[start : start + _BLOCK]
        last = start + _BLOCK >= len(content)
        stream.append(struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF))
        stream.append(block)
    stream.append(struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF))
    return b"".join(stream)


def put_into_recipe(recipe: Path, version: str, sha256: str) -> bool:
    """Write version and checksum into the recipe; return True if that changed it."""
    old = recipe.read_text(encoding="utf-8")
    new, count = re.subn(
        r'^    version\(".*", sha256="[0-9a-f]{64}"\)$',
        f'    version("{version}", sha256="{sha256}")',
        old,
        flags=re.MULTILINE,
    )
    if count != 1:
        raise SystemExit(f"{recipe}: expected one line version(..., sha256=...)")
    recipe.write_text(new, encoding="utf-8")
    return new != old


def main(home: Path) -> None:
    """Write tarball, checksum and recipe; print their names."""
    version = version_of(home)
    tarball = home / "build" / "dist" / f"{NAME}-{version}.tar.gz"
    content = gzip_of(tar_of(home, f"{NAME}-{version}"))
    sha256 = hashlib.sha256(content).hexdigest()
    tarball.parent.mkdir(parents=True, exist_ok=True)
    tarball.write_bytes(content)
    checksum = tarball.with_name(f"{tarball.name}.sha256")
    checksum.write_text(f"{sha256}  {tarball.name}\n", encoding="utf-8")
    print(f"{sha256}  {tarball.relative_to(home)}")
    if put_into_recipe(home / RECIPE, version, sha256):
        print(f"new checksum in {RECIPE}: commit it with the change of benchmarks/")


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else __file__ + "/../..").resolve())
