"""Classes of checks, read from their sources without running them."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.paths import checks_dir

_CHOSEN = ("tuning", "placement")
"""Variables that are recorded with the parameters of a case."""


@dataclass(frozen=True)
class CheckClass:
    """A check: the file of its references; its parameters with their values.

    The values are None where the source does not list them.
    """

    name: str
    reference_file: str
    parameters: Mapping[str, Sequence[Any] | None]


@dataclass(frozen=True)
class CheckVariable:
    """A variable that a check declares: its default as source, and what it means."""

    check: str
    variable: str
    default: str
    meaning: str


def variables_of(folder: Path, check: str) -> list[CheckVariable]:
    """List the variables that a check below a folder declares or inherits there.

    Raises SeatrialError if there is no such check.
    """
    known = known_checks(folder)
    if check not in known:
        raise SeatrialError(
            f"unknown check {check!r}; known checks: {', '.join(sorted(known))}"
        )
    classes = {node.name: node for node in _classes(folder)}
    variables: dict[str, CheckVariable] = {}
    for name in reversed(_lineage(check, classes)):
        body = classes[name].body
        for statement, following in zip_longest(body, body[1:]):
            match statement:
                case ast.Assign(
                    targets=[ast.Name(id=key)],
                    value=ast.Call(func=ast.Name(id="variable"), keywords=keywords),
                ):
                    values = {item.arg: ast.unparse(item.value) for item in keywords}
                    meaning = ""
                    match following:
                        case ast.Expr(value=ast.Constant(value=str(text))):
                            meaning = " ".join(text.split())
                    default = values.get("value", "")
                    variables[key] = CheckVariable(check, key, default, meaning)
                case ast.Assign(targets=[ast.Name(id=key)], value=value):
                    if key in variables:  # a class overrides a variable of its base
                        default = ast.unparse(value)
                        variables[key] = replace(variables[key], default=default)
    return list(variables.values())


def known_checks(folder: Path) -> frozenset[str]:
    """List the classes of all ReFrame checks below a folder, without running them."""
    return frozenset(
        node.name
        for node in _classes(folder)
        if any("simple_test" in ast.unparse(item) for item in node.decorator_list)
    )


def check_classes(home: Path) -> dict[str, CheckClass]:
    """Return all checks; their base classes are in their folder or in this package.

    Raises SeatrialError if one of them has no `reference_file`.
    """
    folder = checks_dir(home)
    classes = {node.name: node for node in _classes(Path(__file__).parent)}
    classes |= {node.name: node for node in _classes(folder)}
    checks = {}
    for name in sorted(known_checks(folder)):
        assigned = {
            target.id: statement.value
            for base in reversed(_lineage(name, classes))
            for statement in classes[base].body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        file = assigned.get("reference_file")
        if not isinstance(file, ast.Constant) or not isinstance(file.value, str):
            raise SeatrialError(
                f"check {name} below {folder}: no reference_file; expected the name of "
                "a YAML file"
            )
        parameters = {
            key: _values(value)
            for key, value in assigned.items()
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "parameter"
        }
        parameters |= dict.fromkeys(_CHOSEN, ())
        checks[name] = CheckClass(name, file.value, parameters)
    return checks


def _classes(folder: Path) -> list[ast.ClassDef]:
    return [
        node
        for file in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]


def _lineage(name: str, classes: Mapping[str, ast.ClassDef]) -> list[str]:
    """Return the names of a class and its bases, the nearest first."""
    if name not in classes:
        return []
    bases = [ast.unparse(base).rpartition(".")[2] for base in classes[name].bases]
    further = [name for base in bases for name in _lineage(base, classes)]
    return list(dict.fromkeys([name, *further]))


def _values(parameter: ast.Call) -> Sequence[Any] | None:
    try:
        return list(ast.literal_eval(parameter.args[0]))
    except (ValueError, IndexError, TypeError):
        return None
