#!/usr/bin/python
"""Ansible module: what the MPI stacks of a system are, and what is wrong with them."""

from __future__ import annotations

import ctypes.util
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.mpi_identity import (
    compiler_facts,
    mpi_plugins,
    mpirun_kind,
)
from ansible.module_utils.mpi_programs import (
    BESIDE,
    COMMANDS,
    FOLDERS,
    OWN_PACKAGE,
    ProblemError,
    find_program,
    login_environment,
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
  - Compares C(srun_mpi) of each with what C(srun --mpi=list) offers.
  - A program must use the stack's own MPI library, which ldd shows.
  - OSU, NPB and IOR are folders; every program below them counts, under its own name.
  - IMB-RMA beside the IMB-MPI1 of a stack counts, too.
  - HPL and HPCG may be a vendor's script, or a program without libraries, which ldd
    cannot verify. One that is linked with another MPI is refused.
  - Of a stack that Spack has built, what is installed counts; it may be nothing yet.
    None of its programs, whether a check needs it or not, may use another MPI.
  - Of the provider standins, the programs of the role standins count.
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
    "hpcg": ("hpcg", "bin/xhpcg"),
    "hpl": ("hpl", "bin/xhpl"),
    "lammps": ("lammps", "bin/lmp"),
    "osu-micro-benchmarks": ("osu", ""),
    "npb": ("npb", "bin"),
    "ior": ("ior", "bin"),
}


def take_from_spack(stack: dict[str, Any], found: dict[str, Any]) -> None:
    """Add to a stack what Spack has installed for its MPI; its own settings win."""
    mpi = found["mpi"]
    packages = found["packages"]
    stack["version"] = mpi["version"]
    stack["mpi_name"], stack["compiled_with"] = mpi["name"], found["compiler"]
    stack["compiler"] = stack.get("compiler") or f"{mpi['prefix']}/bin/mpicc"
    stack["module_folders"] = [*stack.get("module_folders", []), found["modules"]]
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


def take_standins(stack: dict[str, Any], folder: Path) -> None:
    """Add to a stack the stand-ins that the role standins has installed.

    Its version is the checksum of the truth of their machine.
    """
    truth = (folder / "truth.yaml").read_bytes()
    stack["version"] = hashlib.sha256(truth).hexdigest()[:12]
    stack["paths"] = [str(folder / "bin")]
    feature_of = {command: feature for feature, command in COMMANDS.items()}
    feature_of |= {name: feature for feature in BESIDE for name in BESIDE[feature]}
    stack["programs"], stack["benchmarks"] = {}, []
    for name in sorted(file.name for file in (folder / "bin").iterdir()):
        feature = feature_of.get(name) or next(
            (key for key, names in FOLDERS.items() if names.fullmatch(name)), None
        )
        if feature is None:
            stack["benchmarks"].append(name)
        else:
            stack["programs"][feature] = str(folder / "bin" / name)
            stack["executables"].append(name)


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


def wheel_library(
    stack: dict[str, Any], wheels: dict[str, Any], env: dict[str, str]
) -> list[str]:
    """Add the folders of a stack's wheel to it and to `env`; return its libraries."""
    wheel = wheels[stack["wheel"]]
    root = Path(wheel["folder"])
    stack["version"] = wheel["version"]
    stack["paths"] = [str(root / "bin")]
    stack["library_paths"] = [str(root / "lib")]
    if not root.is_dir():
        raise FileNotFoundError(root)
    env["PATH"] = f"{root / 'bin'}:{env['PATH']}"
    env["LD_LIBRARY_PATH"] = f"{root / 'lib'}:{env.get('LD_LIBRARY_PATH', '')}"
    if stack["wheel"] == "impi-rt" and not ctypes.util.find_library("fabric"):
        raise ProblemError(
            "Intel MPI needs libfabric.so.1; install libfabric1 (RHEL: libfabric)"
        )
    return sorted({str(lib.resolve()) for lib in root.glob("lib/libmpi.so*")})


