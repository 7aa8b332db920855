"""`seatrial build` with a stand-in for Spack that prints captured output."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fake_home import SYSTEM, fake_program, write, write_home

from seatrial.cli import main
from seatrial.system.spack_site import SpackSite

DATA = Path(__file__).parent / "data" / "spack"
SEATRIAL = str(Path(sys.executable).with_name("seatrial"))
LOCK = (DATA / "openmpi.lock").read_text()
NAMES = {
    spec["name"]: hash_ for hash_, spec in json.loads(LOCK)["concrete_specs"].items()
}
BUILT = ("compiler-wrapper", "gcc-runtime", "seatrial-benchmarks")
MISSING = "7bcd5d001916f3a50ed7436f4f700e3d2b1bade3ed803219c592d62502a57363"
MIRROR = "/home/tester/prefix/spack/mirror/_source-cache/archive"
PACKAGES = ["seatrial-benchmarks", "hpcc"]


class Site:
    """A home with the system `lab`, whose Spack is the stand-in."""

    def __init__(self, folder: Path) -> None:
        self.home = write_home(folder / "home")
        self.prefix = folder / "prefix" / "spack"
        self.system = json.loads(json.dumps(SYSTEM))
        self.plays: dict[str, Any] = {}
        self.describe("openmpi", specs=["seatrial-benchmarks"])
        program = self.prefix / "spack" / "bin" / "spack"
        program.parent.mkdir(parents=True)
        shutil.copy(DATA / "spack", program)
        self.database({})
        self.play("mirror list", f"cache [ b] file://{self.cache}\n")

    @property
    def cache(self) -> Path:
        return self.prefix / "build-cache"

    def lock(self, mpi: str) -> Path:
        """Name the lock file of an environment."""
        return self.prefix / "spack-env" / "apps" / mpi / "spack.lock"

    def describe(self, *mpis: str, **more: Any) -> None:
        """Write Spack's packages to system.json, and solve these environments."""
        environments = []
        for mpi in mpis:
            kept = f"spack-{mpi}.lock"
            environment = {"name": f"apps/{mpi}", "lock": kept, "sha256": "0" * 64}
            environments.append(environment)
            write(self.home / "etc" / "lab" / kept, LOCK)
            write(self.lock(mpi), LOCK.replace('"openmpi"', f'"{mpi}"'))
        spack = {
            **{"prefix": str(self.prefix), "environments": environments},
            **{"commit": "1" * 40, "packages_commit": "2" * 40, **more},
        }
        self.system["software"]["spack"] = spack
        write(self.home / "etc/lab/system.json", json.dumps(self.system))

    def database(self, prefixes: dict[str, Path]) -> None:
        """Write Spack's database."""
        installs = {
            NAMES[name]: {"path": str(path), "installed": True}
            for name, path in prefixes.items()
        }
        content = json.dumps({"database": {"version": "8", "installs": installs}})
        write(self.prefix / "software" / ".spack-db" / "index.json", content)

    def play(
        self, command: str, output: str, names: tuple[str, ...] = (), **more: Any
    ) -> None:
        """Write a stand-in that prints `output` and installs packages."""
        installs = {NAMES[name]: name for name in names}
        self.plays[command] = {"output": output, "installs": installs, **more}
        write(self.prefix / "plays.json", json.dumps(self.plays))

    def calls(self) -> list[str]:
        """Return the commands that Spack got."""
        return (self.prefix / "calls.txt").read_text().splitlines()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(tmp_path)
    monkeypatch.setenv("SEATRIAL_HOME", str(site.home))
    return site


def seatrial(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["build", "lab", *arguments])


