#!/usr/bin/python
"""Ansible module: programs of MPI stacks, built from release archives."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.mpi_compilers import needs
from ansible.module_utils.mpi_programs import (
    COMMANDS,
    ProblemError,
    login_environment,
)

DOCUMENTATION = r"""
module: mpi_program_builds
short_description: Build programs of MPI stacks from release archives
description:
  - Builds each program for each stack with a compiler, except stacks of the provider
    C(spack), and except programs that the stack names already.
  - A finished build is kept until the archive, the compiler, the classes or the script
    change, also when there is no archive any more.
  - NPB also needs an MPI Fortran wrapper that compiles, HPL a BLAS, HPCG a C++
    wrapper, and IOR autoconf and automake, unless its archive has a C(configure).
options:
  stacks:
    description: The stacks, as the variable C(mpi_stacks) of the role gives them.
    type: list
    elements: dict
    required: true
  examined:
    description: The same stacks, as C(mpi_stack_info) returns them.
    type: list
    elements: dict
    required: true
  archives:
    description: The archives on the system, as C(find_archives.py) lists them.
    type: list
    elements: dict
    required: true
  scripts:
    description: For each feature the text of the script that builds it.
    type: dict
    required: true
  classes:
    description: Classes of NPB.
    type: list
    elements: str
    required: true
  blas:
    description: Options of the linker for HPL's BLAS; by default known ones are tried.
    type: str
    default: ""
  folder:
    description: Folder of builds and their logs.
    type: path
    required: true
author: The Seatrial authors
"""

EXAMPLES = r"""
- name: Programs are built
  mpi_program_builds:
    stacks: "{{ mpi_stacks }}"
    examined: "{{ mpi_found.stacks }}"
    archives: "{{ archives }}"
    scripts: { osu: "{{ lookup('file', 'build_osu.sh') }}" }
    classes: [A, B]
    folder: /shared/seatrial/mpi/built
"""

RETURN = r"""
stacks:
  description:
    - The given stacks, with the folders of what was built in their C(programs).
    - C(built) lists name, version, checksum and origin of each archive.
    - C(not_built) has a sentence for each program that could not be built.
  returned: always
  type: list
problems:
  description: Builds that failed, one text each.
  returned: always
  type: list
skipped:
  description: The sentences of C(not_built), each with the stacks that it holds for.
  returned: always
  type: list
"""

BUILD_S = 3600
#: What is recorded of an archive.
RECORD = ("feature", "name", "version", "sha256", "origin")
LAST_LINES = 5


def build_environment(stack: dict[str, Any]) -> dict[str, str]:
    """Return the environment of a shell with the stack's modules and compilers."""
    env = login_environment(stack.get("modules", []), stack.get("module_folders", []))
    env.update({key: str(text) for key, text in stack.get("environment", {}).items()})
    env["PATH"] = ":".join([*stack["paths"], env["PATH"]])
    env["LC_ALL"] = "C"
    env["CC"] = stack["compiler"]
    return env


def verify_autotools(archive: str, env: dict[str, str]) -> None:
    """Raise ProblemError if an archive without a configure cannot be given one."""
    with tarfile.open(archive) as content:
        if any(name.split("/")[1:] == ["configure"] for name in content.getnames()):
            return
    tools = ("autoreconf", "automake", "pkg-config")
    missing = [tool for tool in tools if not shutil.which(tool, path=env["PATH"])]
    if missing:
        raise ProblemError(
            f"it has no {' and no '.join(missing)}; install autoconf, automake and "
            "pkg-config, and run site.yml again"
        )


