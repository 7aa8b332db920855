"""Programs from release archives: found or fetched, built, recorded."""

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
    hpcc_archive,
    hpcg_archive,
    hpl_archive,
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
    packages = {
        "osu-micro-benchmarks": "osu",
        "npb": "npb",
        "ior": "ior",
        "hpl": "hpl",
        "hpcg": "hpcg",
    }
    for package, feature in packages.items():
        assert f"- {package}@{pins[feature]['version']}" in file.read_text()
        assert pins[feature]["version"] in pins[feature]["url"]


def test_debian_has_the_archive_where_upstream_cannot_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt-get is a stand-in, which asks for what the real one was seen to take."""
    archive = hpcc_archive(tmp_path / "mirror")
    asked = tmp_path / "asked"
    fake_program(
        tmp_path / "bin",
        "apt-get",
        f"""echo "$*" >>{asked}
case "$*" in
*indextargets*) echo 'deb-src http://mirror/debian bookworm main' ;;
*source*) cp {archive} . ;;
esac""",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    pin = yaml.safe_load((FILES / "archives.yml").read_text())["hpl"]
    pin |= {"url": f"{NOWHERE}/hpl-2.3.tar.gz"}
    pin["debian"] |= {"sha256": digest(archive)}
    pins, kept = tmp_path / "pins", tmp_path / "kept"
    pins.write_text(json.dumps({"hpl": pin}))
    script = FILES / "find_archives.py"
    (item,) = json.loads(run(sys.executable, script, pins, kept, "", "hpl").stdout)
    assert item["archive"] == str(kept / archive.name)
    assert (item["version"], item["origin"]) == ("hpcc-1.5.0", "release")
    words = asked.read_text()
    assert "source --download-only --tar-only hpcc" in words
    assert "Dir::Etc::sourcelist=/" in words
    asked.unlink()
    done = run(sys.executable, script, pins, kept, "", "hpl")
    assert json.loads(done.stdout) == [item]
    assert not asked.exists()  # it is kept
    pin["debian"]["sha256"] = "0" * 64
    pins.write_text(json.dumps({"hpl": pin}))
    (item,) = json.loads(run(sys.executable, script, pins, kept, "", "hpl").stdout)
    assert "cannot be fetched" in item["reason"]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("hpl-2.3.tar.gz", "2.3"),
        ("hpl-2.2.tgz", "2.2"),
        ("hpcc-1.5.0.tar.gz", "hpcc-1.5.0"),
        ("hpcc_1.4.3.orig.tar.gz", "hpcc_1.4.3"),
        ("hpcg-3.1.tar.gz", "3.1"),
        ("hpcg-HPCG-release-3-1-0.tar.gz", "3-1-0"),
    ],
)
def test_archives_of_hpl_and_hpcg_are_known_by_their_names(
    tmp_path: Path, name: str, version: str
) -> None:
    hpl_archive(tmp_path).rename(tmp_path / name)
    list_sums(tmp_path)
    if name.endswith(".tgz"):
        sums = f"{digest(tmp_path / name)}  {name}\n"
        (tmp_path / "SHA256SUMS").write_text(sums)
    feature = "hpcg" if name.startswith("hpcg") else "hpl"
    words = (FILES / "find_archives.py", FILES / "archives.yml", "kept", tmp_path)
    (item,) = json.loads(run(sys.executable, *words, feature).stdout)
    assert (item["version"], item["origin"]) == (version, "user")


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


def test_build_that_times_out_says_so_and_ends_its_compilers(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(given["bring_all"].__globals__, "BUILD_S", 1)
    del given["archives"][1]
    given["scripts"]["osu"] = "echo compiling\n(sleep 2; echo late) & wait"
    (problem,) = built(given)["problems"]
    log = tmp_path / "built/s/osu.log"
    assert problem.startswith(
        "stack s: the build of OSU Micro-Benchmarks timed out after 1 s: compiling; "
        f"full output: {log}; see which step hangs or is slow, run site.yml again"
    )
    time.sleep(1.5)
    assert log.read_text() == "compiling\n"


def test_compiler_and_login_shell_that_hang_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = load("mpi/module_utils/mpi_programs.py")
    monkeypatch.setattr(library, "ANSWER_S", 0.2)
    with pytest.raises(library.ProblemError, match=r"^`sleep 9` timed out after 0.2 s"):
        library.run(["sleep", "9"], dict(os.environ))
    fake_program(tmp_path, "bash", "exec sleep 9")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(library.ProblemError) as error:
        library.login_environment(["gcc", "openmpi"])
    assert str(error.value).startswith(
        "a login shell with modules gcc openmpi timed out after 0.2 s; load them in "
    )


def test_stack_without_fortran_compiler_skips_npb(given: dict[str, Any]) -> None:
    del given["archives"][0]
    given["examined"][0]["fortran"] = "no-fortran"
    result = built(given)
    assert (result["changed"], result["problems"]) == (False, [])
    reason = result["stacks"][0]["not_built"]["npb"]
    assert "no build of NAS Parallel Benchmarks: it has no no-fortran" in reason
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
            "s: no build of IOR: it has no autoreconf and no automake and no "
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


def of_feature(
    given: dict[str, Any], feature: str, archive: Path, **more: str
) -> dict[str, Any]:
    """Give another archive; `more` are further arguments of the module."""
    item = {"feature": feature, "name": feature.upper(), "version": "1"}
    item |= {"sha256": digest(archive), "origin": "release", "archive": str(archive)}
    given["archives"] = [item]
    given["scripts"][feature] = (FILES / f"build_{feature}.sh").read_text()
    given.update(more)
    return built(given)


MPI_H = """int MPI_Init(int *, char ***);
int MPI_Finalize(void);
int MPI_Abort(int, int);
#define MPI_COMM_WORLD 0
#define MPI_Init(a, b) 0
#define MPI_Finalize() 0
#define MPI_Abort(a, b) (b)
"""


@pytest.mark.parametrize("write", [hpl_archive, hpcc_archive])
def test_hpl_is_built_from_its_release_or_that_of_hpcc(
    given: dict[str, Any], tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    (tmp_path / "mpi.h").write_text(MPI_H)
    blas = str(tmp_path / "blas.c")
    Path(blas).write_text("void dgemm_(void) {}\n")
    result = of_feature(given, "hpl", write(tmp_path), blas=blas)
    assert result["problems"] == []
    program = tmp_path / "built/s/hpl/xhpl"
    assert result["stacks"][0]["programs"] == {"hpl": str(program)}
    if write is hpcc_archive:
        start = f"cd {tmp_path} && {program}"
        (tmp_path / "HPL.dat").touch()
        done = run("sh", "-c", start)
        assert (done.returncode, done.stdout) == (0, "HPL.out\ndevice 6\n")
        (tmp_path / "HPL.dat").unlink()
        assert "HPL.dat: illegal input" in run("sh", "-c", start).stderr
    assert not built(given)["changed"]
    given["blas"] = f"{blas} -lm"
    assert built(given)["changed"]


def test_hpl_without_a_blas_is_left_out(given: dict[str, Any], tmp_path: Path) -> None:
    archive = hpl_archive(tmp_path)
    result = of_feature(given, "hpl", archive, blas="-lno-such-blas")
    reason = result["stacks"][0]["not_built"]["hpl"]
    assert "mpi_blas '-lno-such-blas' does not link (" in reason
    assert "install one, such as OpenBLAS (libopenblas-dev, openblas-devel)" in reason
    assert result["problems"] == []


def test_archive_without_hpl_fails_the_build(
    given: dict[str, Any], tmp_path: Path
) -> None:
    blas = str(tmp_path / "blas.c")
    Path(blas).write_text("void dgemm_(void) {}\n")
    result = of_feature(given, "hpl", hpcg_archive(tmp_path), blas=blas)
    (problem,) = result["problems"]
    assert "expected hpl-2.3.tar.gz, or a release of HPCC" in problem


def test_hpcg_is_built_by_the_cxx_wrapper(
    given: dict[str, Any], tmp_path: Path
) -> None:
    wrapper = tmp_path / "mpicxx"
    wrapper.write_text("#!/bin/sh\necho no C++ today >&2\nexit 1\n")
    wrapper.chmod(0o755)
    result = of_feature(given, "hpcg", hpcg_archive(tmp_path))
    reason = result["stacks"][0]["not_built"]["hpcg"]
    assert "mpicxx does not compile: no C++ today; install the C++ compiler" in reason
    wrapper.write_text('#!/bin/sh\nexec c++ -I"$(dirname "$0")" "$@"\n')
    result = built(given)
    assert result["problems"] == []
    program = tmp_path / "built/s/hpcg/xhpcg"
    assert result["stacks"][0]["programs"] == {"hpcg": str(program)}
    assert run(program).returncode == 0


def test_check_mode_builds_nothing(given: dict[str, Any], tmp_path: Path) -> None:
    del given["archives"][1]
    assert "Benchmarks yet" in built(given, check_mode=True)["skipped"][0]
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


@pytest.mark.slow
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
