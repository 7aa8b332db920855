"""Systems of published papers: for comparison, never a limit.

`reference-data/published` holds `papers.yaml`, a file per system with its description
and numbers, and one per paper with what it says of several systems or of none. Each has
`published` at its top, by which `seatrial.calibration.baselines` refuses it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, structs

from seatrial.criteria.published_numbers import (
    Comparison,
    GeneralStatement,
    Number,
    Paper,
    PublishedSystem,
    Setup,
    Statement,
    paper_metrics,
)
from seatrial.errors import SeatrialError
from seatrial.model.derived import DERIVED
from seatrial.model.yaml_file import Place, Text, YamlFile
from seatrial.paths import PUBLISHED

_FORMS = ("papers", "system", "paper")

_Stated = tuple[YamlFile, Place, Number]


class _System(Struct, forbid_unknown_fields=True):
    name: Text
    paper: Text
    description: Text
    setup: Setup
    numbers: dict[Text, Statement]


class _Paper(Struct, forbid_unknown_fields=True):
    name: Text
    comparisons: dict[Text, Comparison] = {}
    numbers: dict[Text, GeneralStatement] = {}


@dataclass(frozen=True)
class Published:
    """All papers and systems, and the numbers of several systems or of none."""

    papers: Mapping[str, Paper]
    systems: Mapping[str, PublishedSystem]
    comparisons: tuple[Number, ...]
    general: tuple[Number, ...]

    def system(self, name: str) -> PublishedSystem:
        """Return a system; SeatrialError names the known ones if it is missing."""
        if name not in self.systems:
            known = ", ".join(self.systems)
            raise SeatrialError(f"no published system {name!r}; known ones: {known}")
        return self.systems[name]

    def numbers(self, system: str) -> tuple[Number, ...]:
        """Return all numbers of a system, alone or in a group of systems."""
        shared = (number for number in self.general if system in number.systems)
        return (*self.system(system).numbers.values(), *shared)

    def compare(self, system: str, baseline: str) -> tuple[Number, ...]:
        """Return the numbers that compare one system with another, in this order."""
        for name in (system, baseline):
            self.system(name)
        return tuple(
            number
            for number in self.comparisons
            if system in number.systems and baseline in number.baselines
        )

    def operands(self, number: Number) -> tuple[Number, ...]:
        """Return the numbers that a number is derived from; most have none."""
        return tuple(
            self.systems[owner].numbers[name]
            for owner, name in number.located_operands()
        )


def load_published(folder: Path) -> Published:
    """Read and validate all `*.yaml` of a folder.

    Raises SeatrialError with file, line, what is wrong there and what was expected.
    """
    files: dict[str, list[YamlFile]] = {form: [] for form in _FORMS}
    for path in sorted(folder.glob("*.yaml")):
        file = YamlFile(path)
        files[_form(file)].append(file)
    if len(files["papers"]) != 1:
        raise SeatrialError(
            f"{folder}: {len(files['papers'])} files with `published: papers` there; "
            "expected one, as in reference-data/published of the suite"
        )
    papers = files["papers"][0].convert(dict[str, Paper])
    stated: list[_Stated] = []
    systems = {}
    for file in files["system"]:
        system = file.convert(_System)
        _check_subject(file, system.name, ("paper",), system.paper, papers)
        owner = {"paper": system.paper, "systems": (system.name,)}
        numbers = list(_numbers(file, "numbers", system.numbers, owner))
        stated += numbers
        systems[system.name] = PublishedSystem(
            name=system.name,
            paper=system.paper,
            description=system.description,
            setup=system.setup,
            numbers=MappingProxyType({number.name: number for *_, number in numbers}),
        )
    several: list[_Stated] = []
    for file in files["paper"]:
        paper = file.convert(_Paper)
        _check_subject(file, paper.name, ("name",), paper.name, papers)
        owner = {"paper": paper.name}
        several += _numbers(file, "comparisons", paper.comparisons, owner)
        several += _numbers(file, "numbers", paper.numbers, owner)
    for file, place, number in stated + several:
        _check_names(file, place, number, systems)
    return Published(
        papers=MappingProxyType(papers),
        systems=MappingProxyType(systems),
        comparisons=tuple(number for *_, number in several if number.baselines),
        general=tuple(number for *_, number in several if not number.baselines),
    )


def _form(file: YamlFile) -> str:
    """Remove `published` from the data of a file, and return it."""
    form = file.data.pop(PUBLISHED, None) if isinstance(file.data, dict) else None
    if form not in _FORMS:
        file.expected(f"one of {', '.join(_FORMS)}", form, (PUBLISHED,))
    return str(form)


def _check_subject(
    file: YamlFile, name: str, place: Place, paper: str, papers: Collection[str]
) -> None:
    """Refuse a name that is not the file's, and an unknown paper."""
    if name != file.path.stem:
        file.expected(repr(file.path.stem), name, ("name",))
    file.one_of("papers", papers, paper, place)


def _numbers(
    file: YamlFile,
    section: str,
    statements: Mapping[str, Statement],
    owner: Mapping[str, Any],
) -> Iterator[_Stated]:
    """Return the numbers of a section, each with its place."""
    for name, statement in statements.items():
        given = {**owner, **structs.asdict(statement)}
        number = Number(name=name, **given)
        _check_number(file, (section, name), number)
        yield file, (section, name), number


def _check_number(file: YamlFile, place: Place, number: Number) -> None:
    """Refuse an unknown metric or formula, and contradictions in a number."""
    metrics = paper_metrics()
    file.one_of("metrics", metrics, number.metric, (*place, "metric"))
    if number.derived is not None:
        file.one_of("formulas", DERIVED, number.derived, (*place, "derived"))
    if number.kind == "shape":
        if number.value is not None or number.unit is not None:
            reason = "a shape with a value or unit; expected a sentence only"
            file.refuse(place, reason)
        if number.sentence is None:
            file.expected("the paper's sentence", None, (*place, "sentence"))
    elif number.value is None:
        file.expected(f"a value of kind {number.kind}", None, (*place, "value"))
    else:
        ratio = number.kind == "ratio"
        units = ("1", "%") if ratio else (metrics[number.metric].unit,)
        if number.unit not in units:
            names = " or ".join(map(repr, units))
            file.expected(names, number.unit, (*place, "unit"))
    if number.size is not None and number.size_bytes is not None:
        file.refuse(place, "size and size_bytes; expected one of them")
    pair = len(number.operands) == 2 and number.derived and number.systems
    if number.operands and not pair:
        names = "two, of systems, and derived with their formula"
        file.expected(names, number.operands, (*place, "operands"))
    if {*number.systems} & {*number.baselines}:
        file.refuse(place, "a system is its own baseline; expected another")


def _check_names(
    file: YamlFile, place: Place, number: Number, systems: Mapping[str, PublishedSystem]
) -> None:
    """Refuse systems and operands that are nowhere in the folder."""
    for system in (*number.systems, *number.baselines):
        file.one_of("systems", systems, system, place)
    for owner, name in number.located_operands():
        if name not in systems[owner].numbers:
            file.refuse(place, f"operand {name!r} is no number of {owner}")
