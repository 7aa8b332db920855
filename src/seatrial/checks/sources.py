"""Classes of checks, read from their sources without running them."""

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.model.metrics import Metric, own_metric
from seatrial.paths import checks_dir

_NOT_FOR_CAMPAIGNS = {
    *("tool", "experiments", "typical_s", "question", "needs", "extent"),
    *("judged", "judged_if_there", "reference_file", "min_tasks", "output_file"),
    *("calibrate", "replay", "replay_session", "usable_nodes"),
}
"""Variables of base classes: facts of a check, and those that `seatrial run` sets."""


@dataclass(frozen=True)
class CheckClass:
    """A check: its reference file, and the values of its parameters (None: unknown)."""

    name: str
    reference_file: str
    parameters: Mapping[str, Sequence[Any] | None]


@dataclass(frozen=True)
class CheckVariable:
    """A variable of a check, with the source of its default."""

    check: str
    variable: str
    default: str
    meaning: str


def variables_of(folder: Path, check: str) -> list[CheckVariable]:
    """List the variables that a campaign may set of a check below a folder.

    Its base classes are below the folder or in this package. Raises SeatrialError if
    there is no such check.
    """
    known = known_checks(folder)
    if check not in known:
        raise SeatrialError(
            f"unknown check {check!r}; known checks: {', '.join(sorted(known))}"
        )
    variables: dict[str, CheckVariable] = {}
    for name, value, text in _assignments(check, _with_bases(folder)):
        if name in _NOT_FOR_CAMPAIGNS:
            continue
        match value:
            case ast.Call(func=ast.Name(id="variable"), keywords=keywords):
                values = {item.arg: ast.unparse(item.value) for item in keywords}
                meaning = " ".join(text.split())
                default = values.get("value", "")
                variables[name] = CheckVariable(check, name, default, meaning)
            case _ if name in variables:  # a class overrides a variable of its base
                default = ast.unparse(value)
                variables[name] = replace(variables[name], default=default)
    return list(variables.values())


def known_checks(folder: Path) -> frozenset[str]:
    """List the classes of all ReFrame checks below a folder, without running them."""
    return frozenset(name for _, name in _checks(folder))


def files_of(folder: Path, checks: Set[str]) -> list[Path]:
    """Return the files below a folder that ReFrame has to load to run these checks.

    That is the whole folder if a check in it may depend on others, or if the class of
    one of these is not in the sources.
    """
    files = {name: file for file, name in _checks(folder) if name in checks}
    alone = all(b"depends_on" not in file.read_bytes() for file in folder.rglob("*.py"))
    return (
        sorted({*files.values()}) if alone and len(files) == len(checks) else [folder]
    )


def _checks(folder: Path) -> Iterator[tuple[Path, str]]:
    for file, node in _nodes(folder):
        if any("simple_test" in ast.unparse(item) for item in node.decorator_list):
            yield file, node.name


def check_classes(home: Path) -> dict[str, CheckClass]:
    """Return all checks; their base classes are in their folder or in this package.

    Raises SeatrialError if one of them has no `reference_file`.
    """
    folder = checks_dir(home)
    classes = _with_bases(folder)
    checks = {}
    for name in sorted(known_checks(folder)):
        assigned = {key: value for key, value, _ in _assignments(name, classes)}
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
        parameters |= {"tuning": (), "placement": ()}  # recorded with the parameters
        checks[name] = CheckClass(name, file.value, parameters)
    return checks


def own_metrics(folder: Path) -> dict[str, Metric]:
    """Return the metrics that the checks below a folder declare for themselves.

    Raises SeatrialError, with file and line, if a declaration is no list of `Metric`
    with constants, if it is not complete, or if two checks disagree on a metric.
    """
    found: dict[str, Metric] = {}
    for file, node in _nodes(folder):
        for place, metric in _declared(node, file):
            if found.setdefault(metric.name, metric) != metric:
                raise SeatrialError(
                    f"{place}: another check declares metric {metric.name} "
                    f"otherwise: {found[metric.name]}"
                )
    return found


