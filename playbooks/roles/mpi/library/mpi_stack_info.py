#!/usr/bin/python
"""Ansible module: what the MPI stacks of a system are, and what is wrong with them."""

import ctypes.util
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.mpi_programs import (
    COMMANDS,
    FOLDERS,
    OWN_PACKAGE,
    ProblemError,
    find_program,
    mpi_libraries,
    package_programs,
    programs_below,
    programs_beside,
    run,
)

DOCUMENTATION = r"""
module: mpi_stack_info
short_description: Find compiler, version, library and programs of MPI stacks
description:
  - Loads each stack as a job would and looks at its compiler wrapper and programs.
  - A program must use the stack's own MPI library, which ldd shows.
  - OSU and NPB are folders; every program below them counts, under its own name.
  - IMB-RMA beside the IMB-MPI1 of a stack counts, too.
  - Of a stack that Spack has built, what is installed counts; it may be nothing yet.
    None of its programs, whether a check needs it or not, may use another MPI.
  - Changes nothing. In check mode a wheel that is not unpacked yet is no problem.
options:
  stacks:
    description: The stacks, as the variable C(mpi_stacks) of the role gives them.
    type: list
    elements: dict
    required: true
  folder:
    description: Folder of unpacked wheels and of links to programs.
    type: path
    required: true
  wheels:
    description: For each wheel its C(version) and the C(folder) it is unpacked to.
    type: dict
    required: true
  spack:
    description: What Spack installed in each environment, as the role C(spack) says.
    type: dict
    default: {}
author: The Seatrial authors
"""

EXAMPLES = r"""
- name: Find the stacks
  mpi_stack_info:
    stacks:
      - { name: openmpi, provider: distribution, compiler: mpicc, srun_mpi: pmix }
    folder: /shared/seatrial/mpi
    wheels: {}
"""

RETURN = r"""
stacks:
  description:
    - The stacks with version, compiler, programs and what their module sets.
    - C(links) are the links to make, C(executables) the names of all programs.
    - C(benchmarks) are the programs of our own that Spack has built, if it has.
  returned: always
  type: list
problems:
  description: What is missing or wrong, one text each, with what to do.
  returned: always
  type: list
"""

#: Packages of Spack with programs: the feature, and where in the package they are.
PACKAGES = {
    "intel-mpi-benchmarks": ("imb", "bin/IMB-MPI1"),
    "hpcc": ("hpcc", "bin/hpcc"),
    "lammps": ("lammps", "bin/lmp"),
    "osu-micro-benchmarks": ("osu", ""),
    "npb": ("npb", "bin"),
}
PROBE = "int MPI_Init(int *, char ***);\nint main(void) { return MPI_Init(0, 0); }\n"


def login_environment(
    modules: list[str], folders: Sequence[str] = ()
) -> dict[str, str]:
    """Environment of a login shell that has loaded `modules`, some from `folders`."""
    loads = "".join(f"module use {folder} || exit 1\n" for folder in folders)
    loads += "".join(f"module load {module} || exit 1\n" for module in modules)
    argv = ["bash", "-lc", f"{loads}printf '\\n=== '; env -0"]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    # Old modules exit 0 on failure and only say so.
    if done.returncode or (modules and "ERROR" in done.stderr):
        raise ProblemError(
            f"modules {modules} do not load: {done.stderr.strip() or done.returncode}"
        )
    pairs = done.stdout.rpartition("\n=== ")[2].split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def compiler_facts(stack: dict[str, Any], env: dict[str, str]) -> dict[str, Any]:
    """Path, version and identity of the compiler wrapper, and its MPI library."""
    wanted = stack["compiler"]
    compiler = shutil.which(wanted, path=env["PATH"])
    if compiler is None:
        source = stack.get("package") or stack.get("modules") or "its development files"
        raise ProblemError(f"no compiler wrapper {wanted} on PATH; install {source}")
    status, text = run([compiler, "--showme:version"], env)
    if status:
        text = run([compiler, "-v"], env)[1].partition("\n")[0]
    version = re.search(r"\d+(?:\.\d+)+", text)
    with tempfile.TemporaryDirectory() as folder:
        source_file = Path(folder, "probe.c")
        source_file.write_text(PROBE)
        program = str(Path(folder, "probe"))
        status, errors = run([compiler, "-o", program, str(source_file)], env)
        if status:
            raise ProblemError(f"{compiler} does not compile: {errors.strip()}")
        libraries = mpi_libraries(program, env)
    identity = [
        str(Path(compiler).resolve()),
        text,
        run([compiler, "-show"], env)[1],
        run([compiler, "--version"], env)[1],
    ]
    return {
        "compiler": compiler,
        "compiler_id": hashlib.sha256("\n".join(identity).encode()).hexdigest()[:12],
        "version": version.group() if version else "unknown",
        "libraries": libraries,
    }


