"""A stack that Spack installed: rendered, recorded, in the report."""

import functools
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_home import write_home
from jinja2 import Environment
from rich.console import Console
from samples import sample_run
from test_role_scripts import ROLES, load
from test_role_spack import run, write

from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.runner import Order, run_campaign
from seatrial.errors import SeatrialError
from seatrial.report.methods_chapter import configuration
from seatrial.runs.closed_run import load_run
from seatrial.system.description import load_system

OPENMPI = "/usr/lib/libmpi.so.40.30.4"


# ---- The stack, and what is rendered from it


def package(name: str, folder: Path) -> dict[str, str]:
    return {"version": "1", "prefix": str(folder / name), "module": f"{name}/1-m"}


@pytest.fixture
def spack(tmp_path: Path) -> dict[str, Any]:
    """Description by the role spack of an MPI `m` with four packages."""
    names = ["m", "hpcc", "osu-micro-benchmarks", "seatrial-benchmarks", "stream"]
    programs = [
        *("m/bin/mpicc", "hpcc/bin/hpcc", "osu-micro-benchmarks/libexec/osu_bw"),
        *("seatrial-benchmarks/bin/mpair", "seatrial-benchmarks/bin/memlat"),
        "hpcc/bin/another",  # that no check needs
    ]
    write(tmp_path, *programs)
    for name in programs:
        (tmp_path / name).write_bytes(Path(sys.executable).resolve().read_bytes())
        (tmp_path / name).chmod(0o755)
    return {
        "apps/m": {
            "mpi": {"name": "m", "version": "5.0.10", "prefix": str(tmp_path / "m")},
            "compiler": "gcc@12.2.0",
            "packages": {name: package(name, tmp_path) for name in names},
            "modules": str(tmp_path / "modules"),
            "lock": {"path": "/x/spack.lock", "sha256": "0" * 64},
        }
    }


