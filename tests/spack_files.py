"""Settings, specs and recipes of spack-env, read without Spack."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HOME = Path(__file__).resolve().parents[1]
SPACK_ENV = HOME / "spack-env"
PACKAGES = SPACK_ENV / "repo/spack_repo/seatrial/packages"
SYSTEMS = sorted(folder.name for folder in (SPACK_ENV / "systems").iterdir())
MPIS = sorted(folder.name for folder in (SPACK_ENV / "apps").iterdir())
ENVIRONMENTS = ["mpi", "fabric", *(f"apps/{mpi}" for mpi in MPIS)]
RECIPES = sorted(file.parent.name for file in PACKAGES.glob("*/package.py"))

SECTIONS = {"config", "bootstrap", "concretizer", "definitions", "mirrors", "modules"}
SECTIONS |= {"packages", "repos"}
EXACT = re.compile(r"^@[0-9][0-9A-Za-z.-]*(?= |$)")


def load(name: str) -> Any:
    return yaml.safe_load((SPACK_ENV / name).read_text())


def definitions(file: str) -> dict[str, list[str]]:
    """Return the lists of a definitions.yaml by their names."""
    return {
        name: specs
        for each in load(file)["definitions"]
        for name, specs in each.items()
    }


COMMON = definitions("common/definitions.yaml")
PINNED = load("common/packages.yaml")["packages"]


def spec_of(package: str) -> str:
    """Return the one spec of that package in common/definitions.yaml."""
    (spec,) = (
        spec
        for specs in COMMON.values()
        for spec in specs
        if re.split("[@ ]", spec)[0] == package
    )
    return spec


def values_of(spec: str, variant: str) -> set[str]:
    """Return the values of a variant that takes several, `name=a,b`."""
    found = re.search(rf"\b{variant}=(\S+)", spec)
    assert found, f"{spec}: no {variant}="
    return set(found[1].split(","))


def pin_of(spec: str) -> str:
    """Return a root spec, or its entry of packages.yaml, from the @ on."""
    package, at, rest = spec.partition("@")
    if at:
        return at + rest
    entry = PINNED.get(package.strip(), {})
    return str(next(iter(entry.get("require", [])), ""))


def calls(name: str, function: str) -> Iterator[ast.Call]:
    """Yield the calls of a directive in the class of a recipe."""
    tree = ast.parse((PACKAGES / name / "package.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
            yield node


def versions_of(name: str) -> set[str]:
    return {str(ast.literal_eval(call.args[0])) for call in calls(name, "version")}


def class_of(name: str) -> ast.ClassDef:
    tree = ast.parse((PACKAGES / name / "package.py").read_text())
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    return found
