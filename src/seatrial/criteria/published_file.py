"""One file of published numbers: read and validated, each fault with its line."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import yaml

from seatrial.criteria.published_numbers import (
    Kind,
    Number,
    Paper,
    PublishedSystem,
    Qualifier,
    paper_metrics,
)
from seatrial.model.derived import DERIVED
from seatrial.model.yaml_file import YamlFile, yaml_bytes
from seatrial.paths import PUBLISHED

FORMS = ("papers", "system", "paper")
"""What a file can be of."""

SETUP = (
    "node",
    "bus",
    "adapter",
    "firmware",
    "driver",
    "switch",
    "os",
    "mpi",
    "settings",
)
"""What is told of every system, null where its paper says nothing."""

_FORMS = ", ".join(FORMS)
_PAPER = ("authors", "title", "venue", "year")
_SYSTEM = (PUBLISHED, "name", "paper", "description", "setup", "numbers")
_NUMBER = ("place", "metric", "what", "kind")
_MORE = (
    "experiment",
    "value",
    "unit",
    "qualifier",
    "size_bytes",
    "size",
    "parameters",
    "derived",
    "operands",
    "sentence",
    "note",
    "conflict",
)

_Entries = dict[Any, tuple[yaml.Node, yaml.Node]]
_Field = tuple[Callable[[Any], bool], str]


class PublishedFile(YamlFile):
    """One file: `form` says what it is of, `found` are its numbers with their keys."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, yaml_bytes(path))
        self.found: list[tuple[Number, yaml.Node]] = []
        self.top = self.mapping(self.root, f"{PUBLISHED} and what it is of")
        if PUBLISHED not in self.top:
            self.refuse(
                self.root, f"no {PUBLISHED} at the top; expected one of {_FORMS}"
            )
        node = self.top[PUBLISHED][1]
        self.form = self.value(node)
        if self.form not in FORMS:
            self.refuse(node, f"{PUBLISHED} is {self.form!r}; expected one of {_FORMS}")

    def papers(self) -> dict[str, Paper]:
        """Return the papers by their keys."""
        papers = {}
        for name, (_, node) in self.top.items():
            if name != PUBLISHED:
                entries = self.entries(node, name, _PAPER, ("note",))
                papers[name] = Paper(name=name, **self.fields(name, entries))
        return papers

    def system(self, papers: Collection[str]) -> PublishedSystem:
        """Return the system of this file with its numbers."""
        top = self.entries(self.root, "a system", _SYSTEM)
        name = self.name(top["name"][1])
        paper = self.paper(top["paper"][1], papers)
        setup = self.entries(top["setup"][1], "setup", SETUP)
        numbers = self.numbers(top["numbers"][1], paper, systems=(name,))
        return PublishedSystem(
            name=name,
            paper=paper,
            description=self.field(name, "description", top["description"][1]),
            setup=MappingProxyType(
                {
                    key: self.field("setup", key, node)
                    for key, (_, node) in setup.items()
                }
            ),
            numbers=MappingProxyType({number.name: number for number in numbers}),
        )

    def of_several(self, papers: Collection[str]) -> Iterator[Number]:
        """Return the numbers of this file's paper on several systems, or on none."""
        sections = ("comparisons", "numbers")
        top = self.entries(self.root, "a paper", (PUBLISHED, "name"), sections)
        name = self.name(top["name"][1])
        self.paper(top["name"][1], papers)
        if "comparisons" in top:
            owners = ("systems", "baselines")
            yield from self.numbers(top["comparisons"][1], name, required=owners)
        if "numbers" in top:
            yield from self.numbers(top["numbers"][1], name, optional=("systems",))

    def verify_names(self, systems: Mapping[str, PublishedSystem]) -> None:
        """Refuse systems and operands that are nowhere in the folder."""
        for number, key in self.found:
            for system in (*number.systems, *number.baselines):
                if system not in systems:
                    known = ", ".join(systems)
                    self.refuse(key, f"unknown system {system!r}; expected {known}")
            for owner, name in number.located_operands():
                if name not in systems[owner].numbers:
                    self.refuse(key, f"operand {name!r} is no number of {owner}")

    def name(self, node: yaml.Node) -> str:
        """Return the subject; it must equal the file stem."""
        if self.value(node) != self.path.stem:
            self.refuse(
                node, f"name is {self.value(node)!r}; expected {self.path.stem!r}"
            )
        return self.path.stem

    def paper(self, node: yaml.Node, papers: Collection[str]) -> str:
        """Return the key of a paper."""
        name: str = self.field("the file", "paper", node)
        if name not in papers:
            self.refuse(node, f"unknown paper {name!r}; expected {', '.join(papers)}")
        return name

    def numbers(
        self,
        node: yaml.Node,
        paper: str,
        systems: tuple[str, ...] = (),
        required: tuple[str, ...] = (),
        optional: tuple[str, ...] = (),
    ) -> list[Number]:
        """Return the numbers of a mapping in their order, each by its name."""
        numbers = []
        for name, (key, row) in self.mapping(node, "numbers by their names").items():
            if not _is_text(name):
                self.refuse(key, f"name of a number is {name!r}; expected a text")
            entries = self.entries(
                row, name, (*_NUMBER, *required), (*_MORE, *optional)
            )
            fields = {"systems": systems, **self.fields(name, entries)}
            number = Number(name=name, paper=paper, **fields)
            if reason := _fault(number):
                self.refuse(key, f"{name}: {reason}")
            self.found.append((number, key))
            numbers.append(number)
        return numbers

    def entries(
        self,
        node: yaml.Node | None,
        of: object,
        required: tuple[str, ...],
        optional: tuple[str, ...] = (),
    ) -> _Entries:
        """Return the entries of a mapping that has these keys and no others."""
        found = self.mapping(node, ", ".join(required))
        known = ", ".join((*required, *optional))
        for name, (key, _) in found.items():
            if name not in (*required, *optional):
                self.refuse(key, f"{of} has no entry {name!r}; expected {known}")
        for name in required:
            if name not in found:
                self.refuse(node, f"{of} has no {name}; expected {known}")
        return found

    def fields(self, of: object, entries: _Entries) -> dict[str, Any]:
        """Return the values of entries by name."""
        return {name: self.field(of, name, node) for name, (_, node) in entries.items()}

    def field(self, of: object, name: str, node: yaml.Node) -> Any:
        """Return the value of a field; raise an error if its type is wrong."""
        value = self.value(node)
        is_valid, expected = _FIELDS.get(name, _TEXT)
        if not is_valid(value):
            self.refuse(node, f"{of}: {name} is {value!r}; expected {expected}")
        if isinstance(value, dict):
            return MappingProxyType(value)
        return tuple(value) if isinstance(value, list) else value


