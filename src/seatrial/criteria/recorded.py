"""Criteria of what a run records beside its cases: settings, cables, failures."""

from collections.abc import Iterator

from seatrial.criteria import declared, port_limits, stability
from seatrial.criteria.criteria_types import Entry, File
from seatrial.model.yaml_file import Place, YamlFile

Recorded = (
    declared.DeclaredCriterion | port_limits.PortLimit | stability.StabilityCriterion
)

KINDS = (*declared.KINDS, port_limits.KIND, stability.KIND)


def recorded(
    file: YamlFile, content: File, entry: Entry, place: Place
) -> Iterator[tuple[Recorded, Place]]:
    """Yield the criteria of an entry, with their places.

    Raises SeatrialError with file and line for a key that its kind does not have.
    """
    kind, defaults = entry.kind or content.defaults.kind, content.defaults
    if kind in declared.KINDS:
        one = declared.declared_criterion(file, entry, defaults, kind, place)
        yield one, place
    elif kind == stability.KIND:
        risks = content.risks
        yield stability.stability_criterion(file, entry, defaults, risks, place), place
    else:
        risks = content.risks
        yield from port_limits.port_limits(file, entry, defaults, risks, place)
