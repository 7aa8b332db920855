"""Criteria of kind `stability`: availability, time between failures, good intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from seatrial.criteria.criteria_types import Entry
from seatrial.criteria.criterion import Risks
from seatrial.criteria.declared import PROVENANCE, provenance_of, where_of
from seatrial.criteria.formula import evaluate
from seatrial.criteria.risk_keys import own_risks
from seatrial.model.causes import COUNTED, Cause
from seatrial.model.spans import span_s
from seatrial.model.yaml_file import Place, YamlFile

KIND = "stability"
Measure = Literal["availability", "mtbf", "intervals"]
OWN_KEYS = (
    *("availability", "mtbf", "intervals"),
    *("causes", "burst", "unobserved", "least_load"),
)
_KEYS = ("kind", "name", *OWN_KEYS, "optional", "risks", *PROVENANCE)

VARIABLES = (
    *("hours", "nodes", "total", "up", "down", "planned", "unobserved"),
    *("scheduler_down", "failures"),
)
"""Names in a formula of availability; hours of nodes unless `hours`, `scheduler_down`,
which are of the machine."""

_EXAMPLE = dict.fromkeys(VARIABLES, 1.0) | {"hours": 24.0, "total": 48.0, "up": 47.0}


@dataclass(frozen=True)
class StabilityCriterion:
    """A criterion of a stability phase.

    `accepted` and `rejected` are MTBFs in hours (of the machine, or of a node), or
    shares of good intervals, each of `length` hours; of availability, `accepted` is the
    limit of the `formula`. Events of these `causes` count; incidents of one cause are
    one event if each begins within `burst_s` of the one before. The criterion is
    undecided if a larger share of the phase is `unobserved`, or if the jobs took less
    than the share `least_load` of the node-hours.
    """

    name: str
    measure: Measure
    accepted: float
    rejected: float
    source: str
    seller: float
    buyer: float
    length: float = 0.0
    per_node: bool = False
    sequential: bool = False
    formula: str = ""
    causes: tuple[Cause, ...] = COUNTED
    burst_s: float = 300.0
    unobserved: float = 0.05
    least_load: float = 0.0
    optional: bool = False
    kind: str = KIND
    where: Mapping[str, str] = field(default_factory=dict, hash=False)
    provenance: Mapping[str, str] = field(
        default_factory=dict, hash=False, compare=False
    )


def stability_criterion(
    file: YamlFile, entry: Entry, defaults: Any, machine: Risks, place: Place
) -> StabilityCriterion:
    """Return the criterion of an entry; `machine` has the risks of the machine.

    Raises SeatrialError with file and line for a key that it cannot have.
    """
    risks = own_risks(file, machine, entry.risks, lambda name: (*place, "risks", name))
    where_of(file, entry, place, KIND, _KEYS, ())
    given = provenance_of(entry, defaults)
    source = ", ".join(given[key] for key in ("document", "clause") if key in given)
    chosen = [key for key in ("availability", "mtbf", "intervals") if _has(entry, key)]
    if len(chosen) != 1:
        expected = "one of availability, mtbf and intervals"
        at = (*place, *(chosen[:1] or ["availability"]))
        file.expected(expected, ", ".join(chosen) or None, at)
    names = {
        "availability": "availability",
        "mtbf": "time between failures",
        "intervals": "intervals without a failure",
    }
    return StabilityCriterion(
        name=entry.name or names[chosen[0]],
        source=source or "criteria.yaml",
        seller=risks.seller,
        buyer=risks.buyer,
        causes=entry.causes or COUNTED,
        burst_s=span_s(entry.burst),
        unobserved=entry.unobserved,
        least_load=entry.least_load,
        optional=entry.optional,
        provenance=given,
        **_measured(file, entry, place),
    )


def _has(entry: Entry, key: str) -> bool:
    return getattr(entry, key) is not None


def _measured(file: YamlFile, entry: Entry, place: Place) -> dict[str, Any]:
    """Return the fields of what the criterion measures."""
    if entry.availability is not None:
        formula = " ".join(entry.availability.formula.split())
        try:
            evaluate(formula, _EXAMPLE)
        except ValueError as error:
            file.refuse((*place, "availability", "formula"), f"{formula!r}: {error}")
        limit = entry.availability.at_least
        parts = {"accepted": limit, "rejected": limit, "formula": formula}
        return {"measure": "availability", **parts}
    if entry.mtbf is not None:
        accepted, rejected = (
            span_s(text) / 3600 for text in (entry.mtbf.accepted, entry.mtbf.rejected)
        )
        if rejected >= accepted:
            expected = f"less than the accepted {entry.mtbf.accepted}"
            file.expected(expected, entry.mtbf.rejected, (*place, "mtbf", "rejected"))
        return {
            "measure": "mtbf",
            "accepted": accepted,
            "rejected": rejected,
            "per_node": entry.mtbf.of == "node",
            "sequential": entry.mtbf.test == "sequential",
        }
    keys = entry.intervals
    assert keys is not None, "one of the three is there"
    if keys.rejected >= keys.accepted:
        expected = f"less than the accepted {keys.accepted:g}"
        file.expected(expected, keys.rejected, (*place, "intervals", "rejected"))
    return {
        "measure": "intervals",
        "accepted": keys.accepted,
        "rejected": keys.rejected,
        "length": span_s(keys.length) / 3600,
    }
