"""Criteria of kind `counters`: what the ports of the fabric may count."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from seatrial.criteria.criteria_types import Entry
from seatrial.criteria.criterion import Risks
from seatrial.criteria.declared import PROVENANCE, provenance_of, where_of
from seatrial.criteria.risk_keys import own_risks
from seatrial.fabric.quantities import QUANTITIES
from seatrial.model.yaml_file import Place, YamlFile

KIND = "counters"
WHERE = ("class", "node", "port")
"""Keys of `where`: columns of the counters, by regular expressions."""

LIMITED = ("bit_errors", *QUANTITIES)
UNITS = ("count", "1/h", "1/bit")
"""Of a limit: of a port in a session; or of all its sessions, per hour or per bit."""

_KEYS = ("kind", "name", "where", "limits", "optional", "risks", *PROVENANCE)


@dataclass(frozen=True)
class PortLimit:
    """The limit of a quantity on the ports that `where` selects, all if it is empty.

    A limit per hour or per bit is that of a Poisson rate: a port fails if its count
    shows a larger rate at the seller's risk, which all ports share, and passes if the
    upper bound at the buyer's risk meets the limit.
    """

    name: str
    quantity: str
    limit: float
    unit: str
    where: Mapping[str, str] = field(hash=False)
    source: str
    seller: float
    buyer: float
    optional: bool = False
    kind: str = KIND
    provenance: Mapping[str, str] = field(
        default_factory=dict, hash=False, compare=False
    )


def port_limits(
    file: YamlFile, entry: Entry, defaults: Any, machine: Risks, place: Place
) -> Iterator[tuple[PortLimit, Place]]:
    """Yield the criterion of each limit of an entry, and where the limit is.

    `machine` has the risks of the machine. Raises SeatrialError with file and line for
    a key or a limit that it cannot have.
    """
    risks = own_risks(file, machine, entry.risks, lambda name: (*place, "risks", name))
    where = where_of(file, entry, place, KIND, _KEYS, WHERE)
    given = provenance_of(entry, defaults)
    named = [given[key] for key in ("document", "clause") if key in given]
    if not entry.limits:
        file.expected("limits of some counters", None, (*place, "limits"))
    apart = ", ".join(f"{key}={value}" for key, value in where.items())
    for quantity, text in entry.limits.items():
        at = (*place, "limits", quantity)
        file.one_of("counters", LIMITED, quantity, at)
        written, unit = text.split()
        file.one_of("units", UNITS, unit, at)
        if unit != "count" and not float(written):
            file.expected("a rate above 0, or 0 count", text, at)
        if unit == "1/bit" and quantity not in ("bit_errors", "symbol_error"):
            file.expected("a limit in count or 1/h", text, at)
        name = f"{entry.name} {quantity}" if entry.name else f"counters {quantity}"
        yield (
            PortLimit(
                name=name + (f" ({apart})" if apart and not entry.name else ""),
                quantity=quantity,
                limit=float(written),
                unit=unit,
                where=where,
                source=", ".join(named) or "criteria.yaml",
                seller=risks.seller,
                buyer=risks.buyer,
                optional=entry.optional,
                provenance=given,
            ),
            at,
        )
