"""Spack's output, as captured: progress of each package, and failures."""

from pathlib import Path

import pytest

from seatrial.system.spack_lock import read_lock
from seatrial.system.spack_output import (
    Event,
    Failure,
    Kind,
    SpackOutput,
    first_errors,
    listed_hashes,
    mirror_folders,
)

DATA = Path(__file__).parent / "data" / "spack"
SPECS = read_lock(DATA / "openmpi.lock").specs
HPCC = "xphfnh3kqgsgmlabrpmtpik6hvmfwjo2"
ARCHIVE = "2s4innreghdhgdtvkcwynchrgciwcpx2"
STAGE = "/tmp/tester/spack-stage/spack-stage-"


def read(text: str) -> tuple[list[Event], tuple[Failure, ...]]:
    output = SpackOutput(SPECS)
    events = [output.feed(line) for line in text.splitlines(keepends=True)]
    return [event for event in events if event], output.failures()


def captured(name: str) -> tuple[list[Event], tuple[Failure, ...]]:
    return read((DATA / f"{name}.txt").read_text())


def words(events: list[Event]) -> list[str]:
    return [f"{event.kind} {event.spec.name} {event.phase}" for event in events]


SOURCE = [
    "begin compiler-wrapper stage",
    "phase compiler-wrapper install",
    "done compiler-wrapper install",
    "begin gcc-runtime stage",
    "phase gcc-runtime install",
    "done gcc-runtime install",
    "begin seatrial-benchmarks stage",
    "phase seatrial-benchmarks cmake",
    "phase seatrial-benchmarks build",
    "phase seatrial-benchmarks install",
    "done seatrial-benchmarks install",
]
BUILT_OF = {
    "old-source": {"compiler-wrapper", "gcc-runtime", "seatrial-benchmarks"},
    "new-source": {"compiler-wrapper", "gcc-runtime", "seatrial-benchmarks"},
    "old-compile": {"compiler-wrapper", "gcc-runtime", "seatrial-benchmarks"},
    "new-compile": {"compiler-wrapper", "gcc-runtime", "seatrial-benchmarks"},
    "old-checksum": {"compiler-wrapper", "gcc-runtime"},
    "old-missing": {"compiler-wrapper", "gcc-runtime"},
    "new-missing": {"compiler-wrapper", "gcc-runtime"},
    "old-again": set(),
}


def test_every_step_of_a_build() -> None:
    events, failures = captured("old-source")
    assert words(events) == SOURCE
    assert failures == ()


def test_new_installer_tells_the_same_in_another_order() -> None:
    events, failures = captured("new-source")
    assert sorted(words(events)) == sorted(SOURCE)
    assert failures == ()


@pytest.mark.parametrize(("name", "built"), BUILT_OF.items())
def test_what_was_built(name: str, built: set[str]) -> None:
    events, _ = captured(name)
    done = {event.spec.name for event in events if event.kind is Kind.DONE}
    assert done == built


@pytest.mark.parametrize("name", ["old-cached", "new-cached"])
def test_build_cache_is_told_from_source(name: str) -> None:
    events, failures = captured(name)
    done = {event.spec.name: event.phase for event in events if event.kind == "done"}
    assert {"gcc-runtime", "hpcc", "seatrial-benchmarks"} <= set(done)
    assert set(done.values()) == {"cache"}
    begun = [event.spec.name for event in events if event.kind == "begin"]
    assert sorted(begun) == sorted(done), "each begins once, before its end"
    assert failures == ()


MAKE = (
    (
        "../../../../src/hpcc.c:327:13: error: expected declaration specifiers or '...'"
        " before '{' token"
    ),
    "make[1]: *** [Makefile.hpcc:541: ../../../../src/hpcc.o] Error 1",
    "make: *** [Makefile:8: all] Error 2",
)


