"""One criterion: the limit of a metric of a check, its method and its risks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from seatrial.criteria.methods import smallest_n
from seatrial.model.metrics import Direction

Kind = Literal[
    "promised",
    "theoretical",
    "measured",
    "sameness",
    "declared",
    "fabric",
    "counters",
    "stability",
]
Model = Literal["any", "normal", "lognormal", "every"]
Bears = Literal["seller", "buyer"]
Deviation = Literal["absent", "drift", "odd"]
"""Verdicts of findings on a fabric that a criterion may let fail."""

LEAST_COUNTED = 2
"""Allocations that a criterion of model every takes: one look is never a pass."""


Risk = Annotated[float, Meta(gt=0, le=0.5, description="a number above 0, at most 0.5")]


class Risks(Struct, frozen=True, forbid_unknown_fields=True):
    """Declared risks, shares of 1.

    `seller` (producer's risk): a compliant machine fails; `buyer`: a non-compliant
    machine passes; `discovery`: share of sound nodes or pairs among the suspects.
    """

    seller: Risk
    buyer: Risk
    discovery: Risk = 0.1


@dataclass(frozen=True)
class Criterion:
    """The limit of one metric of a check on the cases that `where` selects.

    `metric` is the flat name, `statistic` None the first present of
    metrics.STATISTICS. `limit` is in `unit`; None for sameness, which has a
    `tolerance`, the share by which a node may be worse than its class. `zone` is the
    indifference zone, a share of the limit; `cap` the most repeats, and `bears` the
    party that bears the burden of proof at the cap. A missing measurement leaves the
    machine undecided, unless it is `optional`. With a `bad_share`, the value that this
    share of the allocations misses must meet the limit, not the median. It holds for
    runs of these `campaigns`; without names for those of all.
    `source` is document and clause, the formula, or the run; `provenance` holds the
    provenance of the limit, as texts.
    """

    name: str
    check: str
    where: Mapping[str, Any] = field(hash=False)
    metric: str
    unit: str
    direction: Direction
    statistic: str | None
    kind: Kind
    limit: float | None
    tolerance: float | None
    model: Model
    zone: float
    risks: Risks
    cap: int
    bears: Bears
    source: str
    optional: bool = False
    bad_share: float | None = None
    campaigns: tuple[str, ...] = ()
    fingerprint: Mapping[str, str] = field(default_factory=dict, hash=False)
    provenance: Mapping[str, str] = field(
        default_factory=dict, hash=False, compare=False
    )

    def holds_in(self, campaign: str) -> bool:
        """Return True if runs of a campaign are held to it."""
        return not self.campaigns or campaign in self.campaigns

    def applies(
        self,
        check: str,
        partition: str,
        environment: str,
        parameters: Mapping[str, Any],
        num_nodes: int,
    ) -> bool:
        """Return True if it covers a case; `partition` is the full name, `lab:batch`.

        As in ReFrame's `$ref`, a text that is not the key itself is matched against it
        as a regular expression. Unlike there, every criterion that applies counts.
        """
        if check != self.check:
            return False
        values = {
            **parameters,
            "$system": partition.partition(":")[0],
            "$partition": partition,
            "$environ": environment,
            "num_nodes": num_nodes,
        }
        return all(
            key in values and matches(wanted, values[key])
            for key, wanted in self.where.items()
        )


def matches(wanted: Any, value: Any) -> bool:
    """Return True if a value equals the wanted one, or fits it as a pattern."""
    if wanted == value:
        return True
    if not isinstance(wanted, str) or not isinstance(value, str):
        return False
    return re.fullmatch(wanted, value) is not None


def fewest_allocations(
    model: Model, risk: float, bad_share: float | None = None
) -> int:
    """Return the fewest allocations for a pass of a model at a risk."""
    if model == "every":
        return LEAST_COUNTED
    if bad_share is not None:
        return smallest_n("order", risk, bad_share)
    return smallest_n("order" if model == "any" else "t", risk)


def usual_model(unit: str, limit: float | None) -> Model:
    """Return the model of a metric whose criterion states none.

    Counts, shares and ratios may be 0, and take any distribution; so does a metric with
    a limit of 0, which has no logarithm.
    """
    return "any" if limit == 0 or unit in ("1", "%", "count") else "lognormal"
