"""Compilers of an MPI stack for builds: wrappers of other languages, and a BLAS."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.mpi_programs import ProblemError, run

#: Names of C wrappers, and of those for other languages beside them.
WRAPPERS = {
    "CXX": [("mpicc", "mpicxx"), ("mpiicx", "mpiicpx"), ("mpiicc", "mpiicpc")],
    "FC": [
        *(("mpicc", "mpifort"), ("mpicc", "mpif90"), ("mpiicx", "mpiifx")),
        *(("mpiicc", "mpiifort"), ("mpigcc", "mpif90"), ("cc", "ftn")),
    ],
}
PROBE = """program probe
use mpi
integer :: error
call MPI_Init(error)
call MPI_Finalize(error)
end program
"""
#: gfortran 10 and later refuse NPB without it.
MISMATCH = "-fallow-argument-mismatch"
CXX_PROBE = "#include <mpi.h>\n#include <vector>\nint main() { return 0; }\n"
BLAS_PROBE = """void dgemm_(void);
int main(int argc, char **argv) {
    if (argc > 1)
        dgemm_();
    return !argv;
}
"""
#: Options of the linker for fast BLAS, which are tried in turns. The reference BLAS
#: (-lblas) is none: HPL would show its rate, not that of the node.
BLAS = (
    "-lopenblas",
    "-lmkl_rt",
    "-lblis",
    "-lflexiblas",
    "-larmpl",
    "-lnvpl_blas_lp64_gomp",
)


def wrapper(stack: dict[str, Any], language: str, env: dict[str, str]) -> str:
    """Find the wrapper beside the stack's C wrapper, or on PATH; empty if none."""
    compiler = Path(stack["compiler"])
    for name, other in WRAPPERS[language]:
        if compiler.name.startswith(name):
            wanted = other + compiler.name[len(name) :]
            path = shutil.which(wanted, path=f"{compiler.parent}:{env['PATH']}")
            if path:
                return path
    return ""


def fortran(stack: dict[str, Any], env: dict[str, str]) -> dict[str, str]:
    """Return FC and FFLAGS; ProblemError if no Fortran wrapper compiles."""
    wanted = stack.get("fortran")
    compiler = shutil.which(wanted, path=env["PATH"]) if wanted else ""
    compiler = compiler or ("" if wanted else wrapper(stack, "FC", env))
    remedy = (
        "install the Fortran compiler and its MPI wrapper, or name the wrapper in "
        "`fortran` of the stack, and run site.yml again"
    )
    if not compiler:
        name = wanted or f"Fortran wrapper beside {stack['compiler']}"
        raise ProblemError(f"it has no {name}; {remedy}")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.f90"), Path(folder, "probe")
        source.write_text(PROBE)
        for flags in (["-O3", MISMATCH], ["-O3"]):
            argv = [compiler, *flags, "-o", str(program), str(source)]
            status, text = run(argv, env)
            if not status:
                return {"FC": compiler, "FFLAGS": " ".join(flags)}
    last = (text.strip().splitlines() or [f"exit status {status}"])[-1]
    raise ProblemError(f"{compiler} does not compile: {last}; {remedy}")


def blas(stack: dict[str, Any], env: dict[str, str], wanted: str) -> str:
    """Return the options for a BLAS that links and loads; ProblemError without one."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.c"), Path(folder, "probe")
        source.write_text(BLAS_PROBE)
        for options in [wanted] if wanted else BLAS:
            words = [stack["compiler"], "-o", str(program), str(source)]
            status, text = run([*words, *options.split(), "-lm"], env)
            if not status and run(["ldd", str(program)], env)[1].find("not found") < 0:
                return options
    last = (text.strip().splitlines() or [f"exit status {status}"])[-1]
    tried = f"mpi_blas {wanted!r} does not link ({last})" if wanted else "no BLAS found"
    raise ProblemError(
        f"{tried}; install one, such as OpenBLAS (libopenblas-dev, openblas-devel), or "
        "state the options of the linker in mpi_blas, and run site.yml again"
    )


def needs(
    feature: str, stack: dict[str, Any], env: dict[str, str], given: dict[str, Any]
) -> tuple[dict[str, str], list[str]]:
    """Return variables and further arguments of a build; ProblemError names a lack."""
    if feature == "npb":
        return fortran(stack, env), given["classes"]
    if feature == "hpl":
        return {}, [blas(stack, env, given.get("blas", ""))]
    compiler = wrapper(stack, "CXX", env)
    if feature == "hpcg":
        verify_cxx(compiler, stack, env)
    return {"CXX": compiler}, []


def verify_cxx(compiler: str, stack: dict[str, Any], env: dict[str, str]) -> None:
    """Raise ProblemError unless the C++ wrapper compiles."""
    remedy = "install the C++ compiler and its MPI wrapper, and run site.yml again"
    if not compiler:
        beside = f"C++ wrapper beside {stack['compiler']}"
        raise ProblemError(f"it has no {beside}; {remedy}")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.cpp"), Path(folder, "probe")
        source.write_text(CXX_PROBE)
        status, text = run([compiler, "-o", str(program), str(source)], env)
    if status:
        last = (text.strip().splitlines() or [f"exit status {status}"])[-1]
        raise ProblemError(f"{compiler} does not compile: {last}; {remedy}")
