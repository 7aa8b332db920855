"""Spack on the login node: its folders, packages, build caches and build times."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from seatrial.errors import SeatrialError
from seatrial.system.description import System
from seatrial.system.spack_lock import Lock, Spec, read_lock
from seatrial.system.spack_output import listed_hashes, mirror_folders
from seatrial.system.spack_plan import Timing


@dataclass(frozen=True)
class SpackSite:
    """Spack of a system: its folder, its environments, the packages to install.

    An environment goes by its folder of spack-env: `apps/MPI`, `fabric`. No `packages`
    means all of each; else those, and the MPI, of environments that have one. `jobs` is
    the number of processes of a build, 0 Spack's choice.
    """

    system: str
    prefix: Path
    environments: tuple[str, ...]
    packages: tuple[str, ...]
    jobs: int

    @property
    def times(self) -> Path:
        """The file of the recorded builds: JSON, one build a line, oldest first."""
        return self.prefix / "build-times.jsonl"

    @property
    def logs(self) -> Path:
        """The folder of Spack's output."""
        return self.prefix / "log"

    def wanted(self, environment: str) -> tuple[str, ...]:
        """Return the packages to install of an environment; none means all."""
        folder, _, mpi = environment.partition("/")
        chosen = self.packages and folder == "apps"
        return (*self.packages, mpi) if chosen else ()

    def folder(self, environment: str) -> Path:
        """Return the folder of an environment."""
        return self.prefix / "spack-env" / environment

    def command(self, environment: str, *arguments: str) -> list[str]:
        """Return a command of Spack in an environment."""
        program = self.prefix / "spack" / "bin" / "spack"
        return [str(program), "-e", str(self.folder(environment)), *arguments]

    def variables(self) -> dict[str, str]:
        """Return Spack's environment variables, as in PREFIX/activate.sh (role spack).

        Variables of a Spack that the user has loaded are left out.
        """
        python = self.prefix / "python" / "bin"
        user = os.environ.items()
        kept = {name: text for name, text in user if not name.startswith("SPACK_")}
        return {
            **kept,
            "PATH": f"{python}:{kept.get('PATH', '')}",
            "LC_MESSAGES": "C",  # of gpg
            "PYTHONUNBUFFERED": "1",  # its lines come when they are printed
            "SPACK_PYTHON": str(python / "python"),
            "SPACK_DISABLE_LOCAL_CONFIG": "1",
            "SPACK_USER_CACHE_PATH": str(self.prefix / "cache" / "user"),
            "SPACK_GNUPGHOME": str(self.prefix / "gnupg"),
            "SEATRIAL_SYSTEM": self.system,
        }


def load_site(system: System) -> SpackSite:
    """Return the Spack of a provisioned system.

    Raises SeatrialError if no stack comes from Spack, Spack is missing, or an
    environment is not solved.
    """
    known = system.software.get("spack")
    if not known:
        raise SeatrialError(
            f"system {system.name!r} has no MPI stack that Spack builds: give one "
            "`provider: spack` in mpi_stacks of its inventory (group_vars/all/mpi.yml),"
            f" then run {prepare(system.name)}"
        )
    site = SpackSite(
        system.name,
        Path(known.get("prefix") or system.folder.parents[1] / "spack"),
        tuple(environment["name"] for environment in known["environments"]),
        tuple(known.get("specs", ())),
        int(known.get("jobs", 0)),
    )
    needed = [Path(site.command("")[0])]
    needed += [site.folder(name) / "spack.lock" for name in site.environments]
    for file in needed:
        if not file.is_file():
            raise SeatrialError(
                f"{file}: missing: Spack of system {system.name!r} is not prepared, or "
                f"an environment is not solved; run {prepare(system.name)}"
            )
    return site


def prepare(system: str) -> str:
    """Return the command that installs Spack and solves, but builds nothing."""
    return (
        f"`ansible-playbook -i inventories/{system} playbooks/site.yml "
        "-e spack_install=false` on the control machine"
    )


