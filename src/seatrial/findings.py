"""What a judgement is made of: findings, the verdict on each node, and on the run."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Verdict = Literal["pass", "fail", "undecided"]
Kind = Literal["limit", "case", "inventory", "node", "replay"]
Row = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """One criterion and what became of it.

    `metric` is the flat name, '' if none; `place` is '', a node, a socket of it
    'cn02 (socket 1)', or a pair 'cn02 - cn03', with the rail where a case used several:
    'cn02 - cn03 (mlx5_1)';
    `n` counts samples, `value` is their median, `limit` the bound that counts for the
    metric's direction, both in `unit`.
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

    @property
    def node(self) -> str:
        """The place without rail and socket: the node, where the place is in one."""
        return self.place.rpartition(" (")[0] or self.place


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
    """The verdict on a run; `suspects` are the nodes named as cause.

    A `replay` of recorded output is no measurement, and never passes.
    """

    run: str
    system: str
    campaign: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    nodes: tuple[NodeVerdict, ...]
    suspects: tuple[str, ...]
    replay: bool = False


class CaseKey(NamedTuple):
    """What makes cases of different repeats the same case."""

    check: str
    case: str
    partition: str
    environment: str


def plain_finding(key: CaseKey, kind: Kind) -> Finding:
    """Make a finding that says nothing yet but what it is about."""
    return Finding(
        kind=kind,
        check=key.check,
        case=key.case,
        environment=key.environment,
        metric="",
        size_bytes=None,
        place="",
        n=0,
        value=None,
        unit="",
        limit=None,
        direction="",
        reference_kind="",
        reference_source="",
        verdict="undecided",
        reason="",
    )
