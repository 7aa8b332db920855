"""memlat on this machine: what it measures, and what it refuses."""

import re
import subprocess
from pathlib import Path

import pytest
from benchmark_builds import Build, run

from seatrial.parsers.memlat import parse_memlat

pytestmark = pytest.mark.any_mpi

QUICK = ("--iterations", "50", "--validate", "--json")


def test_needs_no_mpi(build: Build) -> None:
    assert "libmpi" not in run("ldd", build.bin / "memlat").stdout


def test_every_size_is_there_in_order(build: Build) -> None:
    done = build.run("memlat", 1, *QUICK, "--sizes", "4096:1048576")
    assert (done.returncode, done.stderr) == (0, "")
    rows = parse_memlat(done.stdout)
    assert [row.size_bytes for row in rows] == [4096 << i for i in range(9)]
    assert {row.validation for row in rows} == {"pass"}
    assert {row.huge_bytes for row in rows} == {0}


def test_memory_is_slower_than_the_first_cache(build: Build) -> None:
    options = (*QUICK, "--iterations", "20")
    (cache,) = parse_memlat(
        build.run("memlat", 1, *options, "--sizes", "16384:16384").stdout
    )
    beyond = 1 << (4 * cache.cache_bytes - 1).bit_length()
    done = build.run("memlat", 1, *options, "--sizes", f"{beyond}:{beyond}")
    (memory,) = parse_memlat(done.stdout)
    assert memory.size_bytes >= 4 * memory.cache_bytes > 0
    assert memory.min_ns > 5 * cache.min_ns


def test_transparent_huge_pages_are_counted(build: Build) -> None:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not setting.exists() or "[never]" in setting.read_text():
        pytest.skip("this kernel offers no transparent huge pages")
    options = ("--huge-pages", "transparent", "--sizes", f"{1 << 22}:{1 << 22}")
    (row,) = parse_memlat(build.run("memlat", 1, *QUICK, *options).stdout)
    assert row.huge_pages == "transparent"
    assert row.huge_bytes == 1 << 22


def test_time_limits_the_walks(build: Build) -> None:
    options = ("--sizes", "65536:65536", "--iterations", "1000000", "--time", "20")
    (row,) = parse_memlat(build.run("memlat", 1, "--json", *options).stdout)
    assert 1 <= row.n < 1_000_000


def test_row_names_the_cpu_that_it_is_bound_to(build: Build) -> None:
    program = str(build.bin / "memlat")
    for cpu in ("0", "1"):
        options = ("--sizes", "16384:16384", *QUICK)
        done = run("taskset", "-c", cpu, program, *options)
        if done.returncode and "failed to set pid" in done.stderr:
            pytest.skip(f"no CPU {cpu}")
        assert [row.cpu for row in parse_memlat(done.stdout)] == [int(cpu)]


def test_table_is_for_people(build: Build) -> None:
    done = build.run("memlat", 1, "--sizes", "16384:32768", "--iterations", "10")
    lines = done.stdout.splitlines()
    assert re.match(r"# Seatrial memlat \d+\.\d+\.\d+ \(", lines[0])
    assert lines[2].split()[:2] == ["#", "Size"]
    assert [line.split()[0] for line in lines[3:]] == ["16384", "32768"]


def test_damaged_cycle_is_found(build: Build) -> None:
    done = build.run("memlat_corrupt", 1, *QUICK, "--sizes", "16384:32768")
    assert done.returncode == 1
    assert re.fullmatch(
        r"memlat: \S+: validation failed: 16384 bytes: 255 loads lead back to the "
        r"start, expected 256\n",
        done.stderr,
    )
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--bogus", r"unknown argument '--bogus' \(see --help\)"),
        ("--sizes 65536:16384", "smallest size 65536 is above the largest, 16384"),
        ("--sizes 64:128", "the smallest size has no room for two loads"),
        ("--stride 12", "--stride is not a multiple of an address"),
        ("--loads 100", "--loads is not a multiple of 16"),
        ("--huge-pages big", "'big' is none of: off, transparent, reserved"),
        (f"--max-size {1 << 36}", r"it needs 65536 MiB of memory, available are \d+ "),
        ("-i0", "--iterations: '0' is not an integer from"),
    ],
)
def test_refusals(build: Build, options: str, error: str) -> None:
    done = build.run("memlat", 1, *options.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(rf"memlat: \S+: .*{error}", done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help_and_version(build: Build) -> None:
    text = build.run("memlat", 1, "--help").stdout
    assert text.startswith("Usage: memlat [options]\n\n")
    assert "(default 16384:1073741824)" in text
    version = build.run("memlat", 1, "--version").stdout
    assert re.fullmatch(r"memlat \d+\.\d+\.\d+ \(.+\)\n", version)


def test_full_disk_is_an_error(build: Build) -> None:
    with Path("/dev/full").open("w") as full:
        command = [str(build.bin / "memlat"), "--sizes", "16384:16384", *QUICK]
        assert subprocess.run(command, stdout=full).returncode == 1
