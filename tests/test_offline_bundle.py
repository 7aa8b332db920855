"""`seatrial bundle`: one folder from which a system is installed without internet."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from archive_samples import digest, list_sums, write_archive
from click.testing import CliRunner, Result
from fake_home import fake_program, write
from test_role_scripts import ROLES, load
from test_suite_python import make_wheel

from seatrial.cli import main
from seatrial.system.playbooks import problems

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
SUITE = ROLES / "suite" / "files"
INSTALL = ROOT / "src/seatrial/system/bundle/install.sh"
HERE = f"{sys.version_info.major}.{sys.version_info.minor}-{platform.machine()}"

# A stand-in for playbooks/bundle.yml, without internet.
PLAYBOOK = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {{ ansible_python_interpreter: "{python}" }}
  tasks:
    - ansible.builtin.shell: |
        mkdir -p build/archives build/spack/connected ../control
        echo wheels >../control/python-3.11-x86_64.tar
        echo archive >build/archives/osu-micro-benchmarks-9.tar.gz
        echo again >build/spack/spack.tar
        {command}
      args: {{ chdir: "{{{{ playbook_dir }}}}/.." }}
"""


def git(home: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    command = ["git", "-C", str(home), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A git checkout with the systems `sea` and `other`."""
    home = tmp_path / "home"
    write(home / "reframe-checks" / "checks" / "x.py", "")
    write(home / "reference-data" / "sea" / "criteria.yaml", "")
    write(home / "reference-data" / "other" / "criteria.yaml", "secret")
    for name in ("sea", "other"):
        hosts = {"login": {"hosts": {"head": {"seatrial_system": name}}}}
        write(home / "inventories" / name / "hosts.yml", yaml.safe_dump(hosts))
    write_playbook(home, "true")
    write(home / ".gitignore", "/build/\n")
    git(home, "init", "--quiet")
    git(home, "add", ".")
    git(home, "commit", "--quiet", "--message", "all")
    return home


def write_playbook(home: Path, command: str) -> None:
    """Write the stand-in for bundle.yml, which ends with a command."""
    text = PLAYBOOK.format(python=sys.executable, command=command)
    write(home / "playbooks" / "bundle.yml", text)


def bundle(home: Path, *arguments: str) -> Result:
    runner = CliRunner(env={"SEATRIAL_HOME": str(home)})
    return runner.invoke(main, ["bundle", *arguments])


def sums(folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )


# ---- The folder


def test_bundle_has_checkout_contents_variables_and_sums(home: Path) -> None:
    write(home / "inventories" / "sea" / "new.yml", "{}")  # git would add it
    done = bundle(home, "sea")
    assert done.exit_code == 0, done.output
    folder = home / "build" / "bundle-sea"
    checkout = folder / "seatrial"
    assert (checkout / "inventories" / "sea" / "new.yml").exists()
    assert [*checkout.rglob("other")] == []
    assert not (checkout / ".git").exists()
    assert [*checkout.glob("build/spack/*")] == []
    variables = yaml.safe_load((checkout / "playbooks/group_vars/all.yml").read_text())
    commit = git(home, "rev-parse", "--short=12", "HEAD").strip()
    assert variables["suite_commit"] == {"git_commit": commit, "dirty": True}
    checked = sums(folder).stdout
    assert "control/python-3.11-x86_64.tar: OK" in checked
    assert "seatrial/playbooks/group_vars/all.yml: OK" in checked
    assert "seatrial/build/archives/SHA256SUMS: OK" in checked
    assert "inventories" not in checked
    assert "reference-data" not in checked
    assert sums(checkout / "build" / "archives").returncode == 0
    readme = (folder / "README.md").read_text()
    assert len(re.findall(r"^    \S", readme, re.MULTILINE)) == 3
    assert "Pythons: 3.11 (x86_64)." in readme


@pytest.mark.slow
def test_bundle_inside_the_checkout_does_not_contain_itself(home: Path) -> None:
    done = bundle(home, "sea", "--out", str(home / "usb"))
    assert done.exit_code == 0, done.output
    assert not (home / "usb" / "seatrial" / "usb.part").exists()


@pytest.mark.slow
def test_interrupted_bundle_continues(home: Path) -> None:
    write_playbook(home, "echo kept >build/kept; false")
    done = bundle(home, "sea")
    assert done.exit_code == 2
    assert "playbooks/bundle.yml failed on system sea" in done.output
    write_playbook(home, "test -e build/kept")
    (home / "reframe-checks" / "checks" / "x.py").rename(home / "reframe-checks/y.py")
    done = bundle(home, "sea")
    assert done.exit_code == 0, done.output
    folder = home / "build" / "bundle-sea"
    assert not (folder / "seatrial" / "reframe-checks" / "checks").exists()
    assert not folder.with_name("bundle-sea.part").exists()


def test_bad_input_is_one_sentence(home: Path, tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        done = bundle(home, *arguments)
        assert done.exit_code == 2
        assert not [*tmp_path.rglob("*.part")]
        return done.output

    assert "unknown system 'lake'; known systems: " in refused("lake")
    assert "exists; expected a new folder; remove it" in refused(
        "sea", "--out", str(home)
    )
    assert "expected a folder that you can write to" in refused(
        "sea", "--out", str(tmp_path / "no" / "such")
    )
    write(home / "inventories" / "sea" / "group_vars" / "all.yml", "")
    hosts = {"login": {"hosts": {"head": {"seatrial_system": "sample"}}}}
    write(home / "inventories" / "sea" / "hosts.yml", yaml.safe_dump(hosts))
    assert "seatrial_system: expected 'sea', got 'sample'" in refused("sea")
    write(home / "inventories" / "sea" / "hosts.yml", "{}")
    assert "no login node found" in refused("sea")
    shutil.rmtree(home / ".git")
    assert "expected a git checkout of the suite" in refused("sea")


# ---- Facts of the system


def run_playbook(
    name: str, folder: Path, *options: str, **variables: object
) -> subprocess.CompletedProcess[str]:
    """Run a playbook with a login node that nothing listens for."""
    host = {"ansible_host": "127.0.0.1", "ansible_port": 9}
    common = {"seatrial_system": "x", "seatrial_prefix": "/x", "mpi_stacks": []}
    inventory = folder / "inventory" / "hosts.yml"
    login = {"children": {"login": {"hosts": {"head": host}}}}
    write(inventory, yaml.safe_dump({"all": {**login, "vars": common | variables}}))
    command = [str(BIN / "ansible-playbook"), "-i", str(inventory), *options]
    return subprocess.run(
        [*command, f"playbooks/{name}.yml"],
        cwd=ROOT,
        env={**os.environ, "SEATRIAL_ARCHIVES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_unreachable_system_must_be_stated(tmp_path: Path) -> None:
    done = run_playbook("bundle", tmp_path)
    assert done.returncode != 0
    (sentence,) = problems(done.stdout.splitlines())
    assert sentence.startswith("head: Failed to connect to the host via ssh: ssh: ")
    assert "Connection refused; repair the connection, or, for a bundle," in sentence


@pytest.mark.parametrize(
    ("stated", "printed", "error"),
    [
        ("", HERE.split("-")[0], ""),
        ("3.99", "", "the inventory states 3.99, "),
    ],
)
def test_stated_version_is_that_of_the_system(
    stated: str, printed: str, error: str
) -> None:
    text = (SUITE / "platforms.py").read_text()
    command = ["bash", str(SUITE / "python.sh"), sys.executable, stated, text]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.partition("\n")[0] == printed
    assert error in done.stderr
    assert done.returncode == bool(error)


def test_platforms_of_a_system_without_the_suites_python(tmp_path: Path) -> None:
    text = (SUITE / "platforms.py").read_text()
    command = ["bash", str(SUITE / "python.sh"), "bundled", "", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"manylinux2014_{platform.machine()}" in done.stdout.split()
    fake_program(tmp_path, "python3", "exit 1")
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "state suite_wheel_platforms" in done.stderr


def test_earlier_glibc_follows_a_single_platform(tmp_path: Path) -> None:
    expand = load("suite/files/platforms.py").expand
    assert expand("manylinux_2_18_aarch64") == [
        "manylinux_2_18_aarch64",
        "manylinux_2_17_aarch64",
        "manylinux2014_aarch64",
    ]
    assert expand("macosx_14_0_arm64") == ["macosx_14_0_arm64"]
    wheel = make_wheel(tmp_path / "index", "cp312-cp312-manylinux_2_28_x86_64")
    done = wheels(tmp_path, "manylinux_2_34_x86_64")
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "wheels.tar") as archive:
        assert f"wheels/{wheel.name}" in archive.getnames()


def wheels(
    folder: Path, platforms: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(SUITE / "wheels.sh"), str(folder / "wheels.tar")]
    command += [sys.executable, "3.12", platforms]
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "index")}
    return subprocess.run(
        [*command, str(folder / "index" / "requirements.txt")],
        env={**os.environ, **index, "PIP_CONFIG_FILE": os.devnull, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_bundle_fetches_no_wheels(tmp_path: Path) -> None:
    make_wheel(tmp_path / "index", "py3-none-any")
    done = wheels(tmp_path, "manylinux_2_34_x86_64", SEATRIAL_BUNDLE=str(tmp_path))
    assert done.returncode == 1
    assert "the bundle has no wheels for Python 3.12 on manylinux_2_34" in done.stderr
    assert not (tmp_path / "wheels.tar").exists()


# ---- A relocatable Python


def find_python(folder: Path, machine: str) -> subprocess.CompletedProcess[str]:
    script = ROLES / "mpi" / "files" / "find_archives.py"
    command = [sys.executable, str(script), str(SUITE / "python.yml")]
    command += [str(folder / "kept"), str(folder), machine]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_relocatable_python_of_the_user_is_taken(machine: str, tmp_path: Path) -> None:
    pins = yaml.safe_load((SUITE / "python.yml").read_text())
    release = pins[machine]["url"].rpartition("/")[2].replace("%2B", "+")
    assert re.fullmatch(pins[machine]["names"], release)
    assert re.fullmatch("[0-9a-f]{64}", pins[machine]["sha256"])
    name = f"cpython-3.13.2+20990101-{machine}-unknown-linux-gnu-install_only.tar.gz"
    archive = write_archive(tmp_path / name, {"bin/python3": ""})
    done = find_python(tmp_path, machine)
    assert done.returncode == 1
    assert f"{name}: expected the SHA-256 {pins[machine]['sha256']}" in done.stderr
    list_sums(tmp_path)
    (item,) = json.loads(find_python(tmp_path, machine).stdout)
    assert item["version"] == "3.13.2"
    assert (item["origin"], item["sha256"]) == ("user", digest(archive))


def test_processor_without_a_relocatable_python_is_named(tmp_path: Path) -> None:
    stated = {
        "suite_python": "bundled",
        "suite_wheel_platforms": ["manylinux2014_s390x"],
    }
    done = run_playbook("bundle", tmp_path, **stated)
    assert done.returncode != 0
    text = " ".join((done.stdout + done.stderr).split())
    assert "expected a processor x86_64 or aarch64, found s390x; install" in text


# ---- The folder at its site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A bundle whose only wheels are for no Python."""
    folder = tmp_path / "site"
    folder.mkdir()
    shutil.copy(INSTALL, folder)
    write(folder / "control" / "python-3.99-riscv64.tar", "")
    write_sums(folder)
    return folder


def write_sums(folder: Path) -> None:
    names = ("install.sh", "control/python-3.99-riscv64.tar")
    lines = [f"{digest(folder / name)}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(lines))


def install(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(site / "install.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_changed_file_is_refused_at_the_site(site: Path, tmp_path: Path) -> None:
    (site / "control" / "python-3.99-riscv64.tar").write_text("x")
    done = install(site)
    assert done.returncode == 2
    changed = "control/python-3.99-riscv64.tar: FAILED"
    assert done.stderr == f"{site}: {changed}; copy the folder again\n"
    done = run_playbook("site", tmp_path, "-e", f"suite_bundle={site}")
    assert done.returncode != 0
    assert f"{site}: {changed}" in " ".join((done.stdout + done.stderr).split())
    write_sums(site)
    done = run_playbook("site", tmp_path, "-e", f"suite_bundle={site}")
    assert "FAILED; copy" not in done.stdout
    assert "TASK [There is a login node]" in done.stdout


@pytest.mark.parametrize("python", ["", sys.executable])
def test_control_machine_without_a_python_of_the_bundle(
    python: str, site: Path
) -> None:
    done = install(site, *([python] if python else []))
    assert done.returncode == 2
    assert done.stderr.startswith(f"{site}: no Python here has wheels in control/ (")
    assert "expected one of 3.99-riscv64; install it, or make" in done.stderr