def _declared(check: ast.ClassDef, file: Path) -> Iterator[tuple[str, Metric]]:
    """Yield the metrics of a class with their places in the file."""
    for name, value, _ in _assigned(check):
        if name != "own_metrics":
            continue
        for item in value.elts if isinstance(value, ast.List) else [value]:
            place = f"{file}:{item.lineno}"
            try:
                yield place, own_metric(_metric(item))
            except ValueError as error:
                raise SeatrialError(f"{place}: own_metrics: {error}") from None


def _metric(item: ast.expr) -> Metric:
    match item:
        case ast.Call(func=ast.Name(id="Metric"), args=args, keywords=keywords):
            named = {str(each.arg): _constant(each.value) for each in keywords}
            try:
                return Metric(*map(_constant, args), **named)
            except TypeError:
                expected = "name, unit, direction, meaning and at most area and size"
                raise _unexpected(expected, item) from None
    expected = 'a list such as [Metric("steps", "1/s", "higher", "time steps")]'
    raise _unexpected(expected, item)


def _constant(value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except ValueError:
        raise _unexpected("a constant", value) from None


def _unexpected(expected: str, value: ast.expr) -> ValueError:
    return ValueError(f"expected {expected}, got {ast.unparse(value)}")


def _with_bases(folder: Path) -> dict[str, ast.ClassDef]:
    """Return the classes below a folder, and those of this package that use ReFrame.

    A base of a check does; to parse the others, too, takes four times as long.
    """
    return _classes(Path(__file__).parent, word=b"reframe") | _classes(folder)


def _classes(folder: Path, word: bytes = b"") -> dict[str, ast.ClassDef]:
    return {node.name: node for _, node in _nodes(folder, word)}


def _nodes(folder: Path, word: bytes = b"") -> Iterator[tuple[Path, ast.ClassDef]]:
    """Yield the classes in the files below a folder that contain `word`, with the file.

    Raises SeatrialError if a file is no Python.
    """
    for file in sorted(folder.rglob("*.py")):
        content = file.read_bytes()
        if word not in content:
            continue
        try:
            nodes = _nodes_of(content, str(file))
        except (SyntaxError, ValueError) as error:  # ValueError: a NUL in it
            line = getattr(error, "lineno", None) or 1
            reason = getattr(error, "msg", str(error))
            raise SeatrialError(
                f"{file}:{line}: expected Python, got an error: {reason}. Fix the file."
            ) from error
        for node in nodes:
            yield file, node


@lru_cache(maxsize=1000)  # a command asks for the same classes several times
def _nodes_of(content: bytes, name: str) -> tuple[ast.ClassDef, ...]:
    tree = ast.walk(ast.parse(content, name))
    return tuple(node for node in tree if isinstance(node, ast.ClassDef))


def _assignments(
    check: str, classes: Mapping[str, ast.ClassDef]
) -> Iterator[tuple[str, ast.expr, str]]:
    """Yield the assignments of a class, its bases first: name, value, docstring."""
    for name in reversed(_lineage(check, classes)):
        yield from _assigned(classes[name])


def _assigned(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr, str]]:
    """Yield the assignments in the body of a class, with and without a type."""
    for statement, following in pairwise([*node.body, None]):
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                match following:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield name, value, text
                    case _:
                        yield name, value, ""


def _lineage(name: str, classes: Mapping[str, ast.ClassDef]) -> list[str]:
    """Return the names of a class and its bases, the nearest first.

    A base that several of them share comes after all of these.
    """
    if name not in classes:
        return []
    bases = [ast.unparse(base).rpartition(".")[2] for base in classes[name].bases]
    further = [name for base in bases for name in _lineage(base, classes)]
    return [name, *reversed(dict.fromkeys(reversed(further)))]


def _values(parameter: ast.Call) -> Sequence[Any] | None:
    try:
        return list(ast.literal_eval(parameter.args[0]))
    except (ValueError, IndexError, TypeError):
        return None
