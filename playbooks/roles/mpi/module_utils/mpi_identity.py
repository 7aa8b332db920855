"""Identity of an MPI stack, from the texts that its own tools print."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.mpi_programs import ProblemError, mpi_libraries, run

#: Names as in Spack, with the texts of MPI_Get_library_version, mpichversion, mpiname,
#: ompi_info, impi_info and mpirun that give the version. MVAPICH comes before MPICH,
#: whose names its tools print, too.
LIBRARIES = (
    ("mvapich2", re.compile(r"MVAPICH2 (?:Version\s*:\s*)?(\d[\w.]*)")),
    ("mvapich", re.compile(r"MVAPICH (?:Version\s*:\s*)?(\d[\w.]*)")),
    (
        "intel-oneapi-mpi",
        re.compile(
            r"Intel\(R\) MPI Library(?: for Linux\S* OS)?,?(?: Version)? ([\d.]+)"
        ),
    ),
    ("openmpi", re.compile(r"Open MPI v?(\d[\w.]*)|ompi:version:full:(\S+)")),
    ("openmpi", re.compile(r"\((?:Open MPI|OpenRTE)\) (\d[\w.]*)")),
    (
        "mpich",
        re.compile(r"(?:MPICH|HYDRA build details:)\s+Version\s*:\s*(\d[\w.]*)"),
    ),
)
#: Prints the name of the MPI library, which may be asked before MPI_Init.
PROBE = """int MPI_Get_library_version(char *, int *);
int puts(const char *);
static char text[1 << 16];
int main(void) {
    int length;
    MPI_Get_library_version(text, &length);
    return puts(text) < 0;
}
"""
HPCX = re.compile(r"hpcx(?:-v?(\d[\d.]*\d))?")
#: Tools beside the compiler wrapper, the most specific first.
TOOLS = (
    ("mpiname", "-a"),
    ("impi_info", "-v"),
    ("ompi_info", "--parsable"),
    ("mpichversion",),
    ("mpirun", "--version"),
)
#: Names of mpirun's kind, and the texts of `mpirun --version` that tell it.
KINDS = (
    ("openmpi", re.compile(r"\((?:Open MPI|OpenRTE|PRRTE)\)")),
    ("hydra", re.compile(r"HYDRA|Intel\(R\) MPI Library|MVAPICH")),
)


def library_of(text: str, compiler: str = "") -> dict[str, str]:
    """Return the name and version of the MPI library that printed a text, or nothing.

    HPC-X prints that it is Open MPI; its `compiler` is below a folder hpcx.
    """
    for name, pattern in LIBRARIES:
        match = pattern.search(text)
        if match:
            facts = {"mpi_name": name, "version": match.group(match.lastindex or 0)}
            package = HPCX.search(compiler)
            if name == "openmpi" and package:
                facts["mpi_name"] = "hpcx"
                facts["package_version"] = package.group(1) or "unknown"
            return facts
    return {}


def mpi_plugins(text: str) -> list[str]:
    """Return the types that `srun --mpi=list` prints, by Slurm 20.11 to 25.

    Older ones print `srun: ` before each line, on standard error.
    """
    names = []
    for line in text.splitlines():
        name = re.sub(r"^srun: ", "", line).strip()
        special = re.match(r"specific \S+ plugin versions available: (.*)", name)
        if special:
            names += re.findall(r"[\w.-]+", special.group(1))
        elif re.fullmatch(r"[\w-]+", name):
            names.append(name)
    return names


def mpirun_kind(text: str) -> str:
    """Return `openmpi` or `hydra` for a text of `mpirun --version`, or nothing."""
    return next((kind for kind, pattern in KINDS if pattern.search(text)), "")


def tool_text(compiler: str, env: dict[str, str]) -> str:
    """Return what the tools beside a compiler wrapper print of its library.

    Those of mpicc.mpich have the same ending, too: several MPIs may share a folder.
    """
    for name, *options in TOOLS:
        tool = Path(compiler).parent / (name + Path(compiler).suffix)
        status, text = run([str(tool), *options], env)
        if not status and library_of(text):
            return text
    return ""


def executable_folder(candidates: Sequence[str]) -> str:
    """Return the first folder where programs can be executed; ProblemError if none."""
    for candidate in filter(None, candidates):
        try:
            with tempfile.TemporaryDirectory(dir=candidate) as folder:
                script = Path(folder, "probe")
                script.write_text("#!/bin/sh\n")
                script.chmod(0o700)
                if run([str(script)], {})[0] == 0:
                    return candidate
        except OSError:
            continue
    raise ProblemError(
        f"no programs can be executed in {', '.join(filter(None, candidates))} "
        "(mounted noexec, or not writable); choose a seatrial_prefix where they can"
    )


def compiler_facts(
    stack: dict[str, Any], env: dict[str, str], folders: Sequence[str]
) -> dict[str, Any]:
    """Path, version and identity of the compiler wrapper, and its MPI library.

    A probe is compiled and run in the first of `folders` that executes programs.
    """
    wanted = stack["compiler"]
    compiler = shutil.which(wanted, path=env["PATH"])
    if compiler is None:
        source = stack.get("package") or stack.get("modules") or "its development files"
        raise ProblemError(f"no compiler wrapper {wanted} on PATH; install {source}")
    status, text = run([compiler, "--showme:version"], env)
    if status:
        text = run([compiler, "-v"], env)[1].partition("\n")[0]
    version = re.search(r"\d+(?:\.\d+)+", text)
    with tempfile.TemporaryDirectory(dir=executable_folder(folders)) as folder:
        source_file = Path(folder, "probe.c")
        source_file.write_text(PROBE)
        program = str(Path(folder, "probe"))
        status, errors = run([compiler, "-o", program, str(source_file)], env)
        if status:
            raise ProblemError(f"{compiler} does not compile: {errors.strip()}")
        libraries = mpi_libraries(program, env)
        status, printed = run([program], env)
    resolved = str(Path(compiler).resolve())
    library = library_of(printed, resolved) if status == 0 else {}
    library = library or library_of(tool_text(compiler, env), resolved)
    identity = [
        resolved,
        text,
        run([compiler, "-show"], env)[1],
        run([compiler, "--version"], env)[1],
    ]
    return {
        "compiler": compiler,
        "compiler_id": hashlib.sha256("\n".join(identity).encode()).hexdigest()[:12],
        "version": version.group() if version else "unknown",
        "libraries": libraries,
        **library,
    }
