"""Allowance for absence: delivered nodes that may be away, and spares for them."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from msgspec import Meta, Struct

from seatrial.model.yaml_file import Text, YamlFile
from seatrial.names import natural_key, node_set
from seatrial.standins.hostlist import expand

Of = Literal["machine", "class"]
_Number = Annotated[int, Meta(ge=0, description="a number of nodes, 0 or more")]


class AbsentNodes(Struct, frozen=True, forbid_unknown_fields=True):
    """The key `absent_nodes` of criteria.yaml."""

    at_most: _Number
    of: Of = "machine"
    document: Text | None = None
    clause: Text | None = None
    spares: Text | None = None


@dataclass(frozen=True)
class Absence:
    """The allowance: at most so many nodes of the machine, or of each class.

    `spares` is a host list of further nodes, each of which may replace an absent one.
    `source` is document and clause.
    """

    at_most: int = 0
    of: Of = "machine"
    source: str = ""
    spares: str = ""

    @property
    def spare_nodes(self) -> tuple[str, ...]:
        """Return the names of the spares, in their order."""
        return tuple(expand(self.spares)) if self.spares else ()

    def replaced(
        self, states: Mapping[str, bool], classes: Mapping[str, Collection[str]]
    ) -> dict[str, str]:
        """Return the spare of each absent node that has one.

        `states` says of each node if it was there all the time. A spare is of all
        classes of the node that it replaces.
        """
        of = {
            node: {name for name, own in classes.items() if node in own}
            for node in states
        }
        spares = [node for node in self.spare_nodes if states.get(node)]
        pairs: dict[str, str] = {}
        for node in sorted(states, key=natural_key):
            if states[node] or node in self.spare_nodes:
                continue
            fit = next((one for one in spares if of[node] and of[node] <= of[one]), "")
            if fit:
                pairs[node] = fit
                spares.remove(fit)
        return pairs

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
        both = [node for node in self.spare_nodes if node in other.spare_nodes]
        spares = node_set(both) if both else ""
        if self.of != other.of:
            return Absence(spares=spares)
        return replace(min(self, other, key=lambda one: one.at_most), spares=spares)


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
    if (key.at_most or key.spares) and not key.clause:
        clause = "the clause that grants the allowance"
        file.expected(clause, None, ("absent_nodes", "clause"))
    source = ", ".join(filter(None, (key.document or document, key.clause)))
    spares = " ".join((key.spares or "").split())
    try:
        names = expand(spares) if spares else []
    except ValueError as error:
        file.refuse(("absent_nodes", "spares"), str(error))
    if len(set(names)) < len(names):
        file.expected("each node once", spares, ("absent_nodes", "spares"))
    return Absence(key.at_most, key.of, source, spares)
