"""Classes of checks, read from their sources without running them."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.paths import checks_dir

_CHOSEN = ("tuning", "placement")
"""What is recorded with the parameters of every case, where it is chosen."""


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
    found: dict[str, CheckVariable] = {}
    for name in reversed(_lineage(check, classes)):
        for place, statement in enumerate(classes[name].body):
            match statement:
                case ast.Assign(
                    targets=[ast.Name(id=variable)],
                    value=ast.Call(func=ast.Name(id="variable"), keywords=keywords),
                ):
                    values = {each.arg: ast.unparse(each.value) for each in keywords}
                    meaning = _text_at(classes[name].body, place + 1)
                    default = values.get("value", "")
                    found[variable] = CheckVariable(check, variable, default, meaning)
                case ast.Assign(targets=[ast.Name(id=variable)], value=value):
                    if variable in found:  # a class sets what its base declares
                        found[variable] = replace(
                            found[variable], default=ast.unparse(value)
                        )
    return list(found.values())


def _text_at(body: Sequence[ast.stmt], place: int) -> str:
    """Return the text that stands as a statement of its own; '' if there is none."""
    match body[place] if place < len(body) else None:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
    return ""


def known_checks(folder: Path) -> frozenset[str]:
    """List the classes of all ReFrame checks below a folder, without running them."""
    return frozenset(
        node.name
        for node in _classes(folder)
        if any("simple_test" in ast.unparse(each) for each in node.decorator_list)
    )


def check_classes(home: Path) -> dict[str, CheckClass]:
    """Describe all checks; what they inherit is in their folder or in this package.

    Raises SeatrialError if one of them has no `reference_file`.
    """
    folder = checks_dir(home)
    classes = {node.name: node for node in _classes(Path(__file__).parent)}
    classes |= {node.name: node for node in _classes(folder)}
    found = {}
    for name in sorted(known_checks(folder)):
        assigned: dict[str, ast.expr] = {}
        for each in reversed(_lineage(name, classes)):
            assigned |= _assigned(classes[each])
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
        found[name] = CheckClass(name, file.value, parameters)
    return found


def _classes(folder: Path) -> list[ast.ClassDef]:
    return [
        node
        for file in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]


def _lineage(name: str, classes: Mapping[str, ast.ClassDef]) -> list[str]:
    """Name a class and those that it inherits from, the nearest first."""
    if name not in classes:
        return []
    bases = [ast.unparse(base).rpartition(".")[2] for base in classes[name].bases]
    further = [each for base in bases for each in _lineage(base, classes)]
    return list(dict.fromkeys([name, *further]))


def _assigned(node: ast.ClassDef) -> dict[str, ast.expr]:
    return {
        target.id: statement.value
        for statement in node.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _values(parameter: ast.Call) -> Sequence[Any] | None:
    try:
        return list(ast.literal_eval(parameter.args[0]))
    except (ValueError, IndexError, TypeError):
        return None
