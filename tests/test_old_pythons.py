"""Code that a system's own Python runs: modules of Ansible, steps of Spack."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.checks import mpi_start
from seatrial.paths import suite_python

HOME = Path(__file__).parents[1]
ROLES = HOME / "playbooks" / "roles"


def interpreter(version: str) -> str:
    """Return a Python of pyenv or on PATH; skip the test without one."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    on_path = shutil.which(f"python{version}")
    for program in [*map(str, pyenv), *([on_path] if on_path else [])]:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([program, "-c", code], capture_output=True, text=True)
        if done.stdout.strip() == version:
            return program
    pytest.skip(f"needs Python {version}")


@pytest.fixture(
    params=["3.8", *(pytest.param(n, marks=pytest.mark.slow) for n in ("3.9", "3.12"))]
)
def login_python(request: pytest.FixtureRequest) -> str:
    return interpreter(str(request.param))


def module(
    python: str, name: str, **arguments: object
) -> subprocess.CompletedProcess[str]:
    """Run a module of a role by a Python of the login node, as Ansible does."""
    folders = [path for path in ROLES.glob("*/library") if path.parent.name != "lab"]
    shared = ROLES.glob("*/module_utils")
    environment = {
        **os.environ,
        "ANSIBLE_LIBRARY": ":".join(map(str, folders)),
        "ANSIBLE_MODULE_UTILS": ":".join(map(str, shared)),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "ANSIBLE_LOAD_CALLBACK_PLUGINS": "1",
        "ANSIBLE_STDOUT_CALLBACK": "minimal",
    }
    program = str(Path(sys.executable).with_name("ansible"))
    command = [program, "localhost", "-i", "localhost,", "-c", "local", "-m", name]
    command += ["-e", f"ansible_python_interpreter={python}"]
    command += ["-a", json.dumps(arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )


def test_links_are_made_once_and_then_kept(login_python: str, tmp_path: Path) -> None:
    link = {"path": "osu_latency", "target": "/opt/osu_latency"}
    stacks = [{"name": "openmpi", "links": [link]}]
    for state in ("CHANGED", "SUCCESS"):
        done = module(login_python, "mpi_links", folder=str(tmp_path), stacks=stacks)
        assert f"localhost | {state}" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "openmpi" / "osu_latency").readlink() == Path(link["target"])


def test_stacks_are_examined(login_python: str, tmp_path: Path) -> None:
    stacks = [{"name": "s", "provider": "distribution", "compiler": "mpicc.none"}]
    done = module(
        login_python, "mpi_stack_info", folder=str(tmp_path), wheels={}, stacks=stacks
    )
    assert "no compiler wrapper mpicc.none on PATH" in done.stdout, done.stdout


def test_classes_are_examined(login_python: str) -> None:
    done = module(login_python, "node_classes_info", classes=[], script="true")
    assert '"problems"' in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["describe", "missing"])
def test_steps_of_spack_are_read_by_the_python_of_rhel_8(
    name: str, tmp_path: Path
) -> None:
    for package in ("caches", "environment", "mirrors/mirror", "modules", "util/url"):
        file = tmp_path / "spack" / f"{package}.py"
        for folder in {file.parent, tmp_path / "spack"}:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
        file.touch()
    code = f"import {name}"
    paths = f"{ROLES / 'spack' / 'files'}:{tmp_path}"
    done = subprocess.run(
        [interpreter("3.6"), "-B", "-c", code],
        env={"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_jobs_run_the_suite_by_the_python_of_the_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("reframe-checks", "reference-data", "venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    assert suite_python(tmp_path) == sys.executable
    python = tmp_path / "venv" / "bin" / "python"
    python.touch()
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path))
    mpi_start.write_script(tmp_path, "preamble", "results")
    assert f"{python} -I -m seatrial" in (tmp_path / mpi_start.SCRIPT).read_text()


def test_the_nightly_agent_runs_by_the_python_of_rhel_9(tmp_path: Path) -> None:
    program = ROLES / "nightly_agent" / "files" / "seatrial-nightly-agent"
    done = subprocess.run(
        [interpreter("3.9"), "-I", str(program), str(tmp_path / "none")],
        capture_output=True,
        text=True,
    )
    assert done.stderr.startswith("nothing is done: [Errno 2]"), done.stderr
