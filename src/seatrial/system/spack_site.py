"""Spack on the login node: where it is, what it has, what it recorded."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
        """The folder of what Spack printed."""
        return self.prefix / "log"

    def wanted(self, environment: str) -> tuple[str, ...]:
        """Name the packages to install of an environment; none means all."""
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
        """Return the variables it runs with, those of PREFIX/activate.sh (role spack).

        None is left of a Spack that the user has loaded.
        """
        python = self.prefix / "python" / "bin"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("SPACK_")
        }
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
    """Find the Spack of a provisioned system.

    Raises SeatrialError if no stack comes from Spack, if Spack is not there, or if an
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
        tuple(each["name"] for each in known["environments"]),
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
    """Name the command that puts Spack there and solves, but builds nothing."""
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
    """Return the hashes of those specs that a build cache has, and a warning or ''.

    A folder is asked for the files themselves, as `spack install` does, because its
    index may be old; of another mirror Spack fetches the index.
    """
    first = site.environments[0]
    folders, urls = mirror_folders(_spack(site, first, "mirror", "list"))
    found = {
        spec.hash
        for spec in specs
        for folder in folders
        if _manifest(Path(folder), spec).is_file()
    }
    if not urls:
        return frozenset(found), ""
    try:
        listing = _spack(site, first, "buildcache", "list", "--very-long", "--allarch")
    except SeatrialError as error:
        return frozenset(found), f"build cache {', '.join(urls)} not taken in: {error}"
    return frozenset(found | set(listed_hashes(listing))), ""


def timings(site: SpackSite, prefixes: Mapping[str, Path]) -> tuple[Timing, ...]:
    """Return the recorded times of builds: our file's, then those in the prefixes."""
    return tuple(dict.fromkeys((*_own_timings(site), *_spacks_timings(prefixes))))


def record(site: SpackSite, more: Iterable[Timing]) -> None:
    """Add times to our file that are not there yet: Spack forgets them.

    A prefix that goes, or is replaced from a build cache, takes Spack's record with it.
    `more` are times that we took; they count where Spack took none.
    """
    spacks = _spacks_timings(installed(site))
    taken = {(timing.hash, timing.cache) for timing in spacks}
    ours = [timing for timing in more if (timing.hash, timing.cache) not in taken]
    known = set(_own_timings(site))
    new = [timing for timing in (*spacks, *ours) if timing not in known]
    if new:
        with site.times.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(timing)) + "\n" for timing in new)


def _own_timings(site: SpackSite) -> list[Timing]:
    if not site.times.is_file():
        return []
    lines = site.times.read_text(encoding="utf-8").splitlines()
    return [timing for line in lines if (timing := _timing(line)) is not None]


def _timing(line: str) -> Timing | None:
    """Read a line of our file; None if it broke off when a disk was full."""
    try:
        fields = json.loads(line)
        return Timing(**{**fields, "seconds": float(fields["seconds"])})
    except (ValueError, TypeError, KeyError):
        return None


def _spacks_timings(prefixes: Mapping[str, Path]) -> list[Timing]:
    """Read what Spack recorded in the prefixes."""
    found = (
        _spacks_timing(hash_, prefix / ".spack" / "install_times.json")
        for hash_, prefix in prefixes.items()
    )
    return [timing for timing in found if timing is not None]


def _spacks_timing(hash_: str, file: Path) -> Timing | None:
    """Read Spack's own record; None without, or if it is of another build."""
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
        if content["hash"] != hash_:
            return None
        seconds = round(float(content["total"]), 3)
        return Timing(hash_, content["name"], bool(content["cache"]), seconds)
    except (OSError, ValueError, KeyError, TypeError):
        return None


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
        said = "\n  ".join(done.stderr.strip().splitlines()[-10:])
        raise SeatrialError(
            f"`{' '.join(command)}` ended with status {done.returncode}:\n  {said}"
        )
    return done.stdout