def _fault(number: Number) -> str | None:
    """Return the contradiction in a number; None if there is none."""
    if number.kind == "shape":
        if number.value is not None or number.unit is not None:
            return "a shape with a value or unit; expected a sentence only"
        if number.sentence is None:
            return "a shape without a sentence; expected the paper's"
    elif number.value is None:
        return f"no value; expected one of the kind {number.kind}"
    else:
        metric = paper_metrics()[number.metric]
        units = ("1", "%") if number.kind == "ratio" else (metric.unit,)
        if number.unit not in units:
            return f"unit is {number.unit!r}; expected {' or '.join(map(repr, units))}"
    if number.size is not None and number.size_bytes is not None:
        return "size and size_bytes; expected one of them"
    if number.operands and not (
        len(number.operands) == 2 and number.derived and number.systems
    ):
        return "operands; expected two, of systems, and derived with their formula"
    if {*number.systems} & {*number.baselines}:
        return "a system is its own baseline; expected another"
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_value(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value > 0


def _is_parameters(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_text(name) and (_is_count(entry) or _is_text(entry))
        for name, entry in value.items()
    )


def _is_experiment(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"E\d\d(-\d\d)?", value))


def _one_of(names: Collection[str]) -> _Field:
    allowed = tuple(names)
    return lambda value: value in allowed, f"one of {', '.join(allowed)}"


_TEXT: _Field = (_is_text, "a text")
_TEXTS: _Field = (_is_texts, "a list of texts")
_OR_NULL: _Field = (lambda value: value is None or _is_text(value), "a text or null")
_FIELDS: dict[str, _Field] = {
    **dict.fromkeys(SETUP, _OR_NULL),
    **dict.fromkeys(("authors", "systems", "baselines", "operands"), _TEXTS),
    "year": (_is_count, "a number such as 2007"),
    "kind": _one_of(get_args(Kind)),
    "qualifier": _one_of(get_args(Qualifier)),
    "metric": _one_of(paper_metrics()),
    "derived": _one_of(DERIVED),
    "experiment": (_is_experiment, "one such as E01 or E08-11"),
    "value": (_is_value, "a number above 0"),
    "size_bytes": (_is_count, "an integer above 0"),
    "parameters": (_is_parameters, "names with a text or an integer above 0 each"),
}
"""What a field may hold, and how to say it; the others hold a text."""
