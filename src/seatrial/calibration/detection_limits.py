"""What a campaign can find: each criterion, with the scatter of recorded runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import expm1, isfinite, log1p
from pathlib import Path

import numpy as np

from seatrial.calibration.group_sequential import looks_of, outcome
from seatrial.calibration.statistical_power import Passing, Trial
from seatrial.criteria.criteria import Criteria, Criterion
from seatrial.criteria.criterion import LEAST_COUNTED
from seatrial.criteria.methods import Method, smallest_n
from seatrial.errors import SeatrialError
from seatrial.judge.findings import Subject
from seatrial.judge.history import History, histories
from seatrial.judge.place_groups import Group, groups_of
from seatrial.judge.screening import total_for
from seatrial.judge.variance_components import Spread, components
from seatrial.runs.closed_run import Run, load_run, read_manifest
from seatrial.runs.fingerprint import differences, fingerprint

SURE, EVEN = 0.9, 0.5
"""The chances that are planned for."""

_MOST_RUNS = 10
_LEAST_RECORDED = 2


@dataclass(frozen=True)
class Prospect:
    """What the planned allocations (`units`) come to, for one criterion.

    `what` tells nodes from the pairs that they make. Of several cases it is the one,
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
class Design:
    """A criterion judged at so many looks, a run at each.

    `units` and `risk` are those of each look; `mean_worse` and `mean_better` the mean
    allocations until it is decided, or all looks are used, at a level that is worse or
    better than the limit by its zone, `undecided_...` the chance that it never is.
    """

    criterion: str
    looks: int
    units: tuple[int, ...]
    risk: tuple[float, ...]
    mean_worse: float
    undecided_worse: float
    mean_better: float
    undecided_better: float


@dataclass(frozen=True)
class _Kind:
    """The places of one kind in the case that scatters most."""

    group: Group
    history: History
    spread: Spread
    worst: float
    """The lowest level of a place."""


