"""Common rules of all programs of benchmarks/, and the tests of CTest."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmark_builds import ROOT, SOURCES, Build, Completed, build_with, run

LIBRARIES = {"openmpi": "libmpi.so", "mpich": "libmpich.so"}


def programs_below(folder: str) -> list[str]:
    """Return the MPI programs of benchmarks/FOLDER."""
    return sorted(
        source.stem
        for file in SOURCES.glob(f"{folder}/*/CMakeLists.txt")
        for source in file.parent.glob("*.c")
        if "program_main(" in source.read_text()
    )


# The main program of pairsweep_verbs is that of pairsweep.
VERBS_PROGRAMS = sorted([*programs_below("verbs"), "pairsweep_verbs"])
HAS_VERBS = Path("/usr/include/infiniband/verbs.h").exists()
PROGRAMS = sorted([*programs_below("mpi"), *(VERBS_PROGRAMS if HAS_VERBS else [])])
NODE_PROGRAMS = sorted(file.parent.name for file in SOURCES.glob("node/*/*.txt"))
PLACES = "affinity"
"""It shows where ranks and threads run, and sends no messages: it has no sizes."""
ALL_PROGRAMS = sorted([*PROGRAMS, *NODE_PROGRAMS, PLACES])
every_program = pytest.mark.parametrize("program", PROGRAMS)
of_all_programs = pytest.mark.parametrize("program", ALL_PROGRAMS)


def assert_ctest_passes(build: Build) -> None:
    done = run("ctest", "--test-dir", build.folder, "-j2", "--output-on-failure")
    assert done.returncode == 0, done.stdout
    assert "100% tests passed" in done.stdout


@pytest.mark.any_mpi
def test_ctest(build: Build) -> None:
    assert_ctest_passes(build)


@pytest.mark.slow
def test_ctest_with_sanitizers() -> None:
    build = build_with("mpich", "mpich-sanitize", "-DSEATRIAL_SANITIZE=ON")
    assert "libasan" in run("ldd", build.bin / PROGRAMS[0]).stdout
    assert_ctest_passes(build)


@every_program
def test_links_only_its_own_mpi(build: Build, program: str) -> None:
    libraries = run("ldd", build.bin / program).stdout
    linked = {mpi for mpi, library in LIBRARIES.items() if library in libraries}
    assert linked == {build.mpi}


@pytest.mark.any_mpi
@every_program
def test_help_shows_defaults(build: Build, program: str) -> None:
    done = build.run(program, 1, "--iterations", "3", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {program} [options]\n\n")
    options = dict(re.findall(r"^  .{4}--([a-z-]+) (.*)$", done.stdout, re.M))
    defaults = {
        name: default
        for name, text in options.items()
        for default in re.findall(r"\(default (\S+)\)$", text)
    }
    flags = ["validate", "json", "help", "version"]
    assert set(flags) <= set(options)
    span = f"{defaults['min-size']}:{defaults['max-size']}"
    assert defaults.get("sizes", span) == span
    assert int(defaults["iterations"]) > 3
    assert {"warmup", "time"} <= set(defaults)


@pytest.mark.any_mpi
@every_program
def test_launched_help_is_printed_once(build: Build, program: str) -> None:
    done = build.run(program, 2, "-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(f"Usage: {program} ") == 1


@pytest.mark.any_mpi
@every_program
def test_version_is_the_package_s_with_a_commit(build: Build, program: str) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    done = build.run(program, 1, "--version")
    assert re.fullmatch(
        rf"{program} {version} \(([0-9a-f]{{12}}(-dirty)?|commit unknown)\)\n",
        done.stdout,
    )


@pytest.mark.any_mpi
def test_launched_version_is_printed_once(build: Build) -> None:
    printed = build.run(PROGRAMS[0], 2, "-v").stdout
    assert len(printed.splitlines()) == 1


def test_given_commit_is_shown(tmp_path: Path) -> None:
    header = tmp_path / "version.h"
    done = run(
        "cmake", "-Dversion=1.2.3", "-Dcommit=abc", f"-Dsource_dir={SOURCES}",
        f"-Doutput={header}", "-P", SOURCES / "version.cmake",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '#define VERSION "1.2.3"\n#define COMMIT "abc"\n' in header.read_text()


def assert_refused(done: Completed, program: str, error: str) -> None:
    """The status is 2, and one rank says why; launchers may add lines."""
    assert (done.returncode, done.stdout) == (2, "")
    lines = [line for line in done.stderr.splitlines() if f"{program}: " in line]
    assert len(lines) == 1
    assert re.match(rf"{program}: rank 0 on \S+: {error}", lines[0]), lines[0]


@pytest.mark.any_mpi
@every_program
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--bogus", r"unknown argument '--bogus' \(see --help\)"),
        (
            "--min-size=9 --max-size=8",
            r"smallest size 9 is above the largest, 8 \(see --help\)",
        ),
        ("-i0", r"--iterations: '0' is not an integer from \d+ to \d+ \(see"),
        ("--warmup=-1", "--warmup: '-1' is not an integer from 0 to"),
        ("--time=99999999999999999999", "--time: '99999999999999999999' is not an"),
        ("--min-size=1e3", "--min-size: '1e3' is not an integer from"),
        ("--validate=yes", "--validate takes no value, found 'yes'"),
    ],
)
def test_bad_options_are_refused(
    build: Build, program: str, options: str, error: str
) -> None:
    assert_refused(build.run(program, 1, *options.split()), program, error)


@pytest.mark.any_mpi
@every_program
def test_one_rank_is_too_few(build: Build, program: str) -> None:
    if program == "mr_cost":
        pytest.skip("mr_cost takes one rank")
    done = build.run(program, 1)
    assert_refused(done, program, r".*\b(1 (process|rank|node)|np 1)\b")


@pytest.mark.any_mpi
def test_launched_refusal_is_printed_once(build: Build) -> None:
    done = build.run(PROGRAMS[0], 2, "--json=1")
    assert_refused(done, PROGRAMS[0], "--json takes no value, found '1'")


@pytest.mark.any_mpi
@every_program
def test_full_disk_is_an_error(build: Build, program: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([build.bin / program, "--help"], stdout=full)
    assert done.returncode == 1


@pytest.mark.any_mpi
def test_rows_are_json_whatever_they_hold(build: Build) -> None:
    """The program of benchmarks/tests writes them; Python's own decoder reads."""
    done = build.run("test_report", 1)
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert len(first.pop("version").split(".")) == 3
    assert first.pop("mpi").replace(" ", "").lower().startswith(build.mpi)
    assert re.match(r"[0-9a-f]{12}|commit unknown", first.pop("commit"))
    expected: dict[str, Any] = {
        "program": 'a "program"',
        "np": 64,
        "iterations": 1000,
        "warmup": 200,
        "row": 1,
        "rows": 2,
        "host": "".join(map(chr, range(1, 128))),
        '"key"\t': "",
        "largest": 2**63 - 1,
        "smallest": -(2**63),
        "nothing": None,
        "min_us": 0.1,
        "p50_us": 0.2,
        "p99_us": 0.333333333333333,
        "max_us": 1e300,
        "mean_us": 1e-300,
        "n": 7,
        "validation": "fail",
    }
    assert first == expected
    changed = {
        "row": 2,
        "host": 'Knoten-é", "np": 1, "x": "',
        "max_us": None,
        "validation": "pass",
    }
    assert {key: second[key] for key in expected} == expected | changed


