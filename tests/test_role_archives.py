"""OSU and NPB from release archives: found or fetched, built, recorded."""

import functools
import http.server
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from archive_samples import (
    BENCHMARKS,
    PROGRAM_C,
    digest,
    list_sums,
    npb_archive,
    osu_archive,
    write_archive,
    write_pins,
)
from fake_home import fake_program
from samples import sample_run
from test_role_scripts import ROLES, load
from test_role_spack import run
from test_spack_stack import render

from seatrial.report.methods_chapter import configuration

FILES = ROLES / "mpi" / "files"
NOWHERE = "http://127.0.0.1:9"


# ---- Archives on the control machine


@pytest.fixture
def find(tmp_path: Path) -> Callable[..., Any]:
    """Run find_archives.py for OSU; return its item, or its error text."""

    def found(pins: Path, folder: str = "") -> Any:
        script = FILES / "find_archives.py"
        done = run(sys.executable, script, pins, tmp_path / "kept", folder, "osu")
        return json.loads(done.stdout)[0] if done.returncode == 0 else done.stderr

    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Serve the folder `upstream`; return its address."""
    (tmp_path / "upstream").mkdir()
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "upstream")
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


def test_pinned_archive_is_fetched_once(
    tmp_path: Path, server: str, find: Callable[..., Any]
) -> None:
    upstream = osu_archive(tmp_path / "upstream")
    pins = write_pins(tmp_path / "pins", server, upstream)
    first = find(pins)
    assert first["sha256"] == digest(upstream) == digest(Path(first["archive"]))
    assert first["origin"] == "release"
    upstream.unlink()
    assert find(pins) == first


def test_fetched_archive_of_other_content_is_not_kept(
    tmp_path: Path, server: str, find: Callable[..., Any]
) -> None:
    upstream = osu_archive(tmp_path / "upstream")
    item = find(write_pins(tmp_path / "pins", server))
    assert "archive" not in item
    assert f"it sends the SHA-256 {digest(upstream)}; try again" in item["reason"]
    assert not list((tmp_path / "kept").iterdir())


def test_address_that_lacks_it_or_refuses_gives_a_reason(
    tmp_path: Path, server: str, find: Callable[..., Any]
) -> None:
    item = find(write_pins(tmp_path / "pins", server))
    assert "cannot be fetched: File not found" in item["reason"]
    item = find(write_pins(tmp_path / "pins", NOWHERE))
    assert "Connection refused; try again where" in item["reason"]


def test_address_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load("mpi/files/find_archives.py")
    monkeypatch.setattr(script, "CONNECT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        pins = write_pins(tmp_path / "pins", url)
        pin = yaml.safe_load(pins.read_text())["osu"]
        started = time.monotonic()
        download = script.Download(pin, tmp_path / "kept")
        download.start()
        item = download.result(started)
        assert time.monotonic() - started < 5
    assert "cannot be fetched: " in item["reason"]


def test_archive_of_the_user_is_listed_in_the_users_sums(
    tmp_path: Path, find: Callable[..., Any]
) -> None:
    pins, mine = write_pins(tmp_path / "pins", NOWHERE), tmp_path / "mine"
    archive = osu_archive(mine, "7.4")
    error = find(pins, str(mine))
    assert f"got {digest(archive)}; fetch the archive again, or list it in" in error
    assert error.count("\n") == 1
    list_sums(mine)
    item = find(pins, str(mine))
    assert (item["version"], item["origin"]) == ("7.4", "user")
    osu_archive(mine, "7.4", "int main(void) { return 0; }\n")
    assert f"expected the SHA-256 {item['sha256']}, got" in find(pins, str(mine))


def test_folder_of_the_user_may_have_the_release_or_nothing(
    tmp_path: Path, find: Callable[..., Any]
) -> None:
    archive = osu_archive(tmp_path / "mine")
    pins = write_pins(tmp_path / "pins", NOWHERE, archive)
    item = find(pins, str(tmp_path / "mine"))
    assert (item["archive"], item["origin"]) == (str(archive), "release")
    archive.unlink()
    assert "mine has no osu-micro" in find(pins, str(tmp_path / "mine"))["reason"]
    assert "no such folder" in find(pins, str(tmp_path / "none"))
    osu_archive(tmp_path / "mine", "6.2")
    osu_archive(tmp_path / "mine", "7.4")
    assert "expected one archive of the OSU" in find(pins, str(tmp_path / "mine"))


def test_pins_are_versions_of_the_spack_environments() -> None:
    pins = yaml.safe_load((FILES / "archives.yml").read_text())
    file = ROLES.parents[1] / "spack-env" / "common" / "definitions.yaml"
    packages = {"osu-micro-benchmarks": "osu", "npb": "npb", "ior": "ior"}
    for package, feature in packages.items():
        assert f"- {package}@{pins[feature]['version']}" in file.read_text()
        assert pins[feature]["version"] in pins[feature]["url"]


# ---- Builds


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Arguments of the module, for one stack with a compiler that needs no MPI."""
    compiler = tmp_path / "mpicc"
    compiler.write_text('#!/bin/sh\nexec cc -I"$(dirname "$0")" "$@"\n')
    compiler.chmod(0o755)
    (tmp_path / "mpi.h").write_text("#define MPI_Init(a, b) 0\n")
    archive = osu_archive(tmp_path)
    stack = {"name": "s", "provider": "distribution", "compiler": str(compiler)}
    names = {"osu": "OSU Micro-Benchmarks", "npb": "NAS Parallel Benchmarks"}
    common = {"version": "1", "origin": "release", "archive": str(archive)}
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    library = load("mpi/library/mpi_program_builds.py")
    monkeypatch.setattr(library, "login_environment", lambda *_: dict(os.environ))
    return {
        "stacks": [{**stack, "compiler": "mpicc"}],
        "examined": [{**stack, "compiler_id": "1", "paths": []}],
        "archives": [
            {"feature": f, "name": name, "sha256": digest(archive), **common}
            for f, name in names.items()
        ],
        "scripts": {f: (FILES / f"build_{f}.sh").read_text() for f in names},
        "classes": ["S"],
        "folder": str(tmp_path / "built"),
        "bring_all": library.bring_all,
    }


