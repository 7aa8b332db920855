"""The references of a system: read, validated, and looked up as ReFrame does it.

The files are those that ReFrame reads through `$ref` (RegressionTest.reference in
its manual). ReFrame itself takes most mistakes in them for "no reference", so each
is refused here, with file and line.
"""

import ast
import datetime
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from seatrial.errors import SeatrialError
from seatrial.metrics import split_flat_name
from seatrial.paths import PUBLISHED, checks_dir
from seatrial.yaml_file import YamlFile

ReferenceKind = Literal["promised", "theoretical", "measured"]

_INDEX_KEYS = ("$system", "$partition", "$environ", "num_nodes")
_PROVENANCE = ("kind", "document", "who", "date", "method")
_OPTIONAL_PROVENANCE = ("clause",)
_NO_LIMITS = (
    "numbers that papers published are history to compare with, and no limits; "
    "expected references with _provenance, of a system under test"
)


@dataclass(frozen=True)
class Limit:
    """A reference with its bounds as absolute numbers, None where there is none.

    `source` names document and clause.
    """

    value: float
    lower: float | None
    upper: float | None
    unit: str
    kind: ReferenceKind
    source: str


@dataclass(frozen=True)
class _Check:
    """The references of one class: a tree of one level per index key, then limits."""

    file: Path
    index: tuple[str, ...]
    tree: dict[Any, Any]


@dataclass(frozen=True)
class References:
    """All references of one system, by class of check."""

    checks: Mapping[str, _Check]

    @classmethod
    def load(cls, folder: Path, known: Collection[str] | None = None) -> "References":
        """Read and validate every `*.yaml` of a system's folder.

        `known` are the classes that may have references; by default those of the
        checks beside the folder. Raises SeatrialError with file, line and what was
        expected there.
        """
        files = sorted(folder.glob("*.yaml"))
        if not files:
            raise SeatrialError(
                f"{folder}: no references there; expected one YAML file per topic"
            )
        if known is None:
            known = known_checks(checks_dir(folder.resolve().parent.parent))
        checks: dict[str, _Check] = {}
        for file in files:
            for name, line, check in _File(file, known).checks():
                if name in checks:
                    raise SeatrialError(
                        f"{file}:{line}: class {name} has references in "
                        f"{checks[name].file} already; expected one place"
                    )
                checks[name] = check
        return cls(checks)

    def limit(
        self,
        check: str,
        partition: str,
        environment: str,
        parameters: Mapping[str, Any],
        num_nodes: int,
        metric: str,
    ) -> Limit | None:
        """Find the limit of a flat metric; None if there is no reference.

        `partition` is the full name, `lab:batch`. As in ReFrame, a text that is no
        key is matched against the keys as regular expressions, in their order.
        """
        if check not in self.checks:
            return None
        values = {
            **parameters,
            "$system": partition.partition(":")[0],
            "$partition": partition,
            "$environ": environment,
            "num_nodes": num_nodes,
        }
        found: Any = self.checks[check].tree
        for name in self.checks[check].index:
            if name not in values or found is None:
                return None
            found = _match(found, values[name])
        return None if found is None else found.get(metric)


def known_checks(folder: Path) -> frozenset[str]:
    """List the classes of all ReFrame checks below a folder, without running them."""
    return frozenset(
        node.name
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and any("simple_test" in ast.unparse(each) for each in node.decorator_list)
    )


def _match(tree: Mapping[Any, Any], key: Any) -> Any:
    if key in tree:
        return tree[key]
    if isinstance(key, str):
        for pattern, value in tree.items():
            if isinstance(pattern, str) and re.match(f"^{pattern}$", key):
                return value
    return None


