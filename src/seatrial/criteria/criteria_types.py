"""Keys of criteria.yaml with their types."""

import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from seatrial.criteria.absence import AbsentNodes
from seatrial.criteria.criterion import Bears, Deviation, Kind, Model, Risk, Risks
from seatrial.criteria.keys import Metrics, Share, Where
from seatrial.criteria.signatures import Signatures
from seatrial.model.causes import Cause
from seatrial.model.metrics import Direction
from seatrial.model.spans import Span
from seatrial.model.yaml_file import Count, Text
from seatrial.runs.maintenance import MaintenanceKeys

_Date = Annotated[datetime.date, Meta(description="a date as 2026-11-21")]
_Part = Annotated[float, Meta(gt=0, lt=1, description="a number between 0 and 1")]
_Availability = Annotated[
    float, Meta(gt=0, le=1, description="a share above 0, at most 1")
]
_Limit = Annotated[
    str,
    Meta(
        pattern=r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s+\S+\s*$",
        description="a number >= 0 and its unit, such as '5000 us'",
    ),
]
_Formula = Annotated[str | int | float, Meta(description="a formula as 4 * 25 / 8")]
_Facts = Annotated[
    dict[str, Text],
    Meta(min_length=1, description="facts and their texts, such as kernel: 6.1.0"),
]


class SmallerRisks(Struct, frozen=True, forbid_unknown_fields=True):
    """Risks of a criterion, at most those of the machine."""

    seller: Risk | None = None
    buyer: Risk | None = None


class Defaults(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a criterion that all criteria can share."""

    kind: Kind | None = None
    document: Text | None = None
    clause: Text | None = None
    who: Text | None = None
    date: _Date | None = None
    method: Text | None = None
    run: Text | None = None
    fingerprint: _Facts | None = None
    coverage: _Part | None = None
    confidence: _Part | None = None
    n: Count | None = None
    formula: _Formula | None = None
    tolerance: _Part | None = None
    where: Where = {}
    direction: Direction | None = None
    statistic: Text | None = None
    model: Model | None = None
    zone: Share = 0.05
    risks: SmallerRisks = SmallerRisks()
    cap: Count = 20
    looks: Count = 1  # of older files; without effect
    bears: Bears = "seller"
    optional: bool = False
    bad_share: _Part | None = None
    campaigns: Annotated[
        tuple[Text, ...], Meta(min_length=1, description="a list of campaigns")
    ] = ()


class AvailabilityKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """The least availability of a stability phase, and its formula."""

    at_least: _Availability
    formula: Text = "up / (up + down)"


class MtbfKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """A test of the mean time between failures."""

    accepted: Span
    rejected: Span
    of: Literal["machine", "node"] = "machine"
    test: Literal["fixed", "sequential"] = "fixed"


class IntervalKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """A test of the share of intervals without a failure."""

    length: Span
    accepted: _Part
    rejected: _Part


class Entry(Defaults, frozen=True, kw_only=True):
    """An entry of the list: of some metrics of one check, of settings, or of cables."""

    check: Text = ""
    name: Text | None = None
    limits: dict[str, _Limit] = {}
    metrics: Metrics | None = None
    fails: Annotated[
        tuple[Deviation, ...], Meta(min_length=1, description="a list of verdicts")
    ] = ()
    availability: AvailabilityKeys | None = None
    mtbf: MtbfKeys | None = None
    intervals: IntervalKeys | None = None
    causes: Annotated[
        tuple[Cause, ...], Meta(min_length=1, description="a list of causes")
    ] = ()
    burst: Span = "5 min"
    unobserved: Share = 0.05
    least_load: Share = 0.0


class File(Struct, forbid_unknown_fields=True):
    """A whole criteria.yaml."""

    schema: Literal[1]
    risks: Risks
    criteria: Annotated[
        tuple[Entry, ...], Meta(min_length=1, description="a list of criteria")
    ]
    defaults: Defaults = Defaults()
    absent_nodes: AbsentNodes | None = None
    signatures: Signatures | None = None
    maintenance: tuple[MaintenanceKeys, ...] = ()