@pytest.mark.parametrize(
    ("name", "hash_", "phase", "log", "lines"),
    [
        ("old-compile", HPCC, "build", f"{STAGE}hpcc-1.5.0-{HPCC}", MAKE),
        ("new-compile", HPCC, "build", f"{STAGE}hpcc-1.5.0-{HPCC}", ()),
        (
            "new-missing",
            ARCHIVE,
            "stage",
            f"{STAGE}autoconf-archive-2024.10.16-{ARCHIVE}",
            (),
        ),
    ],
)
def test_failure_names_package_phase_and_log(
    name: str, hash_: str, phase: str, log: str, lines: tuple[str, ...]
) -> None:
    _, failures = captured(name)
    log += "/spack-build-out.txt"
    assert failures == (Failure(SPECS[hash_], phase, log, lines),)


@pytest.mark.parametrize(
    ("name", "hash_", "first", "within"),
    [
        ("old-checksum", HPCC, "ChecksumError: sha256 checksum failed for ", "URL = "),
        ("old-missing", ARCHIVE, "FetchError: All fetchers failed for ", "file:///"),
    ],
)
def test_failure_before_the_build(
    name: str, hash_: str, first: str, within: str
) -> None:
    events, (failure,) = captured(name)
    assert failure.spec == SPECS[hash_]
    assert (failure.phase, failure.log) == ("stage", "")
    assert failure.lines[0].startswith(first)
    assert any(within in line for line in failure.lines)
    assert "failed" in [event.kind for event in events]


RELEASED = f"""\
[e] qggmgd4 glibc@2.36 /usr
[ ] oj4v6xw gcc-runtime@12.2.0 fetching from build cache
[ ] oj4v6xw gcc-runtime@12.2.0 relocating (1s)
[+] oj4v6xw gcc-runtime@12.2.0 /home/tester/software/gcc-runtime-12.2.0-oj4v6xw (1s)
[ ] xphfnh3 hpcc@1.5.0 staging
[ ] xphfnh3 hpcc@1.5.0 build (12s)
[x] xphfnh3 hpcc@1.5.0 failed: /tmp/tester/spack-stage-hpcc-{HPCC}-x.log (1m 2s)
==> Error: The following packages failed to install:
hpcc@1.5.0/{HPCC}: /tmp/tester/spack-stage-hpcc-{HPCC}-x.log
"""


def test_layout_of_the_released_installer() -> None:
    events, failures = read(RELEASED)
    assert words(events) == [
        "begin gcc-runtime cache",
        "phase gcc-runtime cache",
        "done gcc-runtime cache",
        "begin hpcc stage",
        "phase hpcc build",
        "failed hpcc build",
    ]
    log = f"/tmp/tester/spack-stage-hpcc-{HPCC}-x.log"
    assert failures == (Failure(SPECS[HPCC], "build", log, ()),)


def test_package_that_only_the_summary_blames() -> None:
    text = f"==> Error: hpcc-1.5.0-{HPCC}: NoVerifyException: signature not trusted\n"
    _, failures = read(text)
    lines = ("NoVerifyException: signature not trusted",)
    assert failures == (Failure(SPECS[HPCC], "stage", "", lines),)


def test_spack_itself_gives_up() -> None:
    _, failures = read("==> Error: Timed out waiting for the lock of the prefix\n")
    lines = ("Timed out waiting for the lock of the prefix",)
    assert failures == (Failure(None, "", "", lines),)


def test_unknown_lines_are_no_events() -> None:
    text = (
        "\n==> Warning: something\nabcdefg other@1.0: finished\n[+] /usr (external x)\n"
    )
    assert read(text) == ([], ())


def test_first_errors_of_a_build_log() -> None:
    log = (DATA / "hpcc-build-out.txt").read_text()
    assert first_errors(log) == MAKE
    assert first_errors("one\n\ntwo\nthree\nfour\n") == ("two", "three", "four")
    assert first_errors("") == ()


def test_mirrors_and_the_list_of_a_build_cache() -> None:
    listing = (
        "sources [s ] file:///p/mirror\n"
        "cache   [ b] file:///p/build-cache\n"
        "both    [sb] /p/both\n"
        "site    [ b] fetch: https://site/cache push: s3://bucket\n"
    )
    assert mirror_folders(listing) == (
        ("/p/build-cache", "/p/both"),
        ("https://site/cache",),
    )
    listing = f"-- linux-debian12-x86_64 / no compilers ---\n{HPCC} hpcc@1.5.0\n\n"
    assert list(listed_hashes(listing)) == [HPCC]