def build_key(stack: dict[str, Any], script: str, options: list[str]) -> str:
    """Compute a checksum of all that a build depends on, besides the archive."""
    parts = [stack["compiler_id"], stack.get("fortran"), script, options]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def finished_build(
    stamp: Path, key: str, archive: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the record of the finished build, if it is the wanted one.

    Without an archive, the build from any archive is.
    """
    try:
        record = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return None
    is_other = "archive" in archive and record["sha256"] != archive["sha256"]
    return None if is_other or record.pop("key") != key else record


def build(
    script: str, given: list[str], target: Path, env: dict[str, str], name: str
) -> None:
    """Run the script of a build; ProblemError has the last lines of its log."""
    log = target.with_name(f"{target.name}.log")
    log.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    status = run_build(["bash", "-c", script, "build", *given], env, log)
    if status == 0:
        return
    lines = log.read_text(errors="replace").strip().splitlines()[-LAST_LINES:]
    words = "failed" if status else f"timed out after {BUILD_S} s"
    remedy = (
        "fix it" if status else "see which step hangs or is slow, run site.yml again"
    )
    raise ProblemError(
        f"the build of {name} {words}: {' | '.join(lines) or 'no output'}; full "
        f"output: {log}; {remedy}, or name what was installed in "
        f"programs.{target.name} of mpi_stacks, or leave {target.name} out of "
        "mpi_built_programs"
    )


def run_build(argv: list[str], env: dict[str, str], log: Path) -> int | None:
    """Run a build to its end; return its exit status, None if it timed out.

    Its compilers are ended with it: they would go on, and write to the log.
    """
    with log.open("w") as output:
        process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return process.wait(BUILD_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def bring(
    stack: dict[str, Any],
    archive: dict[str, Any],
    given: dict[str, Any],
    check_mode: bool,
) -> tuple[dict[str, Any] | None, str]:
    """Build a program unless it is there; return its record and what was done.

    Without a record, the text is the reason why there is no build.
    """
    feature = archive["feature"]
    script = given["scripts"][feature]
    options = {"npb": given["classes"], "hpl": [given.get("blas", "")]}.get(feature, [])
    target = Path(given["folder"], stack["name"], feature)
    stamp, key = target / ".built.json", build_key(stack, script, options)
    record = finished_build(stamp, key, archive)
    if record:
        return record, ""
    if "archive" not in archive:
        return None, archive["reason"]
    env = build_environment(stack)
    try:
        variables, more = needs(feature, stack, env, given)
        if feature == "ior":
            verify_autotools(archive["archive"], env)
    except ProblemError as error:
        return None, f"no build of {archive['name']}: {error}"
    if check_mode:
        return None, f"no build of {archive['name']} yet"
    env.update(variables)
    arguments = [archive["archive"], str(target), *more]
    build(script, arguments, target, env, archive["name"])
    record = {name: archive[name] for name in RECORD}
    stamp.write_text(json.dumps({**record, "key": key}))
    return record, "built"


def bring_all(given: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """Build what stacks lack; return the stacks with it, and the failed builds."""
    stacks, problems, changed = [], [], False
    skipped: dict[str, list[str]] = {}
    for number, original in enumerate(given["stacks"]):
        examined = given["examined"][number]
        stack = {**original, "programs": dict(original.get("programs") or {})}
        stacks.append(stack)
        if "compiler" not in examined or examined["provider"] == "spack":
            continue
        stack.update(built=[], not_built={})
        for archive in given["archives"]:
            feature = archive["feature"]
            if feature in stack["programs"]:
                continue
            try:
                record, text = bring(examined, archive, given, check_mode)
            except ProblemError as error:
                problems.append(f"stack {stack['name']}: {error}")
                continue
            if record is None:
                stack["not_built"][feature] = text
                skipped.setdefault(text, []).append(stack["name"])
                continue
            changed = changed or bool(text)
            target = Path(given["folder"], stack["name"], feature)
            stack["programs"][feature] = str(target / COMMANDS.get(feature, ""))
            stack["built"].append(record)
    return {
        "changed": changed,
        "stacks": stacks,
        "problems": problems,
        "skipped": [f"{', '.join(names)}: {why}" for why, names in skipped.items()],
    }


def main() -> None:
    """Build what the stacks lack; failed builds are collected."""
    module = AnsibleModule(
        argument_spec={
            "stacks": {"type": "list", "elements": "dict", "required": True},
            "examined": {"type": "list", "elements": "dict", "required": True},
            "archives": {"type": "list", "elements": "dict", "required": True},
            "scripts": {"type": "dict", "required": True},
            "classes": {"type": "list", "elements": "str", "required": True},
            "blas": {"type": "str", "default": ""},
            "folder": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        result = bring_all(module.params, module.check_mode)
    except OSError as error:
        module.fail_json(msg=f"builds of programs: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