def comparable_runs(paths: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Load the newest runs of the configuration of the newest one, oldest first.

    Replays are left out, and runs that do not say on which nodes they were. Give also
    what else was left out, and why.
    """
    manifests = {path: read_manifest(path) for path in paths}
    known = [
        path
        for path, manifest in manifests.items()
        if not manifest.get("replay") and manifest.get("nodes")
    ]
    if not known:
        return [], []
    today = fingerprint(manifests[known[-1]])
    alike, notes = [], []
    for path in known:
        there = fingerprint(manifests[path])
        if not (differences(today, there) or differences(there, today)):
            alike.append(path)
    others = len(known) - len(alike)
    if others:
        notes.append(
            f"{others} older run{'s' * (others > 1)} of another configuration (kernel, "
            "MPI, nodes ...) left out"
        )
    runs = []
    for path in alike[-_MOST_RUNS:]:
        try:
            runs.append(load_run(path))
        except SeatrialError as error:
            notes.append(f"left out: {error}")
    return runs, notes


def prospects(
    criteria: Criteria,
    checks: Sequence[str],
    runs: Sequence[Run],
    units: Mapping[str, int],
    repeats: int,
    slowdown: float | None = None,
) -> tuple[list[Prospect], list[Design]]:
    """Tell for each criterion of some checks what the planned allocations come to.

    `units` counts allocations by the text of a case; one that is not in it has as many
    as `repeats`.
    """
    wanted = [each for each in criteria.criteria if each.check in checks]
    recorded = list(histories(runs, tuple(checks))) if runs else []
    kinds = {each.name: list(_kinds(each, recorded)) for each in wanted}
    hypotheses = sum(
        len(kind.group.levels) for found in kinds.values() for kind in found
    )
    answers: list[Prospect] = []
    designs: list[Design] = []
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
            asked = replace(plain, what=what, units=planned)
            answers.append(_filled(asked, kind, criteria, hypotheses, slowdown))
        if criterion.looks > 1 and worst:
            least = max(worst.values(), key=lambda kind: kind.spread.within)
            designs += _designs(criterion, least, repeats)
    return answers, designs


def _plain(
    criterion: Criterion, criteria: Criteria, units: int, *, alone: bool
) -> Prospect:
    """Say what is known without any record."""
    if criterion.model == "every":
        least, passing = 1, LEAST_COUNTED
    else:
        method: Method = "order" if criterion.model == "any" else "t"
        share = _first_share(criterion, units)
        seller = min(criteria.risks.seller, criterion.risks.seller) * share
        least = smallest_n(method, seller)
        least = least if alone else total_for(least)
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


def _first_share(criterion: Criterion, repeats: int) -> float:
    """Give the share of the risks that the first run may spend."""
    return looks_of(repeats, criterion.looks, criterion.cap)[0].share


def _kinds(criterion: Criterion, recorded: Sequence[History]) -> Iterator[_Kind]:
    """Give the places that a criterion is held against, as they were recorded."""
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
        for group in groups_of(Subject.of_case(key, "limit"), criterion, data):
            enough = np.isfinite(group.levels).sum(axis=1) >= _LEAST_RECORDED
            levels = group.levels[enough]
            spread = components(levels)
            if isfinite(spread.within) and spread.within > 0:
                yield _Kind(group, history, spread, float(group.centre[enough].min()))


def _worst(kinds: Sequence[_Kind]) -> dict[str, _Kind]:
    """Choose of each kind of places the case that scatters most."""
    found: dict[str, _Kind] = {}
    for kind in kinds:
        what = _what(kind.group)
        if what not in found or kind.spread.within > found[what].spread.within:
            found[what] = kind
    return found


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
        each
        for each in recorded
        if each.key.check == criterion.check and each.metric == criterion.metric
    ]
    if not own:
        return "no run recorded it"
    most = max(each.sampled(criterion.statistic).values.shape[1] for each in own)
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
    """Work out what the planned allocations come to."""
    group, criterion = kind.group, kind.group.criterion
    scale, within, units = group.scale, kind.spread.within, plain.units
    share = _first_share(criterion, units)
    risk = min(criteria.risks.seller, criterion.risks.seller) * share
    width = -scale.limit / 2 if group.alike else 0.0
    trial = Trial(scale.method, within, risk, width, alone=hypotheses == 1)
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
    """Turn a distance below the limit into a share of it; None: it is infinite."""
    if not isfinite(distance):
        return None
    if not group.scale.logs:
        return _over(distance, group.scale.limit)
    return -expm1(-distance) if group.scale.sign > 0 else expm1(distance)


def _better(group: Group, distance: float) -> float | None:
    """Turn a distance above the limit into a share of it; None: it is infinite."""
    if not isfinite(distance):
        return None
    if not group.scale.logs:
        return _over(distance, group.scale.limit)
    return expm1(distance) if group.scale.sign > 0 else -expm1(-distance)


def _distance(group: Group, worse: float) -> float:
    """Turn a share of the limit into a distance below it."""
    if not group.scale.logs:
        return worse * abs(group.scale.limit)
    return -log1p(-worse) if group.scale.sign > 0 else log1p(worse)


def _over(value: float, whole: float) -> float | None:
    return value / abs(whole) if whole else None


def _designs(criterion: Criterion, kind: _Kind, repeats: int) -> Iterator[Design]:
    """Lay out the criterion with one look, with two, and so on to what it allows."""
    scale, risks = kind.group.scale, criterion.risks
    distance = scale.width / kind.spread.within
    for number in range(1, criterion.looks + 1):
        looks = looks_of(repeats, number, criterion.cap)
        worse, better = (
            outcome(looks, scale.method, away, risks.seller, risks.buyer)
            for away in (-distance, distance)
        )
        yield Design(
            criterion=criterion.name,
            looks=number,
            units=tuple(look.units for look in looks),
            risk=tuple(risks.seller * look.share for look in looks),
            mean_worse=worse.units,
            undecided_worse=worse.undecided,
            mean_better=better.units,
            undecided_better=better.undecided,
        )
