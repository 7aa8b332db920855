"""Records of a judgement: findings, verdicts on the nodes, verdict on the run."""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from seatrial.criteria.criterion import Criterion
from seatrial.model.cases import CaseKey

Verdict = Literal["pass", "fail", "undecided"]
Kind = Literal["limit", "sameness", "case", "inventory", "node", "replay", "start"]
Row = dict[str, Any]

NOT_MEASURED = "not measured"
"""How the reason of a criterion without any number begins; its cause follows."""

_METHODS = {
    "lognormal": "Student's t of logarithms",
    "normal": "Student's t",
    "any": "order statistics of the median",
    "every": "every single value",
}
_DIGITS = 9
"""Significant digits that count for the digest: more differ between machines."""


@dataclass(frozen=True)
class Finding:
    """One criterion at one place, or at many, and what became of it.

    `metric` is the flat name, '' if none; `place` is '', a node, a socket of it
    'cn02 (socket 1)', or a pair 'cn02 - cn03', with the rail where a case used several:
    'cn02 - cn03 (mlx5_1)'. `n` counts allocations (of all places, where several share
    a finding), `value` is the level that they show; `lower` and `upper` are its
    one-sided confidence bounds, None where there is none. `limit` is what the value is
    held to; all in `unit`. For sameness they are ratios to the typical place. `more`
    is how many further allocations would probably decide, None if not known.
    """

    kind: Kind
    check: str
    case: str
    environment: str
    metric: str
    size_bytes: int | None
    place: str
    n: int
    value: float | None
    unit: str
    limit: float | None
    direction: str
    reference_kind: str
    reference_source: str
    verdict: Verdict | Literal["skipped"]
    reason: str
    criterion: str = ""
    method: str = ""
    lower: float | None = None
    upper: float | None = None
    more: int | None = None
    spread: str = ""
    flags: tuple[str, ...] = ()

    @property
    def node(self) -> str:
        """The place without rail and socket: the node, where the place is in one."""
        return self.place.rpartition(" (")[0] or self.place


@dataclass(frozen=True)
class Subject:
    """The subject of a finding; fields as in `Finding`, '' or None if it has none."""

    kind: Kind
    check: str = ""
    case: str = ""
    environment: str = ""
    metric: str = ""
    size_bytes: int | None = None
    unit: str = ""
    limit: float | None = None
    direction: str = ""
    reference_kind: str = ""
    reference_source: str = ""
    criterion: str = ""
    method: str = ""

    @classmethod
    def of_case(cls, key: CaseKey, kind: Kind = "case") -> "Subject":
        """Return the subject of a finding on a whole case."""
        return cls(kind, key.check, key.case, key.environment)

    def held_to(self, criterion: Criterion) -> "Subject":
        """Return the same subject with the metric, limit and method of a criterion."""
        limit, unit = criterion.limit, criterion.unit
        if criterion.tolerance is not None:
            rest = round(1 - criterion.tolerance, 12)  # 1 - 0.9: 0.09999999999999998
            limit, unit = rest if criterion.direction == "higher" else 1 / rest, "1"
        return replace(
            self,
            metric=criterion.metric,
            unit=unit,
            direction=criterion.direction,
            limit=limit,
            reference_kind=criterion.kind,
            reference_source=criterion.source,
            criterion=criterion.name,
            method=_METHODS[criterion.model],
        )

    def finding(
        self,
        verdict: Verdict | Literal["skipped"],
        reason: str,
        *,
        place: str = "",
        n: int = 0,
        value: float | None = None,
        **further: Any,
    ) -> Finding:
        """Return a finding on this subject."""
        return Finding(
            **vars(self),
            place=place,
            n=n,
            value=value,
            verdict=verdict,
            reason=reason,
            **further,
        )


@dataclass(frozen=True)
class NodeVerdict:
    """One delivered node: `values` maps flat metrics to the node's worst value."""

    name: str
    state: str
    verdict: Verdict
    reason: str
    values: dict[str, float]


@dataclass(frozen=True)
class Judgement:
    """The verdict on a run, and on those judged `further` with it.

    `convicted` are the nodes that fail: the seller's risk that any of them is sound is
    that of the whole machine (family-wise). `suspects` are the places worth a look: of
    a long list of them a known share may be sound (false discovery rate); nodes on
    which MPI programs crash at start more often than by chance are among them. They
    decide nothing. `changed` tells which criteria are not those that held when the data
    were taken; `uncovered` names those of checks that the campaign does not run. A
    `replay` of recorded output is no measurement, and never passes.
    """

    run: str
    system: str
    campaign: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    nodes: tuple[NodeVerdict, ...]
    convicted: tuple[str, ...]
    suspects: tuple[str, ...] = ()
    replay: bool = False
    further: tuple[str, ...] = ()
    criteria_sha256: str = ""
    changed: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()

    @property
    def worth_a_look(self) -> tuple[str, ...]:
        """The suspects, without those that fail or that a failing node speaks for."""
        failing = {*self.convicted}
        failing |= {each.place for each in self.findings if each.verdict == "fail"}
        return tuple(
            place
            for place in self.suspects
            if not failing & {place, place.rpartition(" (")[0]}
        )

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all that is said here, numbers to nine digits.

        The same run and the same criteria give the same, on any machine.
        """
        text = json.dumps(_canonical(vars(self)), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Convert numbers to text of nine digits, and records to dicts.

    asdict() copies what is inside: seconds for a large machine.
    """
    if isinstance(value, Finding | NodeVerdict):
        value = vars(value)
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    if isinstance(value, dict):
        return {key: _canonical(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    return value
