"""The role spack, without Spack; what other roles take: test_spack_stack.py."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_playbooks import SAMPLE, validate
from test_role_scripts import ROLES

HOME = ROLES.parents[1]
FILES = ROLES / "spack" / "files"


def run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(each) for each in command],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_python_packages_are_those_of_the_pins() -> None:
    pins = yaml.safe_load((HOME / "spack-env/pins.yaml").read_text())["pypi"]
    text = (FILES / "python.txt").read_text()
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", text, re.MULTILINE))
    assert {name: locked[name] for name in pins} == pins
    assert text.count("--hash=sha256:") >= len(locked)


# ---- spack-env and our own sources


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_environments_are_packed_without_what_spack_writes(tmp_path: Path) -> None:
    source, target = tmp_path / "spack-env", tmp_path / "b" / "spack-env.tar"
    wanted = ["apps/m/spack.yaml", "common/modules.yaml"]
    write(source, *wanted, "README.md", ".gitignore")
    write(source, "apps/m/spack.lock", "apps/m/modules/hpcc/1")
    write(source, "apps/m/.spack-env/view/bin/hpcc", "repo/__pycache__/a.pyc")
    first = run("bash", FILES / "pack_env.sh", source, target)
    assert first.returncode == 0, first.stderr
    with tarfile.open(target) as packed:
        names = [each.name for each in packed.getmembers() if each.isfile()]
    assert sorted(names) == [f"./{name}" for name in wanted]
    (source / wanted[0]).touch()
    assert run("bash", FILES / "pack_env.sh", source, target).stdout == first.stdout


def unpack(prefix: Path, name: str, content: Path) -> subprocess.CompletedProcess[str]:
    with tarfile.open(prefix / f"{name}.tar", "w") as packed:
        packed.add(content, ".")
    stamp = prefix / name / ".from-key"
    done = run("bash", FILES / "unpack.sh", prefix, name, stamp)
    assert done.returncode == 0, done.stderr
    assert stamp.exists()
    return done


def test_archive_replaces_what_was_there(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    write(prefix, "spack/old", "spack.new/left-by-an-interrupted-run")
    write(tmp_path / "content", "bin/spack", "LICENSE")
    unpack(prefix, "spack", tmp_path / "content")
    assert [path.name for path in prefix.iterdir()] == ["spack"]
    found = {path.name for path in (prefix / "spack").iterdir()}
    assert found == {"bin", "LICENSE", ".from-key"}


def test_environments_keep_what_spack_has_written(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    kept = ["apps/m/spack.lock", "apps/m/modules/hpcc/1", "apps/m/.spack-env/installed"]
    write(prefix / "spack-env", *kept, "apps/gone/spack.yaml", ".from-old")
    write(tmp_path / "content", "apps/m/spack.yaml")
    unpack(prefix, "spack-env", tmp_path / "content")
    folder = prefix / "spack-env"
    found = {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
    assert found == {*kept, "apps/m/spack.yaml", ".from-key"}


def test_our_own_tarball_is_where_spack_finds_it(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    recipe = (
        "spack-env/repo/spack_repo/seatrial/packages/seatrial_benchmarks/package.py"
    )
    write(checkout, "benchmarks/main.c", "LICENSE", recipe)
    (checkout / "pyproject.toml").write_text('[project]\nversion = "7.0"\n')
    (checkout / "tools").symlink_to(HOME / "tools")
    run("git", "-C", checkout, "init", "--quiet")
    command = [sys.executable, FILES / "own_source.py", checkout, tmp_path / "mirror"]
    refused = run(*command)
    assert refused.returncode == 1
    found = re.search("sha256 ([0-9a-f]{64}), which spack-env/", refused.stderr)
    assert found and refused.stderr.endswith("run `make dist` there\n")
    (checkout / recipe).write_text(f'version("7.0", sha256="{found[1]}")')
    done = run(*command)
    file = Path(done.stdout.strip())
    place = f"_source-cache/archive/{found[1][:2]}/{found[1]}.tar.gz"
    assert file == tmp_path / "mirror" / place
    assert hashlib.sha256(file.read_bytes()).hexdigest() == found[1]
    assert run(*command).stdout == ""


def test_our_own_tarball_of_a_checkout_without_git(tmp_path: Path) -> None:
    """The checkout of a bundle: its files are not packed, whatever lies there."""
    checkout = tmp_path / "checkout"
    recipe = (
        "spack-env/repo/spack_repo/seatrial/packages/seatrial_benchmarks/package.py"
    )
    write(checkout, "benchmarks/main.c", "LICENSE", recipe)
    (checkout / recipe).write_text(f'version("7.0", sha256="{"ab" * 32}")')
    (checkout / "tools").symlink_to(HOME / "tools")
    command = [sys.executable, FILES / "own_source.py", checkout, tmp_path / "mirror"]
    refused = run(*command)
    assert refused.returncode == 1
    assert "lacks the tarball of seatrial-benchmarks" in refused.stderr
    assert refused.stderr.endswith("make the bundle again\n")
    write(tmp_path / "mirror/_source-cache/archive/ab", f"{'ab' * 32}.tar.gz")
    done = run(*command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ---- Steps on the system, with a program in place of Spack

SPACK = """#!/bin/bash
echo "$*" >>"$CALLS"
if [[ "$* " == *" $FAIL "* ]]; then
    echo "==> Error: $SAYS"
    exit 1
