"""Criteria of what a run records beside its cases: settings of nodes, and ports."""

from collections.abc import Iterator

from seatrial.criteria import declared, port_limits
from seatrial.criteria.criteria_types import Entry, File
from seatrial.model.yaml_file import Place, YamlFile

Recorded = declared.DeclaredCriterion | port_limits.PortLimit

KINDS = (declared.KIND, port_limits.KIND)


def recorded(
    file: YamlFile, content: File, entry: Entry, place: Place
) -> Iterator[tuple[Recorded, Place]]:
    """Yield the criteria of an entry, with their places.

    Raises SeatrialError with file and line for a key that its kind does not have.
    """
    if (entry.kind or content.defaults.kind) == port_limits.KIND:
        yield from port_limits.port_limits(
            file, entry, content.defaults, content.risks, place
        )
    else:
        yield declared.declared_criterion(file, entry, content.defaults, place), place
