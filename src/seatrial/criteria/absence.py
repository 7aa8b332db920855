"""Allowance for absence: the number of delivered nodes that a contract lets be away."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta, Struct

from seatrial.model.yaml_file import Text, YamlFile

Of = Literal["machine", "class"]
_Number = Annotated[int, Meta(ge=0, description="a number of nodes, 0 or more")]


class AbsentNodes(Struct, frozen=True, forbid_unknown_fields=True):
    """The key `absent_nodes` of criteria.yaml."""

    at_most: _Number
    of: Of = "machine"
    document: Text | None = None
    clause: Text | None = None


@dataclass(frozen=True)
class Absence:
    """The allowance: at most so many nodes of the machine, or of each class.

    `source` is document and clause.
    """

    at_most: int = 0
    of: Of = "machine"
    source: str = ""

    def permitted(
        self, away: Collection[str], classes: Mapping[str, Collection[str]]
    ) -> frozenset[str]:
        """Return the absent nodes that it covers: all of a group, or none of it."""
        groups: dict[str, set[str]] = defaultdict(set)
        for name in away:
            if self.of == "machine":
                groups[""].add(name)
            for known, own in classes.items() if self.of == "class" else ():
                if name in own:
                    groups[known].add(name)
        covered = [names for names in groups.values() if len(names) <= self.at_most]
        exceeded = [names for names in groups.values() if len(names) > self.at_most]
        return frozenset().union(*covered).difference(*exceeded)

    def words(self, away: int, delivered: int) -> str:
        """Describe it beside the absent nodes: `1 of 1,024, allowed 2 (4711, 4.3)`."""
        each = " of each class" if self.of == "class" else ""
        source = f" ({self.source})" if self.source else ""
        return f"{away:,} of {delivered:,}, allowed {self.at_most:,}{each}{source}"

    def least(self, other: "Absence") -> "Absence":
        """Return the one that allows less; none if they are of different kinds."""
        if self.of != other.of:
            return Absence()
        return min(self, other, key=lambda one: one.at_most)


NONE = Absence()
"""No node may be absent."""


def read_absence(
    file: YamlFile, key: AbsentNodes | None, document: str | None
) -> Absence:
    """Return the allowance of a criteria.yaml: none without the key.

    Raises SeatrialError if it allows nodes and has no clause.
    """
    if key is None:
        return NONE
    if key.at_most and not key.clause:
        file.refuse(("absent_nodes",), "an allowance needs the clause that grants it")
    source = ", ".join(filter(None, (key.document or document, key.clause)))
    return Absence(key.at_most, key.of, source)