def built(given: dict[str, Any], check_mode: bool = False) -> dict[str, Any]:
    result: dict[str, Any] = given["bring_all"](given, check_mode)
    return result


def test_program_is_built_once_and_kept_without_its_archive(
    given: dict[str, Any], tmp_path: Path
) -> None:
    del given["archives"][1]
    first = built(given)
    assert (first["changed"], first["problems"]) == (True, [])
    (stack,) = first["stacks"]
    assert stack["programs"] == {"osu": f"{tmp_path}/built/s/osu"}
    assert stack["built"][0]["sha256"] == given["archives"][0]["sha256"]
    assert (tmp_path / "built/s/osu/libexec/osu_latency").is_file()
    assert built(given) == {**first, "changed": False}
    archive = given["archives"][0]
    del archive["archive"]
    archive.update(sha256="0" * 64, reason="no archive")
    assert built(given) == {**first, "changed": False}
    given["examined"][0]["compiler_id"] = "2"
    assert built(given)["skipped"] == ["s: no archive"]


def test_build_needs_no_temporary_folder_that_runs_programs(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    del given["archives"][1]
    assert built(given)["problems"] == []
    names = {file.name for file in (tmp_path / "built/s").iterdir()}
    assert names == {"osu", "osu.log"}


def test_another_archive_is_built_again(given: dict[str, Any]) -> None:
    del given["archives"][1]
    built(given)
    given["archives"][0].update(sha256="1" * 64, version="2", origin="user")
    second = built(given)
    assert second["changed"]
    assert second["stacks"][0]["built"][0]["origin"] == "user"


def test_failed_build_quotes_and_names_its_log(
    given: dict[str, Any], tmp_path: Path
) -> None:
    del given["archives"][1]
    osu_archive(tmp_path, source="#error not today\n")
    (problem,) = built(given)["problems"]
    assert problem.startswith("stack s: the build of OSU Micro-Benchmarks failed: ")
    assert "error: #error not today" in problem
    assert f"full output: {tmp_path}/built/s/osu.log; fix it" in problem
    assert "\n" not in problem


def test_stack_without_fortran_compiler_skips_npb(given: dict[str, Any]) -> None:
    del given["archives"][0]
    given["examined"][0]["fortran"] = "no-fortran"
    result = built(given)
    assert (result["changed"], result["problems"]) == (False, [])
    reason = result["stacks"][0]["not_built"]["npb"]
    assert "NAS Parallel Benchmarks are not built: it has no no-fortran" in reason
    assert "programs" not in reason


@pytest.fixture
def of_ior(given: dict[str, Any]) -> dict[str, Any]:
    archive = {**given["archives"][0], "feature": "ior", "name": "IOR"}
    script = (FILES / "build_ior.sh").read_text()
    return {**given, "archives": [archive], "scripts": {"ior": script}}


def test_ior_is_built_from_a_release(of_ior: dict[str, Any], tmp_path: Path) -> None:
    configure = """#!/bin/sh
set -eu
for option; do
    case $option in
    --prefix=*) prefix=${option#*=} ;;
    CC=*) cc=${option#*=} ;;
    esac
done
printf 'all:\n\t%s -o ior program.c\ninstall:\n' "$cc" >Makefile
printf '\tmkdir -p %s/bin\n\tcp ior %s/bin\n' "$prefix" "$prefix" >>Makefile
printf '\tcp ior %s/bin/mdtest\n' "$prefix" >>Makefile
"""
    files = {"configure": configure, "program.c": PROGRAM_C}
    write_archive(Path(of_ior["archives"][0]["archive"]), files)
    result = built(of_ior)
    assert (result["changed"], result["problems"]) == (True, [])
    programs = load("mpi/module_utils/mpi_programs.py").programs_below(
        "ior", result["stacks"][0]["programs"]["ior"], [], dict(os.environ)
    )
    assert [*programs] == ["ior", "mdtest"]


def test_source_of_ior_needs_autotools(
    of_ior: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_archive(Path(of_ior["archives"][0]["archive"]), {"bootstrap": "#!/bin/sh\n"})
    for name in ("bash", "env", "python3"):
        (tmp_path / "few").mkdir(exist_ok=True)
        (tmp_path / "few" / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", f"{tmp_path / 'few'}")
    result = built(of_ior)
    assert (result["changed"], result["problems"]) == (False, [])
    assert result["skipped"] == [
        (
            "s: IOR is not built: it has no autoreconf and no automake and no "
            "pkg-config; install autoconf, automake and pkg-config, "
            "and run site.yml again"
        )
    ]


def test_own_programs_spack_and_bare_runtimes_are_left_alone(
    given: dict[str, Any],
) -> None:
    given["archives"] = given["archives"][:1]
    given["stacks"][0]["programs"] = {"osu": "/site/osu"}
    bare = {"name": "w", "provider": "wheels"}
    spack = {"name": "p", "provider": "spack", "compiler": "/x/mpicc"}
    given["stacks"] += [bare, spack]
    given["examined"] += [bare, spack]
    result = built(given)
    assert not result["changed"]
    programs = [stack["programs"] for stack in result["stacks"]]
    assert programs == [{"osu": "/site/osu"}, {}, {}]


def test_check_mode_builds_nothing(given: dict[str, Any], tmp_path: Path) -> None:
    del given["archives"][1]
    assert "not built yet" in built(given, check_mode=True)["skipped"][0]
    assert not (tmp_path / "built").exists()


# ---- The role, with the machine's Open MPI


def play(folder: Path, archives: str) -> str:
    """Run the role mpi for Open MPI; return its output."""
    stack = {"name": "openmpi", "provider": "distribution", "srun_mpi": "pmix"}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {
            "seatrial_prefix": str(folder / "prefix"),
            "mpi_stacks": [{**stack, "compiler": "mpicc.openmpi"}],
            "mpi_npb_classes": ["S"],
            "ansible_python_interpreter": sys.executable,
        },
        "roles": ["mpi"],
    }
    playbook = folder / "mpi.yml"
    playbook.write_text(yaml.safe_dump([play]))
    fake_program(folder / "bin", "srun", "echo pmix")
    (folder / ".bash_profile").write_text(f"PATH={folder}/bin:$PATH\n")
    program = Path(sys.executable).with_name("ansible-playbook")
    variables = {
        "HOME": str(folder),
        "SEATRIAL_ARCHIVES": archives,
        "ANSIBLE_ROLES_PATH": str(ROLES),
    }
    done = run(program, playbook, **variables)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_role_builds_links_and_then_changes_nothing(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    osu_archive(mine)
    npb_archive(mine)
    list_sums(mine)
    play(tmp_path, str(mine))
    links = {link.name for link in (tmp_path / "prefix/mpi/links/openmpi").iterdir()}
    assert links == {"osu_latency", *(f"{name}.S.x" for name in BENCHMARKS)}
    assert "changed=0 " in play(tmp_path, str(mine))


# ---- The record


def test_system_and_report_name_the_origin() -> None:
    record = {"feature": "osu", "name": "OSU Micro-Benchmarks", "version": "7.4"}
    record |= {"sha256": "a" * 64, "origin": "user"}
    stack: dict[str, Any] = {"name": "s", "version": "1", "provider": "distribution"}
    stack |= {"built": [record], "not_built": {"npb": "no Fortran"}}
    text = render(
        "suite/templates/system.yml.j2",
        mpi_found={"stacks": [stack]},
        suite_description="x",
        seatrial_demonstration=False,
        inventory_hostname="head",
        nodes_found={"nodes": []},
        __suite_slurm_version="1",
        __suite_pack={"version": "1", "git_commit": None, "dirty": None},
    )
    software = yaml.safe_load(text)["software"]
    assert software["stacks"] == [stack]
    taken = sample_run()
    taken.manifest["software"] = software
    rows = dict(configuration(taken).tables)["Software"].rows
    expected = ("OSU Micro-Benchmarks of s", "7.4, sha256 aaaaaaaaaaaa")
    assert (*expected, "user's archive") in rows