def examined(
    spack: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    used: dict[str, list[str]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Examine a stack whose programs use one MPI, or those of `used`."""
    info = load("mpi/library/mpi_stack_info.py")
    libraries = {"memlat": [], **(used or {})}
    monkeypatch.setattr(
        "ansible.module_utils.mpi_programs.mpi_libraries",
        lambda program, env: libraries.get(Path(program).name, [OPENMPI]),
    )
    monkeypatch.setattr(
        info,
        "compiler_facts",
        lambda *given: {"libraries": [OPENMPI], "version": "5.0.10"},
    )
    monkeypatch.setattr(info, "login_environment", lambda *given: dict(os.environ))
    stack = {"name": "s", "provider": "spack", "mpi": "m", "srun_mpi": "pmix", **more}
    info.examine(stack, "/prefix/mpi", {}, spack)
    return stack


def test_stack_has_what_spack_installed(
    spack: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stack = examined(spack, monkeypatch)
    assert stack["modules"] == [
        *("m/1-m", "hpcc/1-m", "osu-micro-benchmarks/1-m", "seatrial-benchmarks/1-m")
    ]
    assert stack["module_folders"] == [str(tmp_path / "modules")]
    assert stack["compiler"] == str(tmp_path / "m/bin/mpicc")
    assert stack["programs"] == {
        "hpcc": str(tmp_path / "hpcc/bin/hpcc"),
        "osu": str(tmp_path / "osu-micro-benchmarks"),
    }
    assert stack["executables"] == ["hpcc", "osu_bw"]
    assert stack["benchmarks"] == ["memlat", "mpair"]


def test_stack_without_our_benchmarks_gets_them_from_the_role(
    spack: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    del spack["apps/m"]["packages"]["seatrial-benchmarks"]
    assert "benchmarks" not in examined(spack, monkeypatch)


@pytest.mark.parametrize(
    ("program", "libraries", "problem"),
    [
        (
            "hpcc",
            [OPENMPI, "/usr/lib/libmpich.so.12.2.1"],
            r"hpcc: \S+/hpcc uses /usr/lib/libmpich.so.12.2.1, too: two MPIs in one",
        ),
        (
            "osu_bw",
            ["/usr/lib/libmpich.so.12.2.1"],
            "osu_bw uses .* expected the stack",
        ),
        ("mpair", [OPENMPI, "/opt/lib/libmpi.so.12"], "mpair uses /opt/.* two MPIs"),
        ("mpair", ["/opt/lib/libmpi.so.12"], "mpair uses /opt/.* two MPIs"),
        ("another", ["/opt/lib/libmpi.so.12"], "hpcc: .*another uses /opt/.* two MPIs"),
        ("hpcc", [], "uses no MPI library"),
    ],
)
def test_program_with_another_mpi_is_refused(
    program: str,
    libraries: list[str],
    problem: str,
    spack: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Exception, match=problem):
        examined(spack, monkeypatch, {program: libraries})


def test_libraries_for_fortran_and_cxx_are_of_the_same_mpi(
    spack: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = ["/usr/lib/libmpi_mpifh.so.40", "/usr/lib/libmpi_cxx.so.40", OPENMPI]
    assert examined(spack, monkeypatch, {"hpcc": beside})["executables"]


def test_mpi_that_is_not_installed_is_named(
    spack: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match="apps/other of spack-env"):
        examined(spack, monkeypatch, mpi="other")


def test_stack_that_is_only_solved_has_nothing_yet(
    spack: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    spack["apps/m"] = {**spack["apps/m"], "mpi": None, "packages": {}}
    stack = examined(spack, monkeypatch)
    assert (stack["version"], stack["executables"]) == ("unknown", [])
    assert "compiler" not in stack


def render(template: str, **values: Any) -> str:
    jinja = Environment(trim_blocks=True)
    to_json = functools.partial(json.dumps, default=list)  # of generators
    jinja.filters.update(to_json=to_json, bool=bool, combine=dict.__or__)
    text = (ROLES / template).read_text()
    return jinja.from_string(text).render(seatrial_system="x", **values)


def test_settings_are_rendered_from_what_was_installed(
    spack: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks = [examined(spack, monkeypatch)]
    del spack["apps/m"]["packages"]["seatrial-benchmarks"]
    stacks.append({**examined(spack, monkeypatch), "name": "t"})
    text = render(
        "suite/templates/settings.yml.j2",
        mpi_found={"stacks": stacks},
        seatrial_prefix="/x",
        node_classes=[],
        suite_description="x",
        suite_modules_system="lmod",
        suite_poll_rate_min=1,
        benchmarks_programs=["balance"],
        benchmarks_verbs_found={"s": ["winbw"], "t": ["mr_cost"]},
    )
    first, second = yaml.safe_load(text)["environments"]
    assert first["modules"] == ["seatrial-mpi/s"]
    assert first["features"] == ["mpi", "memlat", "mpair", "hpcc", "osu"]
    assert first["extras"] == {
        "srun_mpi": "pmix",
        "mpi": "m@5.0.10",
        "compiler": "gcc@12.2.0",
        "programs": ["hpcc", "osu_bw"],
    }
    assert second["modules"] == ["seatrial-benchmarks/t"]
    assert second["features"] == ["mpi", "balance", "mr_cost", "hpcc", "osu"]


def test_module_file_loads_those_of_spack(
    spack: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = render(
        "mpi/templates/modulefile.j2",
        item={**examined(spack, monkeypatch), "environment": {"A": "1"}},
    )
    assert re.findall("^module (?:use|load).*", text, re.MULTILINE) == [
        f"module use {{{tmp_path}/modules}}",
        *(f"module load {name}/1-m" for name in ("m", "hpcc", "osu-micro-benchmarks")),
        "module load seatrial-benchmarks/1-m",
    ]
    assert "setenv A {1}" in text


def test_system_names_commits_and_lock_files(
    spack: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {
        "mpi_found": {"stacks": [examined(spack, monkeypatch)]},
        "suite_description": "x",
        "seatrial_demonstration": False,
        "inventory_hostname": "head",
        "nodes_found": {"nodes": []},
        "__suite_slurm_version": "1",
        "__suite_pack": {"version": "1", "git_commit": None, "dirty": None},
    }
    template = "suite/templates/system.yml.j2"
    assert "spack" not in yaml.safe_load(render(template, **values))["software"]
    known = {"prefix": "/p", "specs": ["hpcc"], "jobs": 0}
    known |= {"commit": "a", "packages_commit": "b"}
    found = {**known, "environments": spack}
    software = yaml.safe_load(render(template, **values, spack_found=found))["software"]
    assert software["spack"] == {
        **known,
        "environments": [
            {"name": "apps/m", "lock": "spack-m.lock", "sha256": "0" * 64}
        ],
    }
    assert software["stacks"][0]["mpi"] == "m@5.0.10"
    assert software["stacks"][0]["compiler"] == "gcc@12.2.0"


def test_lock_files_are_those_of_the_environments(tmp_path: Path) -> None:
    names = {"apps/openmpi": "spack-openmpi.lock", "fabric": "spack-fabric.lock"}
    write(tmp_path, *names)
    found = {
        "environments": {
            name: {"lock": {"path": str(tmp_path / name)}} for name in names
        }
    }
    role = {"name": "suite", "tasks_from": "locks", "public": False}
    given: dict[str, dict[str, Any]] = {"x": {"spack_found": found}, "without": {}}
    plays = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "vars": {
                **{"seatrial_prefix": str(tmp_path), "seatrial_system": system},
                **variables,
            },
            "tasks": [{"ansible.builtin.include_role": role}],
        }
        for system, variables in given.items()
    ]
    etc = {system: tmp_path / "etc" / system for system in given}
    for folder in etc.values():
        write(folder, "spack-openmpi.lock", "spack-gone.lock", "settings.yaml")
    playbook = tmp_path / "locks.yml"
    playbook.write_text(yaml.safe_dump(plays))
    program = Path(sys.executable).with_name("ansible-playbook")
    python = f"ansible_python_interpreter={sys.executable}"
    done = run(program, "-e", python, playbook, ANSIBLE_ROLES_PATH=str(ROLES))
    assert done.returncode == 0, done.stdout
    kept = {system: {file.name for file in etc[system].iterdir()} for system in etc}
    assert kept == {
        "x": {*names.values(), "settings.yaml"},
        "without": {"settings.yaml"},
    }


# ---- The record


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose system was built by Spack, with its lock file."""
    folder = write_home(tmp_path / "home")
    file = folder / "etc" / "lab" / "system.json"
    described = json.loads(file.read_text())
    described["software"]["spack"] = {
        "commit": "a" * 40,
        "packages_commit": "b" * 40,
        "environments": [
            {"name": "apps/m", "lock": "spack-m.lock", "sha256": "0" * 64}
        ],
    }
    file.write_text(json.dumps(described))
    file.with_name("spack-m.lock").write_text("{}")
    return folder


def test_run_keeps_lock_files_and_names_them(home: Path, tmp_path: Path) -> None:
    system = load_system(home, "lab")
    order = Order(home, tmp_path / "r", system, load_campaign(home, "smoke"), "r1")
    path = run_campaign(order, Console(quiet=True))
    assert (path / "system" / "spack-m.lock").read_text() == "{}"
    manifest = load_run(path).manifest
    assert manifest["software"]["spack"] == system.software["spack"]
    assert "system/spack-m.lock" in manifest["checksums"]


def test_lock_file_that_is_missing_is_named(home: Path) -> None:
    (home / "etc" / "lab" / "spack-m.lock").unlink()
    with pytest.raises(SeatrialError, match=r"spack-m\.lock: missing: .*site\.yml"):
        load_system(home, "lab")


def test_report_names_what_spack_solved(home: Path) -> None:
    taken = sample_run()
    taken.manifest["software"] = {"stacks": [], **load_system(home, "lab").software}
    tables = dict(configuration(taken).tables)
    said = [words for row in tables["Software"].rows for words in row]
    assert f"{'a' * 12}, recipes {'b' * 12}" in said
    assert f"system/spack-m.lock, sha256 {'0' * 12}" in said