class _File(YamlFile):
    """One YAML file on its way to limits; every fault is raised with its line."""

    def __init__(self, path: Path, known: Collection[str]) -> None:
        super().__init__(path)
        self.known = known

    def checks(self) -> Iterator[tuple[str, int, _Check]]:
        """Give every class with its line and its limits."""
        top = self.mapping(self.root, "a class of checks, and _provenance")
        if PUBLISHED in top:
            self.refuse(top[PUBLISHED][0], _NO_LIMITS)
        if "_provenance" not in top:
            self.refuse(self.root, "no _provenance; expected one at the top level")
        _, provenance = top.pop("_provenance")
        kind, source = self.provenance(provenance)
        for name, (key, node) in top.items():
            if self.known and name not in self.known:
                names = ", ".join(sorted(self.known))
                self.refuse(key, f"unknown class {name!r}; expected one of {names}")
            entries = self.mapping(node, "$index and its keys")
            if "$index" not in entries:
                self.refuse(key, f"class {name} has no $index; expected a list of keys")
            index = self.index(entries.pop("$index")[1])
            tree = self.tree(entries, index, kind, source)
            yield name, key.start_mark.line + 1, _Check(self.path, index, tree)

    def provenance(self, node: yaml.Node) -> tuple[ReferenceKind, str]:
        """Give kind and source of the file's numbers."""
        entries = self.mapping(node, ", ".join(_PROVENANCE))
        for name in _PROVENANCE:
            if name not in entries:
                self.refuse(node, f"_provenance has no {name}")
        found = {}
        for name, (key, value) in entries.items():
            if name not in (*_PROVENANCE, *_OPTIONAL_PROVENANCE):
                self.refuse(key, f"_provenance has no entry {name!r}")
            found[name] = self.value(value)
            wanted = datetime.date if name == "date" else str
            if not isinstance(found[name], wanted) or found[name] == "":
                what = "a date such as 2026-11-21" if name == "date" else "a text"
                self.refuse(value, f"{name} is {found[name]!r}; expected {what}")
        if found["kind"] == PUBLISHED:
            self.refuse(entries["kind"][1], _NO_LIMITS)
        kinds = get_args(ReferenceKind)
        if found["kind"] not in kinds:
            self.refuse(
                entries["kind"][1],
                f"kind is {found['kind']!r}; expected one of {', '.join(kinds)}",
            )
        source = [found["document"], found.get("clause")]
        return found["kind"], ", ".join(filter(None, source))

    def index(self, node: yaml.Node) -> tuple[str, ...]:
        """Give the keys that the numbers of a class depend on."""
        index = self.value(node)
        expected = f"a list of {', '.join(_INDEX_KEYS)} or parameters of the check"
        if not isinstance(index, list) or not index:
            self.refuse(node, f"$index is {index!r}; expected {expected}")
        for name in index:
            is_name = isinstance(name, str) and name.isidentifier()
            if name not in _INDEX_KEYS and not is_name:
                self.refuse(node, f"$index holds {name!r}; expected {expected}")
        return tuple(index)

    def tree(
        self,
        entries: dict[Any, tuple[yaml.Node, yaml.Node]],
        index: tuple[str, ...],
        kind: ReferenceKind,
        source: str,
    ) -> dict[Any, Any]:
        """Turn the entries below an index key, or the metrics, into limits."""
        if not index:
            return {
                name: self.limit(name, key, node, kind, source)
                for name, (key, node) in entries.items()
            }
        tree = {}
        for name, (key, node) in entries.items():
            self.verify_key(index[0], name, key)
            what = f"the keys of {index[1]}" if index[1:] else "metrics"
            tree[name] = self.tree(self.mapping(node, what), index[1:], kind, source)
        return tree

    def verify_key(self, index: str, name: Any, key: yaml.Node) -> None:
        """Refuse a key that could never match a value of its index."""
        if index == "num_nodes" and type(name) is not int:
            self.refuse(key, f"{name!r} is no number of nodes; expected 4, not '4'")
        if index.startswith("$") and not isinstance(name, str):
            self.refuse(key, f"{name!r} is no name for {index}; expected a text")
        if isinstance(name, str):
            try:
                re.compile(name)
            except re.error as error:
                self.refuse(key, f"{name!r} is no regular expression: {error}")

    def limit(
        self,
        name: Any,
        key: yaml.Node,
        node: yaml.Node,
        kind: ReferenceKind,
        source: str,
    ) -> Limit:
        """Turn a leaf `[value, lower, upper, unit]` into a limit."""
        try:
            metric, _ = split_flat_name(str(name))
        except ValueError as error:
            self.refuse(key, str(error))
        leaf = self.value(node)
        if not isinstance(leaf, list) or len(leaf) != 4:
            self.refuse(
                node, f"{name} is {leaf!r}; expected [value, lower, upper, unit]"
            )
        value, lower, upper, unit = leaf
        if not _is_number(value) or value < 0:
            self.refuse(
                node, f"{name}: value {value!r}; expected a number >= 0{_hint(value)}"
            )
        least = -1 if value else -math.inf
        if lower is not None and not (_is_number(lower) and least <= lower <= 0):
            expected = f"null or a fraction from {least} to 0"
            self.refuse(node, f"{name}: lower {lower!r}; expected {expected}")
        if upper is not None and not (_is_number(upper) and upper >= 0):
            expected = "null or a fraction >= 0"
            self.refuse(node, f"{name}: upper {upper!r}; expected {expected}")
        if (lower if metric.direction == "higher" else upper) is None:
            side = "a lower" if metric.direction == "higher" else "an upper"
            self.refuse(
                node, f"{name} is better {metric.direction}; expected {side} bound"
            )
        if unit != metric.unit:
            self.refuse(node, f"{name} is in {unit!r}; expected {metric.unit!r}")
        return Limit(
            value=float(value),
            lower=_bound(value, lower),
            upper=_bound(value, upper),
            unit=unit,
            kind=kind,
            source=source,
        )


def _bound(value: float, fraction: float | None) -> float | None:
    """Turn a fraction of the value into a bound; beside 0 it is one already."""
    if fraction is None:
        return None
    return float(value * (1 + fraction) if value else fraction)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _hint(value: Any) -> str:
    looks_so = isinstance(value, str) and re.fullmatch(r"[\d.]+[eE]\d+", value)
    return "; YAML wants the sign: 1.0e+6" if looks_so else ""
