import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from benchmark_builds import ROOT, SOURCES, Build, build_with, run

from seatrial.parsers.halo2d import parse_halo2d

LIBRARIES = {"openmpi": "libmpi.so", "mpich": "libmpich.so"}
SHORT = ["--iterations=5", "--warmup=1", "--repetitions=2"]


def assert_ctest_passes(build: Build) -> None:
    done = run("ctest", "--test-dir", build.folder, "--output-on-failure")
    assert done.returncode == 0, done.stdout
    assert "100% tests passed" in done.stdout


def test_ctest(build: Build) -> None:
    assert_ctest_passes(build)


def test_ctest_with_sanitizers() -> None:
    build = build_with("mpich", "mpich-sanitize", "-DSEATRIAL_SANITIZE=ON")
    assert "libasan" in run("ldd", build.bin / "halo2d").stdout
    assert_ctest_passes(build)


def test_links_only_its_own_mpi(build: Build) -> None:
    libraries = run("ldd", build.bin / "halo2d").stdout
    linked = {mpi for mpi, library in LIBRARIES.items() if library in libraries}
    assert linked == {build.mpi}


@pytest.mark.parametrize("protocol", ["sendrecv", "irecv_isend"])
def test_json_is_read_back(build: Build, protocol: str) -> None:
    options = [*SHORT, "--validate", "--protocol", protocol, "-m", "2:8"]
    done = build.run("halo2d", 2, *options, "--json")
    assert done.returncode == 0, done.stderr
    rows = parse_halo2d(done.stdout)
    assert [row.size_bytes for row in rows] == [16, 32, 64]
    assert {row.protocol for row in rows} == {protocol}
    assert {(row.np, row.px, row.py) for row in rows} == {(2, 1, 2)}
    assert {(row.n, row.validation) for row in rows} == {(10, "pass")}
    assert rows[0].mpi.replace(" ", "").lower().startswith(build.mpi)


def test_time_per_size_limits_the_iterations(build: Build) -> None:
    options = ["-m", "2:2", "-i", "1000000", "-x", "1000000", "--repetitions", "2"]
    done = build.run("halo2d", 2, *options, "--time", "20", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = parse_halo2d(done.stdout)
    assert 2 <= row.n < 1000000


def test_stdout_is_data_only(build: Build) -> None:
    done = build.run("halo2d", 2, *SHORT, "--json", "--max-size=2")
    assert [json.loads(line)["row"] for line in done.stdout.splitlines()] == [1, 2]


def test_corruption_exits_1(build: Build) -> None:
    options = [*SHORT, "--validate", "--json"]
    done = build.run("halo2d_corrupt", 3, *options)
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["validation"] for row in rows] == ["pass", "fail"]
    assert re.search(
        r"halo2d_corrupt: rank 2 on \S+: validation failed: N 2, step 9, row 3, "
        r"column 3, sent by rank 0: expected \d+, found \d+\.\d+",
        done.stderr,
    )


def test_help_shows_the_defaults_of_a_run(build: Build) -> None:
    done = build.run("halo2d", 1, "--iterations", "3", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    found = dict(re.findall(r"--([a-z-]+) .*\(default (\S+)\)", done.stdout))
    assert found == {
        "protocol": "sendrecv",
        "sizes": "0:1024",
        "min-size": "0",
        "max-size": "1024",
        "iterations": "1000",
        "warmup": "200",
        "repetitions": "5",
        "time": "0",
    }
    if build.mpi == "mpich":
        return  # it spins: where cores are short, 5200 exchanges take a minute
    row = parse_halo2d(build.run("halo2d", 2, "--json", "-m", "0").stdout)[0]
    for name in ("protocol", "iterations", "warmup", "repetitions"):
        assert str(getattr(row, name)) == found[name]


def test_launched_help_and_version_print_once(build: Build) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for np in (1, 2):
        assert build.run("halo2d", np, "-h").stdout.count("Usage: halo2d") == 1
        printed = build.run("halo2d", np, "--version").stdout
        assert re.fullmatch(
            rf"halo2d {version} \(([0-9a-f]{{12}}(-dirty)?|commit unknown)\)\n", printed
        )


def test_given_commit_is_shown(tmp_path: Path) -> None:
    header = tmp_path / "version.h"
    done = run(
        "cmake", "-Dversion=1.2.3", "-Dcommit=abc", f"-Dsource_dir={SOURCES}",
        f"-Doutput={header}", "-P", SOURCES / "version.cmake",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '#define VERSION "1.2.3"\n#define COMMIT "abc"\n' in header.read_text()


@pytest.mark.parametrize(
    ("np", "options", "error"),
    [
        (1, [], "1 process: a halo exchange needs at least 2"),
        (1, ["--bogus"], "unknown argument '--bogus' (see --help)"),
        (1, ["-m", "9:8"], "smallest size 9 is above the largest, 8 (see --help)"),
        (2, ["-i", "0"], "--iterations: '0' is not an integer from 1 to 10000000"),
        (2, ["-m", "16777216"], r" MiB: choose a smaller size"),
    ],
)
def test_bad_input_exits_2(
    build: Build, np: int, options: list[str], error: str
) -> None:
    done = build.run("halo2d", np, *options)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("halo2d: ")]
    assert len(lines) == 1
    assert re.match(r"halo2d: rank 0 on \S+: ", lines[0])
    assert error in lines[0]


def test_full_disk_is_an_error(build: Build) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([build.bin / "halo2d", "--help"], stdout=full)
    assert done.returncode == 1


def test_installs_programs_only(build: Build, tmp_path: Path) -> None:
    done = run("cmake", "--install", build.folder, "--prefix", tmp_path)
    assert done.returncode == 0, done.stderr
    found = [path.relative_to(tmp_path) for path in tmp_path.rglob("*")]
    assert sorted(map(str, found)) == ["bin", "bin/halo2d"]


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
