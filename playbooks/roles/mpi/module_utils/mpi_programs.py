"""The programs of an MPI stack: where they are, and which MPI they are linked with."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

#: Names that the checks call programs by.
COMMANDS = {
    "imb": "IMB-MPI1",
    "hpcc": "hpcc",
    "hpcg": "xhpcg",
    "hpl": "xhpl",
    "lammps": "lmp",
}
#: Features whose program may be a vendor's script, or linked without libraries: ldd
#: cannot tell its MPI.
OF_VENDORS = ("hpcg", "hpl")
#: Other programs of a feature, which are used if they are beside the one it names.
BESIDE = {"imb": ["IMB-RMA"]}
#: Names of the programs in a folder of programs. Those of OSU for other models than MPI
#: (OpenSHMEM, UPC, NCCL) are not asked for.
FOLDERS = {
    "osu": re.compile(r"osu_(?!oshm_|upc|xccl_|nccl_)\w+"),
    "npb": re.compile(r"(?:bt|cg|dt|ep|ft|is|lu|mg|sp)\.[SWA-F]\.(?:x|\d+)"),
    "ior": re.compile(r"ior|mdtest"),
}
#: The package of Spack with our own benchmarks.
OWN_PACKAGE = "seatrial-benchmarks"
EXAMPLE_NAMES = {
    "osu": "osu_latency and so on",
    "npb": "cg.A.x and so on",
    "ior": "ior and mdtest",
}
#: The library that every MPI program uses, besides those for Fortran and C++.
MAIN_LIBRARY = re.compile(r"libmpi(?:ch)?\.so\b.*")
LIBRARY = re.compile(r"^\s*(libmpi(?:ch|_[a-z]+)?\.so\S*) => (\S+)", re.MULTILINE)


#: Seconds in which a compiler, a tool or a login shell must end.
ANSWER_S = 120


class ProblemError(Exception):
    """Error in a stack that its owner must fix."""


def run(argv: list[str], env: dict[str, str]) -> tuple[int, str]:
    """Exit status and both outputs of a command; 127 if it is not there.

    Raises ProblemError if it times out.
    """
    try:
        done = subprocess.run(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=ANSWER_S,
        )
    except OSError as error:
        return 127, str(error)
    except subprocess.TimeoutExpired:
        raise ProblemError(
            f"`{' '.join(argv)}` timed out after {ANSWER_S} s; run it on "
            "this machine to see where it hangs, then run site.yml again"
        ) from None
    return done.returncode, done.stdout


def login_environment(
    modules: list[str], folders: Sequence[str] = ()
) -> dict[str, str]:
    """Environment of a login shell that has loaded `modules`, some from `folders`.

    Modules load in this order: in a hierarchy, each may bring folders for the next.
    """
    missing = [folder for folder in folders if not Path(folder).is_dir()]
    if missing:
        raise ProblemError(
            f"module_folders: no folder {', '.join(missing)}; expected folders for "
            "`module use`"
        )
    loads = "".join(f"module use {shlex.quote(f)} || exit 1\n" for f in folders)
    loads += "".join(f"module load {shlex.quote(m)} || exit 1\n" for m in modules)
    argv = ["bash", "-lc", f"{loads}printf '\\n=== '; env -0"]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
        )
    except subprocess.TimeoutExpired:
        raise ProblemError(
            f"a login shell with modules {' '.join(modules) or '(none)'} timed out "
            f"after {ANSWER_S} s; load them in `bash -l` to see where it hangs, then "
            "run site.yml again"
        ) from None
    # Old modules exit 0 on failure and only say so.
    if done.returncode or (modules and "ERROR" in done.stderr):
        raise ProblemError(
            f"modules {' '.join(modules)} do not load: "
            f"{' '.join(done.stderr.split()) or done.returncode}; name each in the "
            "order of the hierarchy, the compiler first, and other folders in "
            "module_folders"
        )
    pairs = done.stdout.rpartition("\n=== ")[2].split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def mpi_libraries(program: str, env: dict[str, str]) -> list[str]:
    """Real paths of the MPI libraries that a program is linked with."""
    text = run(["ldd", program], env)[1]
    if "=> not found" in text:
        missing = ", ".join(re.findall(r"(\S+) => not found", text))
        raise ProblemError(f"{program} lacks {missing}")
    return sorted({str(Path(path).resolve()) for _, path in LIBRARY.findall(text)})


def find_program(
    feature: str, wanted: str, libraries: list[str], env: dict[str, str]
) -> str:
    """Path of a program that is there and uses one of `libraries`."""
    program = shutil.which(wanted, path=env["PATH"])
    if program is None:
        raise ProblemError(f"program {feature}: no executable {wanted}; install it")
    if feature in OF_VENDORS and not is_dynamic(program, env):
        return program
    used = mpi_libraries(program, env)
    if libraries and not set(used) & set(libraries):
        raise ProblemError(
            f"program {feature}: {program} uses {', '.join(used) or 'no MPI library'}, "
            f"expected the stack's own {', '.join(libraries)}"
        )
    refuse_mixture(feature, program, used, libraries)
    return program


def refuse_mixture(
    feature: str, program: str, used: list[str], libraries: list[str]
) -> None:
    """Refuse a program that uses an MPI besides the stack's own."""
    others = [
        library
        for library in used
        if MAIN_LIBRARY.fullmatch(Path(library).name) and library not in libraries
    ]
    if libraries and others:
        raise ProblemError(
            f"program {feature}: {program} uses {', '.join(others)}, too: two MPIs in "
            f"one program; expected only the stack's own {', '.join(libraries)}; build "
            "it again with that MPI's wrappers alone"
        )


