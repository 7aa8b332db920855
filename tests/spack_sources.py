"""Sources for a mirror of Spack's: those that Debian ships unchanged, and our own.

Everything found is kept in build/spack-sources, in the layout of a mirror.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

HOME = Path(__file__).resolve().parents[1]
STORE = HOME / "build" / "spack-sources"


def load_dist() -> ModuleType:
    """Import tools/dist.py, which is no package."""
    spec = importlib.util.spec_from_file_location("dist", HOME / "tools/dist.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dist = load_dist()


@dataclass(frozen=True)
class Source:
    """A tarball by the checksum in its recipe, with `name` as its folder.

    `debian` is Debian's source package; without one it is what `git archive` makes of
    the tag `git[1]` of the repository `git[0]`, as its forge does.
    """

    name: str
    sha256: str
    debian: str | None = None
    git: tuple[str, str] = ("", "")

    @property
    def place(self) -> Path:
        """Return its path in a mirror."""
        folder = Path("_source-cache", "archive", self.sha256[:2])
        return folder / f"{self.sha256}.tar.gz"


HPCC = Source(
    "hpcc-1.5.0",
    "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8",
    "hpcc",
)
QPERF = Source(
    "qperf-0.4.11",
    "b0ef2ffe050607566d06102b4ef6268aad08fdc52898620d429096e7b0767e75",
    "qperf",
)
WRAPPER = Source(
    "compiler-wrapper-1.1.0",
    "a07b35081d14b0729090bc1e5790a5dda2d5b997e064c62da39a1224ee249b2a",
    git=("https://github.com/spack/compiler-wrapper.git", "v1.1.0"),
)
IMB = Source(
    "mpi-benchmarks-IMB-v2021.7",
    "acee02cc719a74e6853194576cb7e6bf1fdc74f8971578e1b2141306c3c19477",
    git=("https://github.com/intel/mpi-benchmarks.git", "IMB-v2021.7"),
)
SOURCES = (WRAPPER, HPCC, QPERF)


class MissingSourceError(Exception):
    """A source that is nowhere; the text says which, and how to get it."""


def fill(mirror: Path, spack_root: Path, sources: Iterable[Source] = SOURCES) -> None:
    """Put sources into `mirror`; raise MissingSourceError."""
    for source in sources:
        kept = STORE / source.place
        if not kept.is_file():
            keep(find(source, spack_root), source)
        target = mirror / source.place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept, target)


def fill_benchmarks(prefix: Path) -> Source:
    """Put the benchmarks as they are now into the mirror and the recipe of a site."""
    version = dist.version_of(HOME)
    content = dist.gzip_of(dist.tar_of(HOME, f"{dist.NAME}-{version}"))
    source = Source(dist.NAME, hashlib.sha256(content).hexdigest())
    dist.put_into_recipe(prefix / dist.RECIPE, version, source.sha256)
    place = prefix / "mirror" / source.place
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return source


def keep(content: bytes, source: Source) -> None:
    """Store what was found, if it is what the recipe wants."""
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise MissingSourceError(
            f"{source.name}: sha256 {found}, expected {source.sha256}"
        )
    kept = STORE / source.place
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(content)


def find(source: Source, spack_root: Path) -> bytes:
    """Look in mirrors of this machine, then ask Debian or git."""
    mirrors = [spack_root / "var" / "spack" / "cache"]
    if given := os.environ.get("SEATRIAL_SPACK_MIRROR"):
        mirrors.insert(0, Path(given))
    for mirror in mirrors:
        if (mirror / source.place).is_file():
            return (mirror / source.place).read_bytes()
    found = from_debian(source.debian) if source.debian else from_git(source)
    if found is None:
        raise MissingSourceError(
            f"no source {source.name} (sha256 {source.sha256}): put it into "
            f"{STORE / source.place}, or name a mirror in SEATRIAL_SPACK_MIRROR"
        )
    return found


def from_git(source: Source) -> bytes | None:
    """Pack a tarball from the authors' repository as they pack it."""
    url, tag = source.git
    with tempfile.TemporaryDirectory() as folder:
        clone = ["git", "clone", "--quiet", "--bare", url, folder]
        environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
        try:
            done = subprocess.run(
                clone, env=environment, capture_output=True, timeout=60
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode:
            return None
        prefix = f"--prefix={source.name}/"
        archive = ["git", "-C", folder, "archive", "--format=tar", prefix, tag]
        tar = subprocess.run(archive, check=True, capture_output=True).stdout
        packed = subprocess.run(
            ["gzip", "-n"], input=tar, check=True, capture_output=True
        )
        return packed.stdout


def from_debian(package: str) -> bytes | None:
    """Download the upstream tarball of a Debian package, from where apt looks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lists" / "partial").mkdir(parents=True)
        (folder / "cache" / "archives" / "partial").mkdir(parents=True)
        (folder / "parts").mkdir()
        for file in Path("/etc/apt/sources.list.d").glob("*.sources"):
            text = re.sub("^Types:.*", "Types: deb-src", file.read_text(), flags=re.M)
            (folder / "parts" / file.name).write_text(text)
        (folder / "apt.conf").write_text(
            'Dir::Etc::sourcelist "/dev/null";\n'
            f'Dir::Etc::sourceparts "{folder}/parts";\n'
            f'Dir::State::lists "{folder}/lists";\n'
            f'Dir::Cache "{folder}/cache";\n'
        )
        environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf")}
        fetch = ["apt-get", "source", "--tar-only", "--download-only", package]
        for command in (["apt-get", "update"], fetch):
            try:
                subprocess.run(
                    command,
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    timeout=300,
                )
            except (OSError, subprocess.TimeoutExpired):
                return None
        found = list(folder.glob("*.orig.tar.gz"))
        return found[0].read_bytes() if found else None