def take_from_spack(stack: dict[str, Any], found: dict[str, Any]) -> None:
    """Add to a stack what Spack has installed for its MPI; its own settings win."""
    mpi = found["mpi"]
    packages = found["packages"]
    stack["version"] = mpi["version"]
    stack["mpi_name"], stack["compiled_with"] = mpi["name"], found["compiler"]
    stack["compiler"] = stack.get("compiler") or f"{mpi['prefix']}/bin/mpicc"
    stack["module_folders"] = [found["modules"]]
    names = [
        mpi["name"],
        *(name for name in [*PACKAGES, OWN_PACKAGE] if name in packages),
    ]
    stack["modules"] = stack.get("modules", []) + [
        packages[name]["module"] for name in names
    ]
    installed = {
        feature: str(Path(packages[package]["prefix"], place))
        for package, (feature, place) in PACKAGES.items()
        if package in packages
    }
    stack["programs"] = {**installed, **stack.get("programs", {})}


def verify_tuning(stack: dict[str, Any]) -> None:
    """Refuse variables that are no mapping of names to plain values."""
    for name, variables in (stack.get("tuning") or {}).items():
        if not isinstance(variables, dict) or not all(
            type(value) in (str, int, float) for value in variables.values()
        ):
            raise ProblemError(
                f"tuning {name}: {variables!r}; expected variables and their values; "
                'quote "y", "n", "on" and "off"'
            )


def examine(
    stack: dict[str, Any],
    folder: str,
    wheels: dict[str, Any],
    spack: dict[str, Any] | None = None,
) -> None:
    """Add to a stack what was found; ProblemError names the first thing wrong."""
    stack.update(version="unknown", compiler_id="", paths=[], library_paths=[])
    stack.update(links=[], executables=[])
    verify_tuning(stack)
    libraries: list[str] = []
    installed: dict[str, Any] = {}
    if stack["provider"] == "spack":
        environment = f"apps/{stack.get('mpi') or stack['name']}"
        if environment not in (spack or {}):
            raise FileNotFoundError(f"{environment} of spack-env, installed,")
        installed = (spack or {})[environment]
        if not installed["mpi"]:
            return  # it is solved only, as was asked for
        take_from_spack(stack, installed)
    env = login_environment(stack.get("modules", []), stack.get("module_folders", []))
    env.update(stack.get("environment", {}))
    env["LC_ALL"] = "C"
    if stack["provider"] == "wheels":
        wheel = wheels[stack["wheel"]]
        root = Path(wheel["folder"])
        stack["version"] = wheel["version"]
        stack["paths"] = [str(root / "bin")]
        stack["library_paths"] = [str(root / "lib")]
        if not root.is_dir():
            raise FileNotFoundError(root)
        env["PATH"] = f"{root / 'bin'}:{env['PATH']}"
        env["LD_LIBRARY_PATH"] = f"{root / 'lib'}:{env.get('LD_LIBRARY_PATH', '')}"
        libraries = sorted({str(lib.resolve()) for lib in root.glob("lib/libmpi.so*")})
        if stack["wheel"] == "impi-rt" and not ctypes.util.find_library("fabric"):
            raise ProblemError("Intel MPI needs libfabric.so.1; install libfabric1")
    elif not stack.get("compiler"):
        raise ProblemError("provider distribution needs `compiler`, its MPI C wrapper")
    if stack.get("compiler"):
        facts = compiler_facts(stack, env)
        libraries = facts.pop("libraries")
        stack.update(facts)
        if "/" in stack["compiler"] and stack["provider"] == "distribution":
            on_path = shutil.which(Path(stack["compiler"]).name, path=env["PATH"])
            if on_path != stack["compiler"]:
                stack["paths"].append(str(Path(stack["compiler"]).parent))
    links = str(Path(folder, "links", stack["name"]))
    programs, executables = {}, []
    for feature, wanted in sorted(stack.get("programs", {}).items()):
        if feature in FOLDERS:
            programs[feature] = wanted
            found = programs_below(feature, wanted, libraries, env)
        else:
            programs[feature] = find_program(feature, wanted, libraries, env)
            found = {
                COMMANDS[feature]: programs[feature],
                **programs_beside(feature, programs[feature], libraries, env),
            }
        executables += found
        for name, program in found.items():
            if shutil.which(name, path=env["PATH"]) != program:
                stack["links"].append({"path": f"{links}/{name}", "target": program})
    for name, package in installed.get("packages", {}).items():
        if name == installed["mpi"]["name"]:
            continue
        own = package_programs(name, Path(package["prefix"]), libraries, env)
        if name == OWN_PACKAGE:
            stack["benchmarks"] = own
    if stack["links"]:
        stack["paths"].insert(0, links)
    stack["programs"], stack["executables"] = programs, executables


def main() -> None:
    """Examine every stack; problems are collected, so that all are seen at once."""
    module = AnsibleModule(
        argument_spec={
            "stacks": {"type": "list", "elements": "dict", "required": True},
            "folder": {"type": "path", "required": True},
            "wheels": {"type": "dict", "required": True},
            "spack": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    given = module.params
    problems = []
    for stack in given["stacks"]:
        try:
            examine(stack, given["folder"], given["wheels"], given["spack"])
        except FileNotFoundError as error:
            if not module.check_mode:
                problems.append(f"stack {stack['name']}: {error} is not there")
        except (ProblemError, subprocess.TimeoutExpired) as error:
            problems.append(f"stack {stack['name']}: {error}")
    module.exit_json(changed=False, stacks=given["stacks"], problems=problems)


if __name__ == "__main__":
    main()
