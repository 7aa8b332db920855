"""A site of Spack's for tests: Spack, recipes, environments, mirror in one folder."""

import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

HOME = Path(__file__).resolve().parents[1]
LINKS = "/home/seatrial/seatrial/links"  # of systems/lab; an external takes no variable
IGNORED = shutil.ignore_patterns("__pycache__", "cache", "environments", "junit-report")


@dataclass(frozen=True)
class Result:
    """Both output streams of a command, its elapsed seconds and CPU seconds."""

    status: int
    output: str
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class Site:
    """One prefix, as spack-env/README.md describes it, of the system lab."""

    prefix: Path
    python: Path

    @property
    def environments(self) -> Path:
        return self.prefix / "spack-env"

    @property
    def mirror(self) -> Path:
        return self.prefix / "mirror"

    def spack(self, *arguments: str, timeout: float = 600) -> Result:
        """Run Spack with nothing of this machine's settings, and no internet."""
        binaries = [str(self.python.parent), os.environ["PATH"]]
        environment = {
            "PATH": os.pathsep.join(binaries),
            "HOME": str(self.prefix / "home"),
            "TMPDIR": str(self.prefix / "tmp"),
            "SPACK_PYTHON": str(self.python),
            "SPACK_DISABLE_LOCAL_CONFIG": "1",
            "SPACK_USER_CACHE_PATH": str(self.prefix / "cache" / "user"),
            "SEATRIAL_SYSTEM": "lab",
            "http_proxy": "http://127.0.0.1:9",
            "https_proxy": "http://127.0.0.1:9",
        }
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        done = subprocess.run(
            [self.prefix / "spack/bin/spack", "--color=never", *arguments],
            cwd=self.environments,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        wall_s = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Result(done.returncode, done.stdout, wall_s, cpu_s)

    def install(self, environment: str, *arguments: str) -> Result:
        """Install on both cores at most."""
        return self.spack("-e", environment, "install", "-j2", *arguments)

    def view(self, environment: str) -> Path:
        """Return the folder of the programs of an environment."""
        return self.environments / environment / ".spack-env/view/bin"


def find_recipes(spack_root: Path) -> Path | None:
    """Find a clone of spack-packages: by variable, beside Spack, or Spack's own."""
    given = os.environ.get("SEATRIAL_SPACK_PACKAGES")
    beside = Path(given) if given else spack_root.parent / "spack-packages"
    if (beside / "repos/spack_repo/builtin/repo.yaml").is_file():
        return beside
    ask = "import spack.repo; print(spack.repo.PATH.get_repo('builtin').root)"
    done = subprocess.run(
        [spack_root / "bin/spack", "python", "-c", ask], capture_output=True, text=True
    )
    builtin = Path(done.stdout.strip() or "/nowhere")
    return builtin.parents[2] if (builtin / "repo.yaml").is_file() else None


def python_of_spack() -> Path:
    """Return a Python with the solver, in build/spack-python; create it if missing."""
    pins = yaml.safe_load((HOME / "spack-env/pins.yaml").read_text())["pypi"]
    wanted = [f"{name}=={version}" for name, version in pins.items()]
    folder = HOME / "build" / "spack-python"
    python = folder / "bin" / "python"
    made = folder / "made-with.txt"
    if not made.is_file() or made.read_text().split() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
        made.write_text("\n".join(wanted))
    return python


def make_site(prefix: Path, spack_root: Path, recipes: Path) -> Site:
    """Copy Spack and the environments to `prefix`, and link the recipes."""
    for part in ("bin", "etc", "lib", "share", "var"):
        shutil.copytree(
            spack_root / part, prefix / "spack" / part, symlinks=True, ignore=IGNORED
        )
    (prefix / "spack-packages").symlink_to(recipes)
    for folder in ("home", "tmp", "mirror", "build-cache"):
        (prefix / folder).mkdir()
    ours = shutil.ignore_patterns(".spack-env", "spack.lock", "modules", "__pycache__")
    shutil.copytree(HOME / "spack-env", prefix / "spack-env", ignore=ours)
    packages = prefix / "spack-env/systems/lab/packages.yaml"
    packages.write_text(packages.read_text().replace(LINKS, str(prefix / "links")))
    wanted = [str(prefix / "links"), "openmpi", "mpich", "openblas"]
    subprocess.run([HOME / "spack-env/debian-links", *wanted], check=True)
    return Site(prefix, python_of_spack())
