"""Changes of the configuration that fall into the onset of a loss, or explain it."""

from dataclasses import dataclass

import numpy as np

from seatrial.history.causes import Cause, Changes, Comparison, compare
from seatrial.history.entries import Member
from seatrial.history.records import Change

_MOST = 0.5
"""Share of a class that must have changed to explain a loss of the class."""


@dataclass(frozen=True)
class Suspected:
    """A change within the onset of a loss; `explains` says if it is the cause."""

    cause: Cause
    change: Change
    explains: bool


def causes_of(changes: Changes, member: Member) -> list[Cause]:
    """Return the changes of a node, or of nodes of a class, near an onset."""
    nodes = member.of.nodes.tolist() if member.node is None else [member.node]
    return changes.during(member.possible, nodes)


def suspected(
    changes: Changes, member: Member, names: tuple[str, ...]
) -> list[Suspected]:
    """Return the changes near an onset.

    A loss is explained if other nodes with the change lost more than those without. If
    too few without are left, a change of most nodes explains it: that of a class, and
    that of a node if the others lost more than the margin, too.
    """
    found = []
    for cause in causes_of(changes, member):
        compared = _compare(changes, member, cause)
        explains = bool(compared.differs)
        if member.node is None:
            explains = _most(compared) and compared.differs is not False
        elif compared.differs is None:
            explains = _most(compared) and compared.lost > member.of.part.margin
        some = [node for node in member.of.nodes if node in changes.nodes[cause]]
        nodes = tuple(names[node] for node in some)
        found.append(
            Suspected(cause, Change(*cause, nodes, compared.differs), explains)
        )
    return found


def covers(changes: Changes, member: Member, cause: Cause) -> bool:
    """Return True if a cause may explain this loss, once it explains another."""
    return member.node is not None or _most(_compare(changes, member, cause))


def _compare(changes: Changes, member: Member, cause: Cause) -> Comparison:
    """Compare the nodes of the class with the change, but not the convicted node."""
    of = member.of
    all_spans = changes.nodes[cause]
    spans = {
        place: all_spans[node]
        for place, node in enumerate(of.nodes.tolist())
        if node in all_spans
    }
    without = [] if member.node is None else [member.conviction.node]
    metrics = member.conviction.fall.metrics
    return compare(of.part.nodes.past, spans, np.asarray(metrics), without)


def _most(compared: Comparison) -> bool:
    known = compared.changed + compared.unchanged
    return compared.changed > 0 and compared.changed >= _MOST * known
