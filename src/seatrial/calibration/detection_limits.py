"""Detection limits of a campaign for each criterion, from the scatter of runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import expm1, isfinite, log1p

import numpy as np

from seatrial.calibration.statistical_power import Passing, Trial
from seatrial.criteria.criteria import Criteria, Criterion
from seatrial.criteria.criterion import LEAST_COUNTED
from seatrial.criteria.methods import Method, smallest_n
from seatrial.judge.findings import Finding
from seatrial.judge.group import Group
from seatrial.judge.multiple_testing import share_of_look
from seatrial.judge.place_groups import groups_of
from seatrial.judge.sampling import History, histories
from seatrial.judge.screening import total_for
from seatrial.judge.variance_components import Spread, components
from seatrial.runs.closed_run import Run

SURE, EVEN = 0.9, 0.5
"""The chances that are planned for."""

_LEAST_RECORDED = 2


@dataclass(frozen=True)
class Prospect:
    """What the planned allocations (`units`) come to, for one criterion.

    `what` tells nodes from the pairs that they make. Of several `cases` it is the one,
    `case`, that scatters most. `scatter` is that of one place from allocation to
    allocation, a share of its level, as `recorded` allocations show; None without.
    `finds_...` is by how much of the limit a place must miss it to be convicted, with a
    chance of one half, of 0.9, and of 0.9 where all places of the machine are suspects;
    `needed_...` are the allocations that convict one which misses it by the slowdown
    asked for. `passes_if` is by how much all must be better than the limit to pass with
    a chance of 0.9, `margin` by how much the worst is in the records, and
    `passes_after` the allocations after which they would all pass.
    """

    criterion: str
    check: str
    model: str
    what: str
    units: int
    convicts_from: int
    passes_from: int
    case: str = ""
    cases: int = 0
    places: int = 0
    recorded: int = 0
    scatter: float | None = None
    finds_even: float | None = None
    finds_sure: float | None = None
    finds_all: float | None = None
    needed_even: int | None = None
    needed_sure: int | None = None
    needed_all: int | None = None
    passes_if: float | None = None
    margin: float | None = None
    passes_after: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Kind:
    """The places of one kind in the case that scatters most."""

    group: Group
    history: History
    spread: Spread
    worst: float
    """The lowest level of a place."""


def prospects(
    criteria: Criteria,
    checks: Sequence[str],
    runs: Sequence[Run],
    units: Mapping[str, int],
    repeats: int,
    slowdown: float | None = None,
) -> list[Prospect]:
    """Return what the planned allocations find, for each criterion of some checks.

    `units` counts allocations by the text of a case; one that is not in it has as many
    as `repeats`.
    """
    wanted = [entry for entry in criteria.criteria if entry.check in checks]
    recorded = list(histories(runs, tuple(checks))) if runs else []
    kinds = {entry.name: list(_kinds(entry, recorded)) for entry in wanted}
    hypotheses = sum(
        len(kind.group.levels) for group in kinds.values() for kind in group
    )
    answers: list[Prospect] = []
    for criterion in wanted:
        worst = _worst(kinds[criterion.name])
        plain = _plain(criterion, criteria, repeats, alone=hypotheses == 1)
        if criterion.model == "every":
            reason = "each value counts: one that misses convicts"
            answers.append(replace(plain, reason=reason))
            continue
        if not worst:
            answers.append(replace(plain, reason=_why_none(criterion, recorded, kinds)))
        for what, kind in worst.items():
            planned = units.get(kind.history.case_text, repeats)
            cases = sum(_what(each.group) == what for each in kinds[criterion.name])
            asked = replace(plain, what=what, units=planned, cases=cases)
            answers.append(_filled(asked, kind, criteria, hypotheses, slowdown))
    return answers


def _plain(
    criterion: Criterion, criteria: Criteria, units: int, *, alone: bool
) -> Prospect:
    """Return the part of a prospect that needs no record."""
    if criterion.model == "every":
        least, passing = 1, LEAST_COUNTED
    else:
        method: Method = "order" if criterion.model == "any" else "t"
        share = share_of_look(1)
        seller = min(criteria.risks.seller, criterion.risks.seller) * share
        least = smallest_n(method, seller)
        least = least if alone or method == "t" else total_for(least)
        passing = smallest_n(method, criterion.risks.buyer * share)
    return Prospect(
        criterion=criterion.name,
        check=criterion.check,
        model=criterion.model,
        what="",
        units=units,
        convicts_from=least,
        passes_from=passing,
    )


def _kinds(criterion: Criterion, recorded: Sequence[History]) -> Iterator[_Kind]:
    """Yield the recorded places that a criterion applies to."""
    for history in recorded:
        key = history.key
        if criterion.model == "every" or not (
            history.metric == criterion.metric
            and history.unit == criterion.unit
            and criterion.applies(
                key.check,
                key.partition,
                key.environment,
                history.parameters,
                history.num_nodes,
            )
        ):
            continue
        data = history.sampled(criterion.statistic)
        for group in groups_of(Finding.of_case(key, "limit"), criterion, data):
            enough = np.isfinite(group.levels).sum(axis=1) >= _LEAST_RECORDED
            levels = group.levels[enough]
            spread = components(levels)
            if isfinite(spread.within) and spread.within > 0:
                yield _Kind(
                    group, history, spread, float(group.at.centre[enough].min())
                )


def _worst(kinds: Sequence[_Kind]) -> dict[str, _Kind]:
    """Choose of each kind of places the case that scatters most."""
    worst: dict[str, _Kind] = {}
    for kind in kinds:
        what = _what(kind.group)
        if what not in worst or kind.spread.within > worst[what].spread.within:
            worst[what] = kind
    return worst


def _what(group: Group) -> str:
    if group.of_pairs:
        return "pairs"
    return "nodes" if group.names["node"].is_not_null().any() else ""


def _why_none(
    criterion: Criterion,
    recorded: Sequence[History],
    kinds: Mapping[str, Sequence[_Kind]],
) -> str:
    own = [
        history
        for history in recorded
        if history.key.check == criterion.check and history.metric == criterion.metric
    ]
    if not own:
        return "no run recorded it"
    most = max(row.sampled(criterion.statistic).values.shape[1] for row in own)
    if most < _LEAST_RECORDED:
        return f"{most} allocation recorded; its scatter takes {_LEAST_RECORDED}"
    return "recorded values are all equal, or no case of it is recorded"


def _filled(
    plain: Prospect,
    kind: _Kind,
    criteria: Criteria,
    hypotheses: int,
    slowdown: float | None,
) -> Prospect:
    """Compute what the planned allocations find."""
    group, criterion = kind.group, kind.group.criterion
    scale, within, units = group.scale, kind.spread.within, plain.units
    share = share_of_look(1)
    risk = min(criteria.risks.seller, criterion.risks.seller) * share
    width = -scale.limit / 2 if group.alike else 0.0
    trial = Trial(scale.method, within, risk, width, hypotheses == 1, len(group.levels))
    of_all = criteria.risks.seller * share / hypotheses
    many = replace(trial, risk=min(risk, of_all))
    passing = Passing(
        scale.method, within, criterion.risks.buyer * share, len(group.levels)
    )
    margin = kind.worst - scale.limit
    answer = replace(
        plain,
        case=kind.history.case_text,
        places=len(group.levels),
        recorded=kind.spread.units,
        scatter=within if scale.logs else _over(within, kind.worst),
        finds_even=_worse(group, trial.smallest(units, EVEN)),
        finds_sure=_worse(group, trial.smallest(units, SURE)),
        finds_all=_worse(group, many.smallest(units, SURE)),
        passes_if=_better(group, passing.smallest(units, SURE)),
        margin=_better(group, margin)
        if margin >= 0
        else -(_worse(group, -margin) or 0),
        passes_after=passing.repeats(margin, SURE) if margin > 0 else None,
    )
    if slowdown is None:
        return answer
    below = _distance(group, slowdown)
    return replace(
        answer,
        needed_even=trial.repeats(below, EVEN),
        needed_sure=trial.repeats(below, SURE),
        needed_all=many.repeats(below, SURE),
    )


def _worse(group: Group, distance: float) -> float | None:
    """Convert a distance below the limit to a share of it; None: infinite."""
    share = _better(group, -distance)
    return None if share is None else -share


def _better(group: Group, distance: float) -> float | None:
    """Convert a distance above the limit to a share of it; None: infinite."""
    if not isfinite(distance):
        return None
    if not group.scale.logs:
        return _over(distance, group.scale.limit)
    return group.scale.sign * expm1(group.scale.sign * distance)


def _distance(group: Group, worse: float) -> float:
    """Convert a share of the limit to a distance below it."""
    if not group.scale.logs:
        return worse * abs(group.scale.limit)
    return -group.scale.sign * log1p(-group.scale.sign * worse)


def _over(value: float, whole: float) -> float | None:
    return value / abs(whole) if whole else None
