"""Systems of published papers: for comparison, never a limit.

`reference-data/published` holds `papers.yaml`, a file per system with its description
and numbers, and one per paper with what it says of several systems or of none. Each has
`published` at its top, by which `seatrial.calibration.baselines` refuses it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from seatrial.criteria.published_file import FORMS, PublishedFile
from seatrial.criteria.published_numbers import Number, Paper, PublishedSystem
from seatrial.errors import SeatrialError


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
    files = [PublishedFile(path) for path in sorted(folder.glob("*.yaml"))]
    of = {form: [file for file in files if file.form == form] for form in FORMS}
    if len(of["papers"]) != 1:
        raise SeatrialError(
            f"{folder}: {len(of['papers'])} files with `published: papers` there; "
            "expected one, as in reference-data/published of the suite"
        )
    papers = of["papers"][0].papers()
    systems = {file.path.stem: file.system(papers) for file in of["system"]}
    numbers = [number for file in of["paper"] for number in file.of_several(papers)]
    for file in files:
        file.verify_names(systems)
    return Published(
        papers=MappingProxyType(papers),
        systems=MappingProxyType(systems),
        comparisons=tuple(number for number in numbers if number.baselines),
        general=tuple(number for number in numbers if not number.baselines),
    )
