"""Spack itself: solves, builds, caches and refuses, of the system lab.

Takes SPACK_ROOT, a Spack of the pinned version or near it, which is copied and not
changed; spack-packages beside it or in SEATRIAL_SPACK_PACKAGES; sources that Debian
does not ship in SEATRIAL_SPACK_MIRROR. Nothing that Spack starts reaches the internet.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from spack_site import Site, find_recipes, make_site
from spack_sources import HPCC, IMB, MissingSourceError, Source, fill, fill_benchmarks

HOME = Path(__file__).resolve().parents[1]
SPACK_ROOT = Path(os.environ.get("SPACK_ROOT", "/nowhere"))
ENVIRONMENTS = ["mpi", "apps/openmpi", "apps/mpich", "fabric"]
MPIS = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}
VERSIONS = {"hpcc": "1.5.0", "seatrial-benchmarks": "0.1.0"}
VERSIONS["intel-mpi-benchmarks"] = "2021.7"
SOLVE_S = 90  # of CPU, on 2 cores
CACHED_S = 60
DEBIAN = ["mpicc.openmpi", "mpicc.mpich", "gfortran", "cmake", "gpg"]
DEBIAN += ["autoconf", "automake", "libtoolize", "m4"]

pytestmark = [
    pytest.mark.skipif(
        not (SPACK_ROOT / "bin/spack").is_file(),
        reason="SPACK_ROOT is not set to a Spack: nothing is solved or built",
    ),
    pytest.mark.skipif(
        bool(missing := [name for name in DEBIAN if not shutil.which(name)]),
        reason=f"no {', '.join(missing)}: see systems/lab/packages.yaml",
    ),
]


@dataclass
class Ran:
    """Real actions, printed at the end."""

    lines: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def ran() -> Ran:
    return Ran()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    recipes = find_recipes(SPACK_ROOT)
    if not recipes:
        pytest.skip(
            "no spack-packages beside SPACK_ROOT, nor in SEATRIAL_SPACK_PACKAGES"
        )
    made = make_site(tmp_path_factory.mktemp("site"), SPACK_ROOT, recipes)
    # Indices of all recipes: made once, and no part of a solve.
    index = "import spack.repo as r; r.PATH.provider_index; r.PATH.patch_index"
    made.spack("-e", "mpi", "python", "-c", index)
    yield made
    shutil.rmtree(made.prefix)


@pytest.fixture(scope="module")
def sources(site: Site) -> Site:
    """Return the site with the sources of all packages that are built here."""
    try:
        fill(site.mirror, SPACK_ROOT)
    except MissingSourceError as error:
        pytest.skip(str(error))
    return site


@pytest.fixture(scope="module")
def programs(sources: Site, ran: Ran) -> list[str]:
    """Name the packages to build with each MPI: IMB, too, if its source is there."""
    names = ["seatrial-benchmarks", "hpcc"]
    try:
        fill(sources.mirror, SPACK_ROOT, [IMB])
    except MissingSourceError as error:
        ran.lines.append(f"did not build IMB: {error}")
        return names
    return [*names, "intel-mpi-benchmarks"]


@pytest.fixture(scope="module")
def benchmarks(site: Site) -> Source:
    """Return the tarball of our benchmarks; mirror and recipe name it."""
    return fill_benchmarks(site.prefix)


@pytest.fixture(scope="module")
def solved(site: Site, benchmarks: Source, ran: Ran) -> Site:
    """Return the site with a lock file in each environment."""
    for environment in ENVIRONMENTS:
        result = site.spack("-e", environment, "concretize", "-f")
        assert result.status == 0, result.output
        ran.lines.append(f"solved {environment}: {result.cpu_s:.0f} s of CPU")
        assert result.cpu_s <= SOLVE_S, environment
    return site


@pytest.fixture(scope="module")
def built(solved: Site, programs: list[str], ran: Ran) -> Site:
    """Return the site with every package built that has sources here."""
    for mpi in MPIS:
        result = solved.install(f"apps/{mpi}", *programs)
        assert result.status == 0, result.output
        names = ", ".join(programs)
        ran.lines.append(f"built {names} with {mpi}: {result.wall_s:.0f} s")
    result = solved.install("fabric", "qperf")
    assert result.status == 0, result.output
    ran.lines.append(f"built qperf: {result.wall_s:.0f} s")
    return solved


def linked(program: Path) -> str:
    return subprocess.run(["ldd", program], capture_output=True, text=True).stdout


def mpis_of(program: Path) -> set[str]:
    return set(re.findall(r"libmpi(?:ch)?\.so\.\d+", linked(program)))


def test_recipes_pass_the_audit(site: Site) -> None:
    packages = HOME / "spack-env/repo/spack_repo/seatrial/packages"
    names = [
        path.parent.name.replace("_", "-") for path in packages.glob("*/package.py")
    ]
    result = site.spack("-e", "fabric", "audit", "packages", *names)
    assert result.status == 0, result.output
    assert "passed" in result.output
    assert not re.search("[1-9][0-9]* issue", result.output), result.output


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_environment_solves(solved: Site, environment: str) -> None:
    assert (solved.environments / environment / "spack.lock").is_file()


def test_missing_sources_are_listed_with_their_places(solved: Site) -> None:
    """The advice of the role: each source once, and none of what has no files."""
    step = HOME / "playbooks/roles/spack/files/missing.py"
    elsewhere = solved.prefix / "carried"
    result = solved.spack("-e", "fabric", "python", str(step), str(elsewhere))
    assert result.status == 0, result.output
    listed = dict(line.split(" ", 1) for line in result.output.splitlines())
    assert {"perftest", "mstflint"} <= set(listed)
    assert "gcc-runtime" not in listed
    found = re.search(r"\((\w{40})\); put it at (\S+)", listed["perftest"])
    assert found, listed["perftest"]
    assert found[2].startswith(f"{elsewhere}/_source-cache/git/")
    assert found[2].endswith(f"/{found[1]}.tar.gz")


@pytest.mark.parametrize("mpi", MPIS)
def test_programs_link_the_mpi_of_their_environment(built: Site, mpi: str) -> None:
    programs = sorted(built.view(f"apps/{mpi}").iterdir())
    with_mpi = [program.name for program in programs if mpis_of(program)]
    assert {"hpcc", "mpair", "pairsweep"} <= set(with_mpi)
    for program in programs:
        assert mpis_of(program) <= {MPIS[mpi]}, f"{program}: {linked(program)}"
        assert "not found" not in linked(program)


@pytest.mark.parametrize("mpi", MPIS)
def test_module_set_is_of_one_mpi(built: Site, programs: list[str], mpi: str) -> None:
    refresh = ["module", "tcl", "refresh", "-y", "--delete-tree"]
    result = built.spack("-e", f"apps/{mpi}", *refresh)
    assert result.status == 0, result.output
    modules = built.environments / f"apps/{mpi}/modules"
    names = {
        str(file.relative_to(modules)) for file in modules.rglob("*") if file.is_file()
    }
    version = {"openmpi": "4.1.4", "mpich": "4.0.2"}[mpi]
    assert names - {"module-index.yaml"} == {
        f"{mpi}/{version}",
        *(f"{name}/{VERSIONS[name]}-{mpi}" for name in programs),
    }
    text = (modules / f"hpcc/1.5.0-{mpi}").read_text()
    assert f"module load {mpi}/{version}" in text


def run_two_ranks(site: Site, mpi: str, program: str, *options: str) -> str:
    """Run a program of the view of an MPI; give what it prints."""
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    mpiexec = site.prefix / f"links/{mpi}/bin/mpiexec"
    done = subprocess.run(
        [mpiexec, "-n", "2", site.view(f"apps/{mpi}") / program, *options],
        env={**os.environ, **root},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("mpi", MPIS)
def test_benchmark_runs(built: Site, benchmarks: Source, mpi: str, ran: Ran) -> None:
    options = ["--intra", "--pairs", "1", "--sizes", "8", "--iterations", "100", "-c"]
    output = run_two_ranks(built, mpi, "mpair", *options)
    assert f"tarball {benchmarks.sha256[:12]}" in output
    ran.lines.append(f"ran mpair with {mpi}")


@pytest.mark.parametrize("mpi", MPIS)
def test_imb_runs(built: Site, programs: list[str], mpi: str, ran: Ran) -> None:
    if "intel-mpi-benchmarks" not in programs:
        pytest.skip("the source mirror has no tarball of IMB: Spack built none")
    output = run_two_ranks(built, mpi, "IMB-MPI1", "PingPong", "-iter", "10")
    assert "# Benchmarking PingPong" in output
    ran.lines.append(f"ran IMB-MPI1 with {mpi}")


def test_qperf_is_built(built: Site) -> None:
    assert "librdmacm" in linked(built.view("fabric") / "qperf")


def test_cache_is_signed_and_brings_all_back(
    built: Site, programs: list[str], ran: Ran
) -> None:
    made = built.spack("gpg", "create", "seatrial", "seatrial@example.invalid")
    assert made.status == 0, made.output
    wanted = [
        ("apps/openmpi", programs),
        ("apps/mpich", programs),
        ("fabric", ["qperf"]),
    ]
    for environment, specs in wanted:
        push = ["buildcache", "push", "--update-index", "cache", *specs]
        pushed = built.spack("-e", environment, *push)
        assert pushed.status == 0, pushed.output
    shutil.rmtree(built.prefix / "software")
    wall_s = 0.0
    for environment, specs in wanted:
        result = built.install(environment, "--cache-only", *specs)
        assert result.status == 0, result.output
        wall_s += result.wall_s
    assert wall_s <= CACHED_S
    for mpi, library in MPIS.items():
        assert mpis_of(built.view(f"apps/{mpi}") / "hpcc") == {library}
    ran.lines.append(f"installed all of it from the signed cache: {wall_s:.0f} s")


# ---- Bad input; takes away what was built


def without_hpcc(site: Site) -> Path:
    """Uninstall HPCC and forget its source; give the place of that in the mirror."""
    site.spack("-e", "apps/mpich", "uninstall", "-y", "hpcc")
    shutil.rmtree(site.prefix / "cache/sources", ignore_errors=True)
    return site.mirror / HPCC.place


def test_wrong_checksum_is_refused(built: Site) -> None:
    source = without_hpcc(built)
    content = source.read_bytes()
    source.write_bytes(content + b"x")
    try:
        result = built.install("apps/mpich", "--no-cache", "hpcc")
    finally:
        source.write_bytes(content)
    assert result.status != 0
    assert "sha256 checksum failed" in result.output
    assert HPCC.sha256 in result.output


def test_missing_source_is_named(built: Site) -> None:
    source = without_hpcc(built)
    source.unlink()
    result = built.install("apps/mpich", "--no-cache", "hpcc")
    assert result.status != 0
    assert "All fetchers failed" in result.output
    assert "hpcc-1.5.0" in result.output
    assert str(HPCC.place) in result.output


def test_missing_benchmarks_say_how_to_get_them(
    built: Site, benchmarks: Source
) -> None:
    built.spack("-e", "apps/mpich", "uninstall", "-y", "seatrial-benchmarks")
    shutil.rmtree(built.prefix / "cache/sources", ignore_errors=True)
    (built.mirror / benchmarks.place).unlink()
    result = built.install("apps/mpich", "--no-cache", "seatrial-benchmarks")
    assert result.status != 0
    assert "run `make dist`" in result.output
    assert benchmarks.sha256 in result.output


def test_system_that_is_not_there_is_refused(site: Site) -> None:
    definitions = site.environments / "systems/lab"
    hidden = definitions.with_name("hidden")
    definitions.rename(hidden)
    try:
        result = site.spack("-e", "mpi", "concretize", "-f")
    finally:
        hidden.rename(definitions)
    assert result.status != 0
    assert "systems/lab" in result.output


def test_says_what_ran(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    pins = yaml.safe_load((HOME / "spack-env/pins.yaml").read_text())
    version = subprocess.run(
        [SPACK_ROOT / "bin/spack", "--version"], capture_output=True, text=True
    ).stdout.strip()
    with capsys.disabled():
        print(f"\nSpack {version} (pinned: {pins['spack']['version']}) for real:")
        for line in ran.lines:
            print(f"  {line}")
    assert ran.lines, "nothing was solved or built"
