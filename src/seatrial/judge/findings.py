"""Records of a judgement: findings, verdicts on the nodes, verdict on the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from seatrial.criteria.criterion import Bears, Criterion
from seatrial.criteria.recorded import Recorded
from seatrial.judge.digest import digest_of
from seatrial.judge.located_part import LocatedPart
from seatrial.model.cases import CaseKey
from seatrial.names import natural_key
from seatrial.runs.ledger_view import LedgerView

if TYPE_CHECKING:
    from seatrial.judge.stability_findings import Phases

Verdict = Literal["pass", "fail", "not shown", "undecided"]
RunVerdict = Verdict | Literal["pass with waivers"]
"""The verdict on a run: on all of its findings."""

Kind = Literal[
    "limit",
    "sameness",
    "declared",
    "fabric",
    "stability",
    "case",
    "inventory",
    "leaf",
    "node",
    "replay",
    "start",
    "ledger",
]

NOT_MEASURED = "not measured"
"""Start of the reason of a criterion without numbers; the cause follows."""

METHODS = {
    "lognormal": "Student's t of logarithms",
    "normal": "Student's t",
    "any": "order statistics of the median",
    "every": "every single value",
}
_MOST_NAMES = _MOST_EARLIER = 8


@dataclass(frozen=True)
class Finding:
    """One criterion at a place, or at several, with its verdict.

    `metric` is the flat name, '' if none; `place` is '', a node, a socket of it
    'cn02 (socket 1)', or a pair 'cn02 - cn03', with the rail where a case used several:
    'cn02 - cn03 (mlx5_1)'; or a leaf switch 'leaf l3', or the way between two of them,
    'leaf l3 - leaf l4'; or a cable with both ends. `n` counts allocations (of all
    places that share a finding), `value` is their level; `lower` and `upper` are its
    one-sided confidence bounds;
    `limit` is that of the criterion; all in `unit`, None if absent. For sameness they
    are ratios to the typical place. A demonstration test also has what is `accepted`;
    its `limit` is what is rejected. `more` is how many further allocations would
    probably decide, None if not known. `bears` is the party that bears the burden of
    proof of the criterion, '' without one: it decides the exit status of "not shown".
    """

    kind: Kind
    check: str = ""
    case: str = ""
    environment: str = ""
    metric: str = ""
    size_bytes: int | None = None
    place: str = ""
    n: int = 0
    value: float | None = None
    unit: str = ""
    limit: float | None = None
    direction: str = ""
    reference_kind: str = ""
    reference_source: str = ""
    verdict: Verdict | Literal["skipped"] = "undecided"
    reason: str = ""
    criterion: str = ""
    method: str = ""
    lower: float | None = None
    upper: float | None = None
    more: int | None = None
    spread: str = ""
    flags: tuple[str, ...] = ()
    bears: Bears | Literal[""] = ""
    accepted: float | None = None

    @classmethod
    def of_case(cls, key: CaseKey, kind: Kind = "case") -> "Finding":
        """Return a finding on a case, as yet without a verdict."""
        return cls(kind, key.check, key.case, key.environment)

    def held_to(self, criterion: Criterion) -> "Finding":
        """Return the finding with metric, limit and method of a criterion."""
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
            method=METHODS[criterion.model],
            bears=criterion.bears,
        )

    def held_to_declaration(self, criterion: Recorded) -> "Finding":
        """Return the finding with kind, name and source of a criterion."""
        return replace(
            self,
            criterion=criterion.name,
            reference_kind=criterion.kind,
            reference_source=criterion.source,
        )

    def judged(
        self, verdict: Verdict | Literal["skipped"], reason: str, **fields: Any
    ) -> "Finding":
        """Return the finding with verdict, reason and other fields."""
        return replace(self, verdict=verdict, reason=reason, **fields)

    @property
    def node(self) -> str:
        """The place without rail and socket: the node, where the place is in one.

        That of a finding on the fabric is a cable or device, with its rail.
        """
        if self.kind == "fabric":
            return self.place
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
    """The verdict on a run, judged together with `further` runs.

    `convicted` are the failing nodes: the seller's risk that any of them is compliant
    is that of the whole machine (family-wise). `not_shown` are other nodes: they did
    not meet the burden of proof within the agreed allocations. `suspects` are places
    worth a look, which decide nothing: by the false discovery rate a known share is
    compliant; nodes on which MPI programs crash at start more often than by chance are
    among them. `changed` describes criteria that changed after the data were taken;
    `uncovered` names criteria of checks that the campaign does not run. A `replay` of
    recorded output never passes. `ledger` is None for replays and imports. `reasons`
    are those for missing numbers that are signed and count; `notes` say which do not
    count, what data were left out, and what the records of the run cannot show.
    `spoiled` describes cases that lost nodes spoiled, `repeats` the runs that made such
    cases again; `absence` the number of absent nodes and its allowance. `located` are
    parts of the fabric that explain slow pairs; they decide nothing. `waivers` are the
    signed ones that count; their findings have a flag. `phases` are the stability
    phases of the runs.
    """

    run: str
    system: str
    campaign: str
    verdict: RunVerdict
    findings: tuple[Finding, ...]
    nodes: tuple[NodeVerdict, ...]
    convicted: tuple[str, ...]
    suspects: tuple[str, ...] = ()
    replay: bool = False
    further: tuple[str, ...] = ()
    criteria_sha256: str = ""
    changed: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()
    ledger: LedgerView | None = None
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    spoiled: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()
    absence: str = ""
    located: tuple[LocatedPart, ...] = ()
    waivers: tuple[str, ...] = ()
    phases: "Phases | None" = None

    @property
    def bears(self) -> Bears | Literal[""]:
        """The party that bears what is not shown: the seller, if of any finding."""
        parties = {f.bears for f in self.findings if f.verdict == "not shown"}
        return "seller" if "seller" in parties else "buyer" if parties else ""

    @property
    def history(self) -> tuple[str, ...]:
        """The number of the run among all of its campaign, and what is not shown."""
        ledger = self.ledger
        if ledger is None:
            return self.notes
        lines = [f"{ledger.words}"] if ledger.words else []
        if ledger.earlier:
            lines.append(f"earlier runs: {', '.join(_few(ledger.earlier))}")
        return (*lines, *ledger.notes, *self.notes)

    @property
    def applicable(self) -> list[Finding]:
        """The findings without skipped criteria of checks that the campaign lacks."""
        lacking = {("skipped", name) for name in self.uncovered}
        return [f for f in self.findings if (f.verdict, f.criterion) not in lacking]

    @property
    def worth_a_look(self) -> tuple[str, ...]:
        """The suspects that do not fail, and lie on no failing node."""
        failing = self.failing
        return tuple(
            place
            for place in self.suspects
            if not failing & {place, place.rpartition(" (")[0]}
        )

    @property
    def failing(self) -> set[str]:
        """The convicted nodes, and the places of findings that fail."""
        places = {row.place for row in self.findings if row.verdict == "fail"}
        return places.union(self.convicted) - {""}

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the judgement, the same on any machine.

        Ledger, located parts and phases have a part in it by their findings: runs that
        follow change nothing.
        """
        apart = ("ledger", "located", "phases")
        content = {name: part for name, part in vars(self).items() if name not in apart}
        return digest_of(content)


def _few(names: tuple[str, ...]) -> tuple[str, ...]:
    """Shorten a list to the last names; the first entry counts the others."""
    more = len(names) - _MOST_EARLIER
    return (f"{more} others", *names[more:]) if more > 0 else names


def first_of(names: Sequence[str]) -> str:
    """Join the first names of many for a reason; the rest is counted."""
    more = len(names) - _MOST_NAMES
    words = ", ".join(names[:_MOST_NAMES])
    return f"{words} and {more} more" if more > 0 else words


_KIND_ORDER = (
    "ledger",
    "replay",
    "inventory",
    "declared",
    "fabric",
    "stability",
    "start",
    "case",
    "limit",
    "sameness",
    "leaf",
    "node",
)


def place_of_finding(finding: Finding) -> tuple[Any, ...]:
    """Return the key by which findings are sorted in a judgement."""
    return (
        _KIND_ORDER.index(finding.kind),
        finding.check,
        natural_key(finding.case),
        finding.environment,
        finding.size_bytes or 0,
        finding.metric,
        finding.criterion,
        natural_key(finding.place),
    )