def programs_below(
    feature: str, wanted: str, libraries: list[str], env: dict[str, str]
) -> dict[str, str]:
    """Programs of a folder by their names, which use one of `libraries`."""
    folder = Path(wanted)
    if not folder.is_absolute() or not folder.is_dir():
        raise ProblemError(
            f"program {feature}: {wanted} is no folder; expected the full path of the "
            "one with its programs"
        )
    found: dict[str, str] = {}
    for file in sorted(folder.rglob("*")):
        if not FOLDERS[feature].fullmatch(file.name) or not is_program(file):
            continue
        if file.name in found:
            raise ProblemError(
                f"program {feature}: {found[file.name]} and {file}; expected one of "
                "each name; give the folder of one installation"
            )
        found[file.name] = find_program(feature, str(file), libraries, env)
    if not found:
        raise ProblemError(
            f"program {feature}: no executables {EXAMPLE_NAMES[feature]} below "
            f"{wanted}; install it, or give its folder"
        )
    return found


def programs_beside(
    feature: str, program: str, libraries: list[str], env: dict[str, str]
) -> dict[str, str]:
    """Other programs of a feature by their names, which use one of `libraries`.

    `program` may be a link to where it was installed with them.
    """
    folders = [Path(program).parent, Path(program).resolve().parent]
    found: dict[str, str] = {}
    for name in BESIDE.get(feature, []):
        files = [file for folder in folders if is_program(file := folder / name)]
        if files:
            found[name] = find_program(feature, str(files[0]), libraries, env)
    return found


def is_dynamic(program: str, env: dict[str, str]) -> bool:
    """Return True for a program that loads libraries, which ldd shows."""
    status, text = run(["ldd", program], env)
    return status == 0 and "statically linked" not in text


def is_program(file: Path) -> bool:
    """Return True for an executable file that is no script."""
    if not file.is_file() or not os.access(file, os.X_OK):
        return False
    with file.open("rb") as content:
        return content.read(4) == b"\x7fELF"


def package_programs(
    package: str, prefix: Path, libraries: list[str], env: dict[str, str]
) -> list[str]:
    """Names of all programs of a package, some without MPI, but none with another."""
    files = [*prefix.glob("bin/*"), *prefix.glob("libexec/**/*")]
    programs = sorted(filter(is_program, files))
    for program in programs:
        used = mpi_libraries(str(program), env)
        refuse_mixture(package, str(program), used, libraries)
    return [program.name for program in programs]