def captured(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


def planned(*arguments: str) -> dict[str, dict[str, Any]]:
    result = seatrial("--plan", "--format", "json", *arguments)
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    return {step["package"]: step for step in content["steps"]}


def test_plan_in_every_format(site: Site) -> None:
    site.describe("openmpi", specs=PACKAGES)
    hpcc = f"hpcc-1.5.0-{NAMES['hpcc']}.spec.manifest.json"
    write(site.cache / "v3/manifests/spec/hpcc" / hpcc, "")
    site.database({"gcc-runtime": site.prefix / "software" / "gcc-runtime"})
    table = seatrial("--plan")
    assert table.exit_code == 0, table.output
    assert "hpcc@1.5.0 " in table.stdout
    last = table.stdout.splitlines()[-1]
    assert last == (
        "2 from source, 1 from a build cache: time unknown, no build of them is "
        "recorded"
    )
    origins = {name: step["origin"] for name, step in planned().items()}
    assert origins == {
        "hpcc": "cache",
        "seatrial-benchmarks": "source",
        "compiler-wrapper": "source",
        "gcc-runtime": "installed",
        "openmpi": "external",
        "openblas": "external",
        "glibc": "external",
        "cmake": "external",
        "gcc": "external",
        "gmake": "external",
    }
    rows = list(
        csv.DictReader(io.StringIO(seatrial("--plan", "--format", "csv").stdout))
    )
    assert {row["package"]: row["origin"] for row in rows} == origins
    assert site.calls() == ["openmpi: mirror list"] * 3, "nothing is installed"


def test_package_counts_once_for_two_environments(site: Site) -> None:
    site.describe("openmpi", "mpich", specs=["seatrial-benchmarks"])
    content = json.loads(seatrial("--plan", "--format", "json").stdout)
    assert content["total"] == {"source": 3, "cache": 0, "seconds": 0.0, "unknown": 3}
    mpich = [step for step in content["steps"] if step["environment"] == "apps/mpich"]
    assert {step["origin"] for step in mpich} == {"installed", "external"}


def test_chosen_packages_are_those_with_an_mpi(site: Site) -> None:
    found = SpackSite("lab", site.prefix, ("apps/mpich", "fabric"), ("hpcc",), 0)
    assert found.wanted("apps/mpich") == ("hpcc", "mpich")
    assert found.wanted("fabric") == ()
    assert found.folder("fabric") == site.prefix / "spack-env" / "fabric"


def test_index_of_a_build_cache_elsewhere(site: Site) -> None:
    site.play("mirror list", "site [ b] https://site/cache\n")
    listing = f"-- any --\n{NAMES['seatrial-benchmarks']} seatrial-benchmarks@0.1.0\n"
    site.play("buildcache list", listing)
    assert planned()["seatrial-benchmarks"]["origin"] == "cache"
    site.play("buildcache list", "", status=1)
    result = seatrial("--plan")
    assert result.exit_code == 0
    assert "build cache https://site/cache not taken in: " in result.stderr


def test_build_and_its_record(site: Site) -> None:
    site.describe("openmpi", specs=["seatrial-benchmarks"], jobs=2)
    site.play("openmpi", captured("old-source"), BUILT)
    result = seatrial()
    assert result.exit_code == 0, result.output
    assert "[3/3] built seatrial-benchmarks@0.1.0 (apps/openmpi) (" in result.stdout
    assert "0 failed, 0 s left)" in result.stdout
    assert "playbooks/site.yml` makes modules" in result.stdout
    assert site.calls()[-1] == (
        "openmpi: install --only-concrete --jobs=2 seatrial-benchmarks openmpi"
    )
    (log,) = (site.prefix / "log").iterdir()
    assert captured("old-source") in log.read_text()
    assert f"log: {log}" in result.stdout
    recorded = (site.prefix / "build-times.jsonl").read_text().splitlines()
    assert [json.loads(line)["seconds"] for line in recorded] == [2.5] * 3
    again = seatrial()
    assert again.stdout.startswith("All of it is installed.")
    assert "site.yml" not in again.stdout
    assert (site.prefix / "build-times.jsonl").read_text().splitlines() == recorded


def test_what_spack_brings_along_is_not_counted(site: Site) -> None:
    site.describe("openmpi", specs=PACKAGES)
    content = json.loads(LOCK)["concrete_specs"]
    for name in ("gcc-runtime", *PACKAGES):
        file = f"{name}-{content[NAMES[name]]['version']}-{NAMES[name]}"
        folder = site.cache / "v3" / "manifests" / "spec" / name
        write(folder / f"{file}.spec.manifest.json", "")
    names = ("gcc-runtime", *PACKAGES, "compiler-wrapper")
    site.play("openmpi", captured("old-cached"), names)
    result = seatrial()
    assert result.exit_code == 0, result.output
    assert "0 from source, 3 from a build cache: time unknown" in result.stdout
    counted = [line for line in result.stdout.splitlines() if line.startswith("[")]
    assert [line.split(" (")[0] for line in counted] == [
        "[1/3] cached gcc-runtime@12.2.0",
        "[2/3] cached seatrial-benchmarks@0.1.0",
        "[3/3] cached hpcc@1.5.0",
    ]


def test_record_outlives_what_was_built(site: Site) -> None:
    site.play("openmpi", captured("old-source"), BUILT)
    seatrial()
    shutil.rmtree(site.prefix / "software")
    site.database({})
    with (site.prefix / "build-times.jsonl").open("a") as file:
        file.write('{"hash": "broken off')
    result = seatrial("--plan")
    assert "3 from source, 0 from a build cache: about 8 s" in result.stdout
    assert planned()["seatrial-benchmarks"]["basis"] == "same build"


def test_what_spack_recorded_counts_without_our_file(site: Site) -> None:
    prefix = site.prefix / "software" / "old"
    record = (DATA / "install_times.json").read_text()
    write(prefix / ".spack" / "install_times.json", record)
    content = json.loads(record)
    assert content["hash"] == NAMES["seatrial-benchmarks"]
    site.database({"seatrial-benchmarks": prefix})
    site.describe("mpich", specs=["seatrial-benchmarks"])
    other = site.lock("mpich").read_text()
    write(site.lock("mpich"), other.replace(content["hash"], "a" * 32))
    step = planned()["seatrial-benchmarks"]
    assert step["seconds"] == pytest.approx(content["total"], abs=0.001)
    assert step["basis"] == "other builds"


def test_failed_build_names_package_phase_and_log(site: Site) -> None:
    site.describe("openmpi", specs=PACKAGES)
    site.play("openmpi", captured("old-compile"), BUILT, status=1)
    result = seatrial()
    assert result.exit_code == 2
    assert "FAIL hpcc@1.5.0 (apps/openmpi)" in result.stdout
    (log,) = (site.prefix / "log").iterdir()
    assert result.stderr == (
        "seatrial: hpcc@1.5.0 (apps/openmpi) failed in phase build:\n"
        "  ../../../../src/hpcc.c:327:13: error: expected declaration specifiers or "
        "'...' before '{' token\n"
        "  make[1]: *** [Makefile.hpcc:541: ../../../../src/hpcc.o] Error 1\n"
        "  make: *** [Makefile:8: all] Error 2\n"
        "  build log: /tmp/tester/spack-stage/spack-stage-hpcc-1.5.0-"
        f"{NAMES['hpcc']}/spack-build-out.txt\n"
        f"  What Spack printed is in {log}. What it has installed stays: once the "
        "cause is fixed, `seatrial build lab` goes on from there.\n"
    )
    assert "hpcc" not in (site.prefix / "build-times.jsonl").read_text()


def test_first_errors_come_from_the_build_log(site: Site, tmp_path: Path) -> None:
    site.describe("openmpi", specs=PACKAGES)
    log = tmp_path / "spack-build-out.txt"
    shutil.copy(DATA / "hpcc-build-out.txt", log)
    there = f"/tmp/tester/spack-stage/spack-stage-hpcc-1.5.0-{NAMES['hpcc']}"
    output = captured("new-compile").replace(f"{there}/spack-build-out.txt", str(log))
    site.play("openmpi", output, BUILT, status=1)
    result = seatrial()
    assert "hpcc@1.5.0 (apps/openmpi) failed in phase build:\n  ../../" in result.stderr
    assert "Makefile:8: all] Error 2\n" in result.stderr
    assert f"build log: {log}\n" in result.stderr


@pytest.mark.parametrize(
    ("output", "package", "expected"),
    [
        (
            "old-missing",
            "hpl",
            (
                "autoconf-archive@2024.10.16 (apps/openmpi) failed in phase stage:",
                f"its source (sha256 {MISSING}) is not in the mirror",
                "playbooks/mirror.yml` on a machine with internet",
                f"put the file there as {MIRROR}/7b/{MISSING}.tar.xz\n",
                "Not built because of that: hpl@2.3 (apps/openmpi)\n",
            ),
        ),
        (
            "old-checksum",
            "hpcc",
            (
                "hpcc@1.5.0 (apps/openmpi) failed in phase stage:",
                "the source is not what the recipe names, so it is refused: replace",
                f"({MIRROR}/0a/",
                "no build log yet",
            ),
        ),
    ],
)
def test_bad_source(
    site: Site, output: str, package: str, expected: tuple[str, ...]
) -> None:
    site.describe("openmpi", specs=[package])
    site.play("openmpi", captured(output), BUILT[:2], status=1)
    result = seatrial()
    assert result.exit_code == 2
    for text in expected:
        assert text in result.stderr


@pytest.mark.parametrize(
    ("output", "status", "expected"),
    [
        (
            "==> Error: no lock\n",
            1,
            "cannot install the environment apps/openmpi:\n  no lock",
        ),
        (
            "what\nnow\n",
            3,
            "cannot install the environment apps/openmpi:\n  what\n  now",
        ),
        (
            "nonsense\n",
            0,
            "ended without an error, but compiler-wrapper@1.1.0 (apps/openmpi)",
        ),
    ],
)
def test_spack_gives_up(site: Site, output: str, status: int, expected: str) -> None:
    site.play("openmpi", output, status=status)
    result = seatrial()
    assert result.exit_code == 2
    assert expected in result.stderr


def test_one_environment_fails_the_next_is_built(site: Site) -> None:
    site.describe("openmpi", "mpich", specs=PACKAGES)
    site.play("openmpi", captured("old-compile"), BUILT, status=1)
    site.play("mpich", captured("old-compile"), status=1)
    result = seatrial()
    assert [call.split()[0] for call in site.calls()] == [
        "openmpi:",
        "openmpi:",
        "mpich:",
    ]
    assert result.stderr.count("failed in phase build") == 1, "said once"


@pytest.mark.parametrize("trusted", [True, False])
def test_build_of_a_stranger_in_the_cache(site: Site, trusted: bool) -> None:
    site.describe("openmpi", specs=PACKAGES)
    said = "" if trusted else "gpg: Can't check signature: No public key\n"
    site.play("openmpi", said + captured("old-compile"), BUILT, status=1)
    result = seatrial()
    assert result.exit_code == 2
    assert ("whose key is not trusted; put it" in result.stderr) is not trusted


def test_interrupted_build_ends_spack_and_says_that_it_goes_on(site: Site) -> None:
    start = captured("old-source").split("==> seatrial-benchmarks: Executing")[0]
    site.play("openmpi", start, sleep=60)
    process = subprocess.Popen(
        [SEATRIAL, "build", "lab"],
        env={**os.environ, "SEATRIAL_HOME": str(site.home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("[2/3] built gcc-runtime"):
            break
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "what it has installed stays, and `seatrial build lab` goes on" in stderr
    assert (site.prefix / "interrupted").exists()
    assert time.monotonic() - began < 20


def no_spack(site: Site) -> None:
    del site.system["software"]["spack"]
    write(site.home / "etc/lab/system.json", json.dumps(site.system))


def no_program(site: Site) -> None:
    (site.prefix / "spack" / "bin" / "spack").unlink()


def not_solved(site: Site) -> None:
    (site.lock("openmpi")).unlink()


def broken_lock(site: Site) -> None:
    write(site.lock("openmpi"), "{")


def broken_database(site: Site) -> None:
    write(site.prefix / "software" / ".spack-db" / "index.json", "{}")


def unknown_package(site: Site) -> None:
    site.describe("openmpi", specs=["hpccc"])


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (
            no_spack,
            "'lab' has no MPI stack that Spack builds: give one `provider: spack`",
        ),
        (no_program, "bin/spack: missing: Spack of system 'lab' is not prepared"),
        (not_solved, "apps/openmpi/spack.lock: missing: Spack of system 'lab'"),
        (not_solved, "playbooks/site.yml -e spack_install=false` on the control"),
        (broken_lock, "spack.lock: not a lock file of Spack"),
        (broken_database, "index.json: not a database of Spack"),
        (
            unknown_package,
            "no package hpccc in this environment of Spack; it has hpcc,",
        ),
    ],
)
def test_system_is_not_ready(site: Site, damage: Any, expected: str) -> None:
    damage(site)
    result = seatrial("--plan")
    assert result.exit_code == 2
    assert expected in result.stderr
    assert "Traceback" not in result.output


def test_format_is_for_the_plan(site: Site) -> None:
    result = seatrial("--format", "json")
    assert result.exit_code == 2
    assert "--format json is for --plan" in result.stderr


def test_control_machine_asks_the_login_node(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = write_home(tmp_path / "control")
    shutil.rmtree(control / "etc")
    remote = tmp_path / "remote"
    inventory = (
        f"all: {{vars: {{seatrial_prefix: {remote}}}, "
        "children: {login: {hosts: {head: {}}}}}\n"
    )
    write(control / "inventories" / "lab" / "hosts.yml", inventory)
    there = f'SEATRIAL_HOME={site.home} exec {SEATRIAL} "$@"'
    fake_program(remote / "bin", "seatrial", there)
    last = 'for command in "$@"; do :; done\nexec sh -c "$command"'
    fake_program(tmp_path / "bin", "ssh", last)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SEATRIAL_HOME": str(control)}
    command = [SEATRIAL, "build", "lab"]
    done = subprocess.run(
        [*command, "--plan", "--format", "json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert json.loads(done.stdout)["total"]["source"] == 3
    site.play("openmpi", captured("old-compile"), status=1)
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "hpcc@1.5.0 (apps/openmpi) failed in phase build" in done.stderr
    assert "the build on head did not finish" in done.stderr
