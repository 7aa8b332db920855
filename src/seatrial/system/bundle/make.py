"""Make a bundle: a checkout, and all that its playbooks take from the internet."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.system.bundle.readme import readme
from seatrial.system.login_node import login_variables
from seatrial.system.playbooks import playbook

CHECKOUT = "seatrial"
SUMS = "SHA256SUMS"
_OF_SYSTEMS = ("inventories", "reference-data", "spack-env/systems")
"""Folders of the checkout with a folder for each system; people change them."""

_SHARED_SYSTEMS = {"lab", "sample"}
_LEFTOVERS = ("build/spack/*.tar", "build/spack/connected", "build/log")
"""Files that playbooks/bundle.yml writes, and site.yml writes again."""

_VARIABLES = """\
# Written by `seatrial bundle`: the playbooks of this checkout fetch nothing.
suite_bundle: "{{ playbook_dir }}/../.."
suite_commit: COMMIT
suite_archives_folder: "{{ playbook_dir }}/../build/archives"
mpi_archives_folder: "{{ playbook_dir }}/../build/archives"
"""


def make_bundle(
    home: Path, system: str, folder: Path, progress: Callable[[str], None]
) -> None:
    """Write the bundle of a system to a new folder.

    `home` is a checkout with the inventory of the system. A bundle that was interrupted
    is in `FOLDER.part`; it is continued. SeatrialError if the folder exists, if home is
    no git checkout, or if something cannot be fetched.
    """
    _check(home, system, folder)
    part = folder.with_name(f"{folder.name}.part")
    checkout = part / CHECKOUT
    progress("copying the checkout")
    _copy_checkout(home, system, checkout)
    progress("fetching wheels, archives and sources")
    log = home / "build" / "log" / f"bundle-{system}.log"
    of_git = f"spack_checkout={home.resolve()}"  # the copy has no git
    playbook(checkout, system, "bundle", log, "-e", of_git)
    progress("computing checksums")
    for pattern in _LEFTOVERS:
        for path in checkout.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    archives = checkout / "build" / "archives"
    if archives.is_dir():  # those of the user are accepted by their checksum
        _write_sums(archives)
    variables = checkout / "playbooks" / "group_vars" / "all.yml"
    variables.parent.mkdir(exist_ok=True)
    commit = json.dumps(_commit(home))
    variables.write_text(_VARIABLES.replace("COMMIT", commit), encoding="utf-8")
    script = files("seatrial.system.bundle").joinpath("install.sh")
    (part / "install.sh").write_text(script.read_text(), encoding="utf-8")
    (part / "README.md").write_text(readme(part, system), encoding="utf-8")
    _write_sums(part)
    part.rename(folder)


def _check(home: Path, system: str, folder: Path) -> None:
    """Raise SeatrialError for a bad folder, checkout or inventory."""
    if folder.exists():
        raise SeatrialError(
            f"{folder} exists; expected a new folder; remove it, or name another one "
            "by --out"
        )
    above = folder.absolute().parent
    if not os.access(above, os.W_OK):
        raise SeatrialError(
            f"{above}: expected a folder that you can write to; name another by --out"
        )
    if not (home / "playbooks" / "bundle.yml").is_file() or not _git(
        home, "rev-parse", "HEAD"
    ):
        raise SeatrialError(
            f"{home}: expected a git checkout of the suite; clone it and run this there"
        )
    inventory = home / "inventories" / system
    name = login_variables(inventory, home, {"name": "{{ seatrial_system }}"})["name"]
    if name != system:
        raise SeatrialError(
            f"{inventory}: seatrial_system: expected {system!r}, got {name!r}"
        )


def _git(home: Path, *arguments: str) -> bytes | None:
    """Return the output of git, or None outside a repository."""
    command = ["git", "-C", str(home), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def _commit(home: Path) -> dict[str, object]:
    """Return the commit of the checkout, as the role suite records it."""
    commit = _git(home, "rev-parse", "--short=12", "HEAD")
    changes = _git(home, "status", "--porcelain")
    return {
        "git_commit": commit.decode().strip() if commit else None,
        "dirty": None if changes is None else bool(changes),
    }


def _copy_checkout(home: Path, system: str, checkout: Path) -> None:
    """Copy all files that git tracks or would add, without those of other systems."""
    listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = {
        name
        for name in (_git(home, *listing) or b"").decode().split("\0")
        if (home / name).is_file()
        and not _is_foreign(home, name, system)
        and checkout.resolve().parent not in (home / name).resolve().parents
    }
    if checkout.exists():  # of an interrupted bundle: only what was fetched stays
        for path in checkout.iterdir():
            if path.name != "build":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in sorted(names):
        target = checkout / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(home / name, target, follow_symlinks=False)


def _is_foreign(home: Path, name: str, system: str) -> bool:
    """Return True for a file of another system than this one and the shared ones."""
    match = re.match(rf"(?:{'|'.join(_OF_SYSTEMS)})/([^/]+)/", name)
    if match is None or match[1] in {system, *_SHARED_SYSTEMS}:
        return False
    return (home / "inventories" / match[1]).is_dir()


def _write_sums(folder: Path) -> None:
    """Write SHA256SUMS of all files, without those that people change at the site."""
    lines = []
    for file in sorted(_files(folder)):
        name = file.relative_to(folder).as_posix()
        if name != SUMS and not name.startswith(
            tuple(f"{CHECKOUT}/{part}/" for part in _OF_SYSTEMS)
        ):
            with file.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            lines.append(f"{digest}  {name}\n")
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, without caches of Python."""
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
