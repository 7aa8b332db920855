"""The scripts that roles of playbooks/site.yml run, away from Ansible."""

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROLES = Path(__file__).parents[1] / "playbooks" / "roles"


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROLES / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_wheel_is_packed_with_links_for_equal_files_and_ends_with_a_mark() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for name, mode in (("lib/a.so.1", 0o644), ("lib/a.so", 0o644), ("x", 0o644)):
            info = zipfile.ZipInfo(f"w.data/data/{name}")
            info.external_attr = mode << 16
            wheel.writestr(info, "other" if name == "x" else "library")
        program = zipfile.ZipInfo("w.data/data/bin/run")
        program.external_attr = 0o755 << 16
        wheel.writestr(program, "#!/bin/sh")
    packed = io.BytesIO()
    pattern = re.compile(r"[^/]+\.data/data/((?:lib|bin)/.*)")
    with (
        zipfile.ZipFile(buffer) as source,
        tarfile.open(fileobj=packed, mode="w") as out,
    ):
        load("mpi/files/pack_wheel.py").pick(source, out, "w-1", pattern)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        found = [(m.name, m.linkname, m.mode) for m in archive.getmembers()]
    assert found == [
        ("w-1/lib/a.so.1", "", 0o644),
        ("w-1/lib/a.so", "w-1/lib/a.so.1", 0o644),
        ("w-1/bin/run", "", 0o755),
        ("w-1/.complete", "", 0o644),
    ]


@pytest.mark.parametrize(
    ("stack", "problem"),
    [
        ({"provider": "distribution"}, "needs `compiler`"),
        (
            {"provider": "distribution", "compiler": "mpicc.none", "package": "x-dev"},
            "no compiler wrapper mpicc.none on PATH; install x-dev",
        ),
        ({"provider": "wheels", "wheel": "w", "programs": {"imb": "none"}}, "none"),
        (
            {"provider": "wheels", "wheel": "w", "programs": {"imb": "sh"}},
            "uses no MPI library, expected the stack's own",
        ),
    ],
)
def test_mpi_stack_says_what_is_wrong(
    stack: dict[str, object], problem: str, tmp_path: Path
) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpi.so.1").touch()
    wheels = {"w": {"version": "1", "folder": str(tmp_path)}}
    with pytest.raises(info.ProblemError, match=problem):
        info.examine({"name": "s", **stack}, str(tmp_path), wheels)


def test_mpi_stack_finds_compiler_and_names_a_renamed_program(tmp_path: Path) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    compiler = tmp_path / "mpicc"
    compiler.write_text(
        '#!/bin/sh\ncase $1 in --showme:version) echo "mpicc: Some MPI 5.0.1";;\n'
        "-o) echo 'int main(void){return 0;}' | cc -x c -o $2 -;; esac\n"
    )
    program = tmp_path / "lmp_mpi"
    program.write_bytes(Path(sys.executable).resolve().read_bytes())
    for file in (compiler, program):
        file.chmod(0o755)
    stack: dict[str, Any] = {
        "name": "s",
        "provider": "distribution",
        "compiler": str(compiler),
        "programs": {"lammps": str(program)},
    }
    info.examine(stack, "/prefix/mpi", {})
    assert stack["version"] == "5.0.1"
    assert stack["programs"] == {"lammps": str(program)}
    assert stack["links"] == [
        {"path": "/prefix/mpi/links/s/lmp", "target": str(program)}
    ]
    assert stack["paths"] == ["/prefix/mpi/links/s", str(tmp_path)]


def test_suite_is_packed_without_what_running_leaves(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in (
        "checks/a.py",
        "checks/__pycache__/a.pyc",
        "checks/.hidden",
        "reports/out/r.html",
        "reports/r.j2",
        "src/p/__init__.py",
        "src/p.egg-info/SOURCES.txt",
        "README.md",
    ):
        file = checkout / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (checkout / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\n'
        'build-backend = "setuptools.build_meta"\n'
        '[project]\nname = "seatrial"\nversion = "7.0"\n'
        '[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    )
    first, again = pack(checkout, tmp_path), pack(checkout, tmp_path)
    assert first == again
    assert first["version"] == "7.0"
    assert (first["git_commit"], first["dirty"]) == (None, None)
    wheel = "dist/seatrial-7.0-py3-none-any.whl"
    assert first["wheel"] == wheel
    assert sorted(first["paths"]) == [
        "checks",
        "checks/a.py",
        wheel,
        "reports",
        "reports/r.j2",
    ]
    (checkout / "src/p/__init__.py").write_text("x = 1\n")
    assert pack(checkout, tmp_path)["key"] != first["key"]


def pack(checkout: Path, folder: Path) -> dict[str, Any]:
    script = ROLES / "suite/files/pack.py"
    command = [sys.executable, str(script), str(checkout), str(folder / "out")]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)}
    text = subprocess.check_output([*command, "checks", "reports"], env=environment)
    result: dict[str, Any] = json.loads(text)
    return result