@pytest.mark.any_mpi
def test_installs_all_programs_and_nothing_else(build: Build, tmp_path: Path) -> None:
    done = run("cmake", "--install", build.folder, "--prefix", tmp_path)
    assert done.returncode == 0, done.stderr
    found = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")]
    assert sorted(found) == ["bin", *(f"bin/{program}" for program in ALL_PROGRAMS)]


def test_role_expects_all_programs() -> None:
    defaults = ROOT / "playbooks" / "roles" / "benchmarks" / "defaults" / "main.yml"
    variables = yaml.safe_load(defaults.read_text())
    assert variables["benchmarks_verbs_programs"] == VERBS_PROGRAMS
    always = sorted({*ALL_PROGRAMS} - {*VERBS_PROGRAMS})
    assert variables["benchmarks_programs"] == always


@of_all_programs
def test_readme_has_a_section_on_it(program: str) -> None:
    headings = re.findall(r"^## (.*)$", (SOURCES / "README.md").read_text(), re.M)
    assert any(program in re.findall(r"\w+", heading) for heading in headings)


@pytest.mark.any_mpi
@of_all_programs
def test_has_a_twin_that_damages_a_byte(build: Build, program: str) -> None:
    if program == PLACES:
        return
    assert (build.bin / f"{program}_corrupt").exists()
    if program in VERBS_PROGRAMS:
        return  # it takes RDMA
    listed = run("ctest", "--test-dir", build.folder, "--show-only").stdout
    assert re.search(rf" {program}\w*_finds_corruption$", listed, re.M)


def test_sources_are_formatted() -> None:
    if shutil.which("clang-format") is None:
        pytest.skip("clang-format is not installed")
    sources = sorted(SOURCES.rglob("*.[ch]"))
    assert len(sources) > 10
    done = run("clang-format", "--dry-run", "--Werror", *sources)
    assert done.returncode == 0, done.stderr
    for source in sources:
        first = source.read_text().splitlines()[0]
        assert first == "/* SPDX-License-Identifier: Apache-2.0 */", source