def read_locks(site: SpackSite) -> dict[str, Lock]:
    """Read the lock files of all environments, by name."""
    return {
        name: read_lock(site.folder(name) / "spack.lock") for name in site.environments
    }


def installed(site: SpackSite) -> dict[str, Path]:
    """Read Spack's database: the prefix of each installed package, by its hash."""
    file = site.prefix / "software" / ".spack-db" / "index.json"
    if not file.is_file():
        return {}
    try:
        records = json.loads(file.read_text(encoding="utf-8"))["database"]["installs"]
        return {
            hash_: Path(record["path"])
            for hash_, record in records.items()
            if record["installed"] and record["path"]
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SeatrialError(
            f"{file}: not a database of Spack: {error!r}; run "
            f"`{site.prefix}/spack/bin/spack reindex`"
        ) from error


def in_build_caches(
    site: SpackSite, specs: Iterable[Spec]
) -> tuple[frozenset[str], str]:
    """Return the hashes of the specs in build caches, and a warning or ''.

    In a folder the files count, as for `spack install`: its index may be old. Of
    another mirror Spack fetches the index.
    """
    first = site.environments[0]
    folders, urls = mirror_folders(_spack(site, first, "mirror", "list"))
    hashes = {
        spec.hash
        for spec in specs
        for folder in folders
        if _manifest(Path(folder), spec).is_file()
    }
    if not urls:
        return frozenset(hashes), ""
    try:
        listing = _spack(site, first, "buildcache", "list", "--very-long", "--allarch")
    except SeatrialError as error:
        return frozenset(hashes), f"build cache {', '.join(urls)} not taken in: {error}"
    return frozenset(hashes | set(listed_hashes(listing))), ""


def timings(site: SpackSite, prefixes: Mapping[str, Path]) -> tuple[Timing, ...]:
    """Return the recorded times of builds: of our file, then of the prefixes."""
    return tuple(dict.fromkeys((*_own_timings(site), *_spacks_timings(prefixes))))


def record(site: SpackSite, more: Iterable[Timing]) -> None:
    """Add new times to our file: Spack's record goes with the prefix.

    `more` are times that we took; they count where Spack took none.
    """
    spacks = _spacks_timings(installed(site))
    taken = {(timing.hash, timing.cache) for timing in spacks}
    ours = [timing for timing in more if (timing.hash, timing.cache) not in taken]
    known = _own_timings(site)
    new = [timing for timing in (*spacks, *ours) if timing not in known]
    if new:
        with site.times.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(timing)) + "\n" for timing in new)


def _own_timings(site: SpackSite) -> list[Timing]:
    if not site.times.is_file():
        return []
    timings = []
    for line in site.times.read_bytes().splitlines():
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # cut by a full disk
            timings.append(msgspec.json.decode(line, type=Timing))
    return timings


class _InstallTimes(msgspec.Struct):
    hash: str
    name: str
    cache: bool
    total: float


def _spacks_timings(prefixes: Mapping[str, Path]) -> list[Timing]:
    """Read the times that Spack recorded in the prefixes, except of other builds."""
    timings = []
    for hash_, prefix in prefixes.items():
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            content = (prefix / ".spack" / "install_times.json").read_bytes()
            times = msgspec.json.decode(content, type=_InstallTimes)
            if times.hash == hash_:
                seconds = round(times.total, 3)
                timings.append(Timing(hash_, times.name, times.cache, seconds))
    return timings


def _manifest(cache: Path, spec: Spec) -> Path:
    """Name the file that a build cache has for a package (Spack's layout 3)."""
    name = f"{spec.name}-{spec.version}-{spec.hash}.spec.manifest.json"
    return cache / "v3" / "manifests" / "spec" / spec.name / name


def _spack(site: SpackSite, environment: str, *arguments: str) -> str:
    """Run a short command of Spack; return what it prints."""
    command = site.command(environment, *arguments)
    done = subprocess.run(
        command,
        env=site.variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        errors = "\n  ".join(done.stderr.strip().splitlines()[-10:])
        raise SeatrialError(
            f"`{' '.join(command)}` ended with status {done.returncode}:\n  {errors}"
        )
    return done.stdout
