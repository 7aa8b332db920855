"""Python of a system: its wheels, and the trial on compute nodes."""

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from fake_home import fake_program
from test_role_scripts import ROLES, load

FILES = ROLES / "suite" / "files"
PLATFORMS = load("suite/files/platforms.py")


@pytest.mark.parametrize(
    ("machine", "glibc", "first", "last"),
    [
        ("x86_64", 34, "manylinux_2_34_x86_64", "manylinux1_x86_64"),
        ("aarch64", 28, "manylinux_2_28_aarch64", "manylinux2014_aarch64"),
        ("ppc64le", 17, "manylinux_2_17_ppc64le", "manylinux2014_ppc64le"),
    ],
)
def test_platforms_start_with_the_glibc_of_the_system(
    machine: str, glibc: int, first: str, last: str
) -> None:
    names = PLATFORMS.platforms(machine, glibc)
    assert (names[0], names[-1]) == (first, last)
    assert f"manylinux_2_{glibc + 1}_{machine}" not in names


def test_pip_of_this_machine_has_the_same_platforms() -> None:
    done = subprocess.run(
        [sys.executable, "-c", (FILES / "platforms.py").read_text()],
        capture_output=True,
        text=True,
        check=True,
    )
    version, *platforms = done.stdout.split()
    assert version == f"{sys.version_info.major}.{sys.version_info.minor}"
    show = [sys.executable, "-m", "pip", "debug", "--verbose"]
    tags = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    known = {tag.strip().split("-")[-1] for tag in tags.splitlines() if "-many" in tag}
    assert known == set(platforms)


@pytest.mark.parametrize("library", ["", "glibc 3.0", "musl 1.2"])
def test_system_without_glibc_is_refused(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "confstr", lambda _name: library)
    with pytest.raises(SystemExit, match="wheels need glibc 2, found"):
        PLATFORMS.glibc_minor()


def make_wheel(folder: Path, tag: str) -> Path:
    """Write a wheel without files, and a requirements file that pins it."""
    folder.mkdir()
    file = folder / f"demo-1.0-{tag}.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("demo-1.0.dist-info/METADATA", "Name: demo\nVersion: 1.0\n")
        text = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n"
        wheel.writestr("demo-1.0.dist-info/WHEEL", text)
        wheel.writestr("demo-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (folder / "requirements.txt").write_text(f"demo==1.0 --hash=sha256:{digest}\n")
    return file


def download(
    folder: Path, python: str, version: str, platforms: list[str]
) -> subprocess.CompletedProcess[str]:
    """Run wheels.sh with the wheels of a folder as the only index."""
    command = ["bash", str(FILES / "wheels.sh"), str(folder / "wheels.tar"), python]
    command += [version, " ".join(platforms), str(folder / "requirements.txt")]
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
    environment = {**os.environ, **index, "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )


def test_wheel_of_another_python_and_processor_is_packed(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    wheel = make_wheel(folder, "cp313-cp313-manylinux_2_28_riscv64")
    platforms = PLATFORMS.platforms("riscv64", 39)
    done = download(folder, sys.executable, "3.13", platforms)
    assert (done.returncode, done.stderr) == (0, "")
    with tarfile.open(folder / "wheels.tar") as archive:
        assert f"wheels/{wheel.name}" in archive.getnames()


@pytest.mark.parametrize(
    ("version", "glibc", "problem"),
    [
        ("3.13", 27, "Python 3.13 on manylinux_2_27_aarch64 or older"),
        ("3.12", 28, "Python 3.12 on manylinux_2_28_aarch64 or older"),
    ],
)
def test_missing_wheel_is_named(
    version: str, glibc: int, problem: str, tmp_path: Path
) -> None:
    folder = tmp_path / "index"
    make_wheel(folder, "cp313-cp313-manylinux_2_28_aarch64")
    platforms = PLATFORMS.platforms("aarch64", glibc)
    done = download(folder, sys.executable, version, platforms)
    assert done.returncode == 1
    assert f"no wheel of demo==1.0 for {problem}; choose another Python" in done.stderr
    assert sorted(file.name for file in folder.glob("wheels*")) == []


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("WARNING: Retrying (Retry(total=0)) after connection broken", "no connection"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "DO NOT MATCH THE HASHES"),
    ],
)
def test_other_failures_of_pip_are_shown(
    printed: str, message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "index"
    make_wheel(folder, "py3-none-any")
    fake_program(tmp_path, "python", f"echo '{printed}' >&2; exit 1")
    done = download(folder, str(tmp_path / "python"), "3.12", [])
    assert done.returncode == 1
    assert message in done.stderr


def try_python(
    folder: Path, srun: str, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run try_python.sh with a stand-in for srun, which keeps its arguments."""
    fake_program(folder, "srun", f'echo "$@" >{folder}/arguments\n{srun}')
    fake_program(folder, "python", "echo 'python: bad ELF interpreter' >&2; exit 126")
    python = str(folder / "python")
    command = ["bash", str(FILES / "try_python.sh"), python, str(folder / "stamp")]
    return subprocess.run(
        [*command, "cpu", *options],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


NODE = 'while [ "$1" != sh ]; do shift; done; SLURMD_NODENAME=cn07 exec "$@"'


def test_python_of_the_suite_is_tried_on_a_node(tmp_path: Path) -> None:
    python = f"""echo 'exec {sys.executable} "$@"' >{tmp_path}/python\n"""
    done = try_python(tmp_path, python + NODE, "--partition=fat", "--account=a")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "stamp").exists()
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("--partition=fat --account=a --nodes=1")


def test_python_that_does_not_run_on_a_node_has_a_remedy(tmp_path: Path) -> None:
    done = try_python(tmp_path, NODE)
    assert done.returncode == 1
    assert "does not run on cn07: python: bad ELF interpreter; " in done.stderr
    assert "install suite_python on all nodes" in done.stderr
    assert not (tmp_path / "stamp").exists()


def test_class_without_a_free_node_is_tried_later(tmp_path: Path) -> None:
    done = try_python(tmp_path, "echo 'srun: error: Unable to allocate' >&2; exit 1")
    assert done.returncode == 0
    assert "class cpu: no node within 60 s (srun: error: Unable" in done.stdout
    assert not (tmp_path / "stamp").exists()