def add_compiler(
    stack: dict[str, Any], env: dict[str, str], folders: Sequence[str]
) -> list[str]:
    """Add the facts of its compiler to a stack; return its libraries."""
    facts = compiler_facts(stack, env, folders)
    libraries: list[str] = facts.pop("libraries")
    if stack["provider"] == "spack":
        facts = {**facts, "version": stack["version"], "mpi_name": stack["mpi_name"]}
    stack.update(facts)
    if "/" in stack["compiler"] and stack["provider"] == "distribution":
        on_path = shutil.which(Path(stack["compiler"]).name, path=env["PATH"])
        if on_path != stack["compiler"]:
            stack["paths"].append(str(Path(stack["compiler"]).parent))
    return libraries


def add_programs(
    stack: dict[str, Any], folder: str, libraries: list[str], env: dict[str, str]
) -> None:
    """Add to a stack its programs, and the links by which checks call them."""
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
    # Whether it has links or not: the module file stays as it is when programs come.
    stack["paths"].insert(0, links)
    stack["programs"], stack["executables"] = programs, executables


def add_mpirun(stack: dict[str, Any], env: dict[str, str]) -> None:
    """Add to a stack its mpirun, if that is to start its programs."""
    if stack.get("launcher") != "mpirun":
        return
    compiler = Path(stack.get("compiler", ""))
    names = [str(compiler.parent / f"mpirun{compiler.suffix}"), "mpirun"]
    paths = (shutil.which(name, path=env["PATH"]) for name in names)
    program = next(filter(None, paths), None)
    if program is None:
        raise ProblemError("launcher mpirun: no mpirun on PATH; set launcher: srun")
    text = run([program, "--version"], env)[1]
    kind = mpirun_kind(text)
    if not kind:
        raise ProblemError(
            f"launcher mpirun: {program} prints {text.strip()[:80]!r}; expected that "
            "of Open MPI, MPICH, MVAPICH or Intel MPI; set launcher: srun"
        )
    stack["mpirun"] = {"kind": kind, "program": program}


def examine(
    stack: dict[str, Any],
    folder: str,
    wheels: dict[str, Any],
    spack: dict[str, Any] | None = None,
    tmpdir: str = "",
) -> None:
    """Add to a stack what was found; ProblemError names the first thing wrong."""
    stack.update(version="unknown", compiler_id="", paths=[], library_paths=[])
    stack.update(links=[], executables=[])
    verify_tuning(stack)
    if stack["provider"] == "standins":
        take_standins(stack, Path(folder, "standins"))
        return
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
        libraries = wheel_library(stack, wheels, env)
    elif not stack.get("compiler"):
        raise ProblemError("provider distribution needs `compiler`, its MPI C wrapper")
    if stack.get("compiler"):
        folders = [folder, tmpdir, tempfile.gettempdir()]
        libraries = add_compiler(stack, env, folders)
    add_mpirun(stack, env)
    add_programs(stack, folder, libraries, env)
    for name, package in installed.get("packages", {}).items():
        if name == installed["mpi"]["name"]:
            continue
        own = package_programs(name, Path(package["prefix"]), libraries, env)
        if name == OWN_PACKAGE:
            stack["benchmarks"] = own


def verify_srun_mpi(stacks: list[dict[str, Any]]) -> list[str]:
    """Compare the stacks' `srun_mpi` with what Slurm offers; return the problems."""
    stacks = [stack for stack in stacks if stack.get("launcher") != "mpirun"]
    if not stacks:
        return []
    try:
        status, text = run(["srun", "--mpi=list"], login_environment([]))
    except ProblemError as error:
        return [str(error)]
    offered = mpi_plugins(text)
    if status or not offered:
        return [f"`srun --mpi=list` fails: {' '.join(text.split()) or status}"]
    return [
        f"stack {stack['name']}: srun_mpi: expected one of {', '.join(offered)}, which "
        f"Slurm offers, got {stack.get('srun_mpi')!r}; or set launcher: mpirun"
        for stack in stacks
        if stack.get("srun_mpi") not in offered
    ]


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
    problems = verify_srun_mpi(given["stacks"])
    for stack in given["stacks"]:
        try:
            places = (given["folder"], given["wheels"], given["spack"])
            examine(stack, *places, module.tmpdir)
        except FileNotFoundError as error:
            if not module.check_mode:
                problems.append(f"stack {stack['name']}: {error} is not there")
        except ProblemError as error:
            problems.append(f"stack {stack['name']}: {error}")
    module.exit_json(changed=False, stacks=given["stacks"], problems=problems)


if __name__ == "__main__":
    main()
