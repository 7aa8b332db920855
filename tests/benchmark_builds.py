"""The C benchmarks, built with each MPI, and how tests run them."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "benchmarks"
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_odls_base_sigkill_timeout": "0",  # s, by default 1 after each refusal
    "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
}

Completed = subprocess.CompletedProcess[str]


def run(*command: str | Path, **environment: str) -> Completed:
    """Run a command without input, for five minutes at most."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=ENVIRONMENT | environment,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )


@dataclass(frozen=True)
class Build:
    """The benchmarks, built with one MPI."""

    mpi: str
    folder: Path

    @property
    def bin(self) -> Path:
        """The folder with the programs."""
        return self.folder / "bin"

    def run(
        self, program: str, np: int, *options: str, **environment: str
    ) -> Completed:
        """Run a program on np ranks; with one, without a launcher."""
        launcher = [f"mpiexec.{self.mpi}", "-n", str(np)] if np > 1 else []
        if self.mpi == "mpich":  # it spins where ranks outnumber cores
            preloaded = [environment.get("LD_PRELOAD", "")]
            preloaded.append(str(self.bin / "libmpich_yield.so"))
            environment |= {"LD_PRELOAD": ":".join(filter(None, preloaded))}
        return run(*launcher, self.bin / program, *options, **environment)


def build_with(mpi: str, name: str, *options: str) -> Build:
    """Configure and build below build/benchmarks/NAME; skip if MPI is missing."""
    for program in ("cmake", f"mpicc.{mpi}", f"mpiexec.{mpi}"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = ROOT / "build" / "benchmarks" / name
    options += (f"-DMPI_C_COMPILER=mpicc.{mpi}", "-DBUILD_TESTING=ON")
    for done in (
        run("cmake", "-S", SOURCES, "-B", folder, *options),
        run("cmake", "--build", folder, "-j2"),
    ):
        assert done.returncode == 0, done.stdout + done.stderr
    return Build(mpi, folder)