fi
case $* in
*concretize*) touch apps/m/spack.lock ;;
*describe.py) echo '{}' ;;
*missing.py*) echo "$LACKS" ;;
esac
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    folder = tmp_path / "prefix"
    write(folder, "spack-env/apps/m/spack.yaml")
    write(tmp_path / "bin", "spack")
    (tmp_path / "bin/spack").write_text(SPACK)
    (tmp_path / "bin/spack").chmod(0o755)
    (folder / "activate.sh").write_text(f"PATH={tmp_path}/bin:$PATH\n")
    return folder


def install(
    prefix: Path,
    *packages: str,
    key: str = "key",
    flags: str = "true true",
    **more: str,
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run install.sh, and give what it did with Spack."""
    calls = prefix / "calls"
    calls.unlink(missing_ok=True)
    stamp = prefix / f"spack-env/apps/m/.spack-env/installed-{key}"
    command = ["bash", FILES / "install.sh", prefix, "apps/m", key, stamp, "0"]
    variables = {"CALLS": str(calls), "FAIL": "-", "SAYS": "", "LACKS": "", **more}
    done = run(*command, *flags.split(), *packages, **variables)
    assert stamp.exists() is (done.returncode == 0)
    lines = calls.read_text().splitlines()
    return done, [re.sub(r"^(--color=never )?-e apps/m ", "", line) for line in lines]


def test_environment_is_solved_installed_and_pushed(prefix: Path) -> None:
    done, calls = install(prefix, "hpcc", "m")
    assert done.returncode == 0, done.stderr
    steps = f"{prefix}/steps"
    after = [
        "install hpcc m",
        "module tcl refresh -y --delete-tree",
        "buildcache push --update-index cache hpcc m",
        f"python {steps}/describe.py",
    ]
    assert calls == ["concretize --force", after[-1], *after]
    assert install(prefix, "hpcc", "m")[1] == after, "solved already"
    assert "concretize --force" in install(prefix, key="new")[1]
    assert install(prefix, key="new", flags="true false")[1] == [
        "install",
        after[1],
        after[3],
    ]


def test_environment_is_solved_only_if_so_asked(prefix: Path) -> None:
    done, calls = install(prefix, "hpcc", "m", flags="false true")
    assert done.returncode == 0, done.stderr
    assert calls == ["concretize --force", f"python {prefix}/steps/describe.py"]


def test_interrupted_install_goes_on_without_solving_again(prefix: Path) -> None:
    done, calls = install(prefix, FAIL="install", SAYS="killed")
    assert done.returncode == 1
    describe = f"python {prefix}/steps/describe.py"
    missing = f"python {prefix}/steps/missing.py {prefix}/mirror"
    assert calls == ["concretize --force", describe, "install", missing]
    done, calls = install(prefix)
    assert done.returncode == 0
    assert calls[0] == "install"


@pytest.mark.parametrize(
    ("lacks", "shown"),
    [
        ("", []),
        (
            "hpcc 1.5.0: URL (SHA); put it at PLACE",
            [
                "sources that are in no mirror:",
                "hpcc 1.5.0: URL (SHA); put it at PLACE",
            ],
        ),
    ],
)
def test_failure_names_the_log_and_missing_sources(
    lacks: str, shown: list[str], prefix: Path
) -> None:
    done, _ = install(prefix, "hpcc", "m", FAIL="install", SAYS="no way", LACKS=lacks)
    assert done.stderr.splitlines() == [
        f"spack -e apps/m install hpcc m failed; all of it is in {prefix}/log/m.log:",
        "==> Error: no way",
        *shown,
    ]


@pytest.mark.parametrize(
    ("packages", "options"),
    [([], "--all"), (["hpcc", "m"], "--dependencies hpcc m")],
)
def test_mirror_has_what_is_installed(
    packages: list[str], options: str, prefix: Path
) -> None:
    calls, mirror = prefix / "calls", prefix / "mirror"
    mirror.mkdir()
    variables = {"CALLS": str(calls), "FAIL": "-", "SAYS": ""}
    command = ["bash", FILES / "mirror.sh", prefix, mirror, "apps/m", *packages]
    done = run(*command, **variables)
    assert done.returncode == 0, done.stderr
    assert (
        calls.read_text()
        .splitlines()[-1]
        .endswith(f"-e apps/m mirror create --directory {mirror} {options}")
    )


def test_failure_names_keys_that_are_not_trusted(prefix: Path) -> None:
    said = "no way\n" + "".join(
        f"gpg:                using RSA key {key}\n{result}\n"
        for key, result in [
            ("AB12", "gpg: Can't check signature: No public key"),
            ("AB12", "gpg: Can't check signature: No public key"),
            ("CD34", 'gpg: Good signature from "us"'),
        ]
    )
    done, _ = install(prefix, FAIL="install", SAYS=said)
    refused, *keys = done.stderr.splitlines()[-2:]
    assert "these keys are not trusted; put them into the folder keys" in refused
    assert keys == ["AB12"]


# ---- The role as Ansible reads it


def play_on(
    folder: Path, hosts: dict[str, dict[str, Any]], **play: Any
) -> subprocess.CompletedProcess[str]:
    """Play on this machine by several names, each with variables of its own."""
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    play |= {"hosts": "all", "connection": "local", "gather_facts": False}
    (folder / "play.yml").write_text(yaml.safe_dump([play]))
    return run(
        Path(sys.executable).with_name("ansible-playbook"),
        *("-i", folder / "hosts.yml", "-e", f"spack_checkout={HOME}"),
        folder / "play.yml",
        ANSIBLE_ROLES_PATH=str(ROLES),
        ANSIBLE_CALLBACK_RESULT_FORMAT="json",
    )


def test_unknown_environment_or_system_is_named_with_the_known_ones(
    tmp_path: Path,
) -> None:
    variables = {"mpi_stacks": [], "seatrial_system": "lab", "seatrial_prefix": "/x"}
    wrong: dict[str, dict[str, Any]] = {
        "apps/lam": {"mpi_stacks": [{"name": "lam", "provider": "spack"}]},
        "systems/none": {"seatrial_system": "none"},
        "fabrik": {"spack_environments": ["fabrik"]},
    }
    hosts = {Path(named).name: variables | each for named, each in wrong.items()}
    role = {"name": "spack", "tasks_from": "known"}
    done = play_on(tmp_path, hosts, tasks=[{"ansible.builtin.include_role": role}])
    assert done.returncode == 2
    said = dict(re.findall(r"^fatal: \[(\w+)\]: FAILED! => (.*)", done.stdout, re.M))
    known = "apps/openmpi, fabric, mpi, systems/lab, systems/sample;"
    for named in wrong:
        words = said[Path(named).name]
        assert f"has no {named}; it has apps/" in words
        assert known in words


def test_chosen_packages_are_those_with_an_mpi(tmp_path: Path) -> None:
    stacks = [
        {"name": "openmpi", "provider": "spack"},
        {"name": "other", "provider": "spack", "mpi": "mpich"},
        {"name": "third", "provider": "distribution"},
    ]
    variables = {"mpi_stacks": stacks, "spack_environments": ["fabric"]}
    packages = "{{ [inventory_hostname, item, __spack_packages] | to_json }}"
    done = play_on(
        tmp_path,
        {
            "everything": {**variables, "spack_only": []},
            "one": {**variables, "spack_only": ["hpcc"]},
        },
        vars_files=[str(ROLES / "spack/vars/main.yml")],
        tasks=[
            {"ansible.builtin.debug": {"msg": packages}, "loop": "{{ __spack_wanted }}"}
        ],
    )
    assert done.returncode == 0, done.stdout
    messages = re.findall(r'"msg": (".*")', done.stdout)
    found = [json.loads(json.loads(message)) for message in messages]
    assert sorted(found) == [
        ["everything", "apps/mpich", []],
        ["everything", "apps/openmpi", []],
        ["everything", "fabric", []],
        ["one", "apps/mpich", ["hpcc", "mpich"]],
        ["one", "apps/openmpi", ["hpcc", "openmpi"]],
        ["one", "fabric", []],
    ]


def test_stack_of_spack_fits_argument_specs(tmp_path: Path) -> None:
    stack = {"name": "m", "provider": "spack", "mpi": "mpich", "srun_mpi": "pmi2"}
    given: list[tuple[dict[str, Any], str]] = [
        ({}, ""),
        ({"spack_only": ["hpcc"], "spack_jobs": 8, "spack_install": False}, ""),
        ({"spack_debian_links": ["mvapich"]}, "spack_debian_links"),
        ({"spack_signing_key": {"name": "n"}}, "spack_signing_key"),
        ({"spack_jobs": "many"}, "spack_jobs"),
    ]
    variables = ({"mpi_stacks": [stack], **each} for each, _ in given)
    said = validate(SAMPLE, tmp_path, *variables)
    for (each, named), words in zip(given, said, strict=True):
        assert named in words, each
        assert bool(words) is bool(named), words


# ---- Keys


GPG = """#!/bin/bash
[[ ! -e made ]] || echo sec
"""
SIGNER = """#!/bin/bash
echo "$*" >>"$CALLS"
[[ $2 != create ]] || touch made
"""


def test_key_is_made_once_and_others_are_trusted_once(prefix: Path) -> None:
    write(prefix, "keys/site.pub")
    (prefix / "gnupg").mkdir()
    calls = prefix / "calls"
    for name, text in (("spack", SIGNER), ("gpg", GPG)):
        program = prefix.parent / "bin" / name
        program.write_text(text)
        program.chmod(0o755)
    command = ["bash", FILES / "keys.sh", prefix, "Site", "site@localhost"]
    done = run(*command, CALLS=str(calls))
    assert done.stdout.splitlines() == [
        "made the key of Site <site@localhost>",
        "trust keys/site.pub",
    ], done.stderr
    made = ["gpg create Site site@localhost", "gpg trust keys/site.pub"]
    assert calls.read_text().splitlines() == made
    again = run(*command, CALLS=str(calls))
    assert (again.returncode, again.stdout) == (0, "")
    assert calls.read_text().splitlines() == made


def test_no_gpg_is_no_trouble_where_nothing_is_signed(prefix: Path) -> None:
    (prefix / "activate.sh").write_text("PATH=/nowhere\n")
    script = [shutil.which("bash"), FILES / "keys.sh", prefix]
    assert run(*script, "", "m@localhost").returncode == 0
    done = run(*script, "Site", "m@localhost")
    assert done.returncode == 1
    assert "install GnuPG, or set spack_build_cache to false" in done.stderr
