"""Pack what the system gets from the checkout; runs on the control machine.

Usage: pack.py CHECKOUT BUILD_FOLDER FOLDER...

Builds the wheel of the package unless there is one of the same sources, and writes
the FOLDERs of the checkout and the wheel to BUILD_FOLDER/suite.tar. Prints JSON:
`wheel` (its name in the archive), `key` (of its sources), `version`, `git_commit` and
`dirty` (null without git), and `paths` (all that the archive holds).
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

SOURCES = ("pyproject.toml", "README.md", "src")
LEFT_OUT = {"__pycache__", "out"}


def wanted(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what is made by running; forget owners and this machine's umask."""
    name = Path(info.name).name
    if name in LEFT_OUT or name.endswith((".pyc", ".egg-info")) or name[0] == ".":
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
    info.mtime = int(info.mtime)
    return info


def pack(archive: Path, entries: dict[str, Path]) -> list[str]:
    """Write the archive, files and folders by their names in it; name all it holds."""
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as target:
        for name, source in entries.items():
            target.add(source, name, filter=wanted)
        return target.getnames()


def build_wheel(checkout: Path, build: Path) -> tuple[Path, str]:
    """Build the wheel from a copy: a build leaves files in its sources' folder."""
    with tempfile.TemporaryDirectory(dir=build) as work:
        copy = Path(work, "sources")
        copy.mkdir()
        digest = hashlib.sha256()
        for name in SOURCES:
            for file in sorted({checkout / name, *(checkout / name).rglob("*")}):
                path = file.relative_to(checkout)
                if file.is_file() and not path.match("*.egg-info/*"):
                    if "__pycache__" in path.parts:
                        continue
                    content = file.read_bytes()
                    digest.update(f"{path}\0{len(content)}\0".encode() + content)
                    (copy / path).parent.mkdir(parents=True, exist_ok=True)
                    (copy / path).write_bytes(content)
        key = digest.hexdigest()[:12]
        folder = build / f"seatrial-{key}"
        if not folder.is_dir():
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
            pip += ["--no-index", "--no-build-isolation", "--wheel-dir", f"{work}/out"]
            subprocess.run([*pip, str(copy)], check=True, stdout=sys.stderr)
            shutil.move(f"{work}/out", folder)
    (wheel,) = folder.glob("*.whl")
    return wheel, key


def git(checkout: Path, *arguments: str) -> str | None:
    """Output of git, or None outside a repository."""
    try:
        command = ["git", "-C", str(checkout), *arguments]
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None


def main(checkout: Path, build: Path, folders: list[str]) -> dict[str, Any]:
    """Pack and build, and say what there is."""
    build.mkdir(parents=True, exist_ok=True)
    wheel, key = build_wheel(checkout, build)
    commit = git(checkout, "rev-parse", "--short=12", "HEAD")
    changes = git(checkout, "status", "--porcelain")
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    entries = {name: checkout / name for name in folders}
    entries[f"dist/{wheel.name}"] = wheel
    return {
        "wheel": f"dist/{wheel.name}",
        "key": key,
        "version": project["version"],
        "git_commit": commit and commit.strip(),
        "dirty": None if changes is None else bool(changes),
        "paths": pack(build / "suite.tar", entries),
    }


if __name__ == "__main__":
    arguments = sys.argv[1:]
    result = main(Path(arguments[0]).resolve(), Path(arguments[1]), arguments[2:])
    json.dump(result, sys.stdout)
