"""A system over nights: every metric of its runs with the limits that held then.

Nothing is decided here, and no change is found by statistics: numbers, limits and
changes of the configuration are put beside each other.
"""

import difflib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from seatrial.criteria.criteria import (
    Criteria,
    Criterion,
    kept_criteria,
    recorded_criteria,
)
from seatrial.errors import SeatrialError
from seatrial.judge.sampling import History, histories
from seatrial.model.cases import Case, CaseKey
from seatrial.model.metrics import judged_statistic
from seatrial.model.places import several_rails, with_place
from seatrial.report.trend.changes import Change, criteria_changes, night_changes
from seatrial.report.trend.series import (
    Choice,
    Limit,
    Night,
    Point,
    Series,
    SeriesKey,
    Trend,
)
from seatrial.runs.closed_run import KEPT_CRITERIA, load_run


@dataclass
class _Seen:
    """One run, without its table of numbers."""

    night: Night
    criteria: Criteria | None
    cases: dict[CaseKey, list[Case]]
    points: dict[SeriesKey, Point]


def trend(
    system: str, runs: Sequence[Path], today: Criteria | None, choice: Choice
) -> Trend:
    """Read closed runs of a system, in the order of their start, one after another.

    Every run is verified. Raises SeatrialError if a run is damaged, if something that
    is to be chosen is in none of them, or if nothing is chosen that is a number.
    """
    names: dict[str, set[str]] = {"check": set(), "metric": set(), "environment": set()}
    where: dict[SeriesKey, tuple[Mapping[str, Any], int]] = {}
    seen: list[_Seen] = []
    kept = [recorded_criteria(path) for path in runs]
    ever = _ever([*kept, today])
    before: Mapping[str, Any] | None = None
    last: Criteria | None = None
    for path, recorded in zip(runs, kept, strict=True):
        run = load_run(path)
        _require_same(path, recorded, kept_criteria(run))
        criteria = recorded or today
        changed = night_changes(before, run.manifest) if before else ()
        if recorded and last:
            changed += criteria_changes(last, recorded)
        before, last = run.manifest, recorded or last
        points = {}
        for history in histories([run]):
            names["check"].add(history.key.check)
            names["metric"].add(history.metric)
            names["environment"].add(history.key.environment)
            if _chosen(history, choice, ever):
                for key, point in _points(history, ever):
                    points[key] = point
                    if point.value is not None:
                        where[key] = (history.parameters, history.num_nodes)
        cases: dict[CaseKey, list[Case]] = defaultdict(list)
        for case in run.cases:
            cases[case.key].append(case)
        night = _night(run.manifest, recorded is not None, changed)
        seen.append(_Seen(night, criteria, cases, points))
    wanted = (choice.checks, choice.metrics, choice.environments)
    for (option, known), chosen in zip(names.items(), wanted, strict=True):
        _require_known(option, chosen, known)
    if not where:
        raise SeatrialError(
            f"none of the numbers of {system} in these {len(runs)} runs fits: expected "
            "--check, --metric and --environment that occur together, or none of "
            "them and criteria that apply to some numbers"
        )
    return Trend(
        system=system,
        nights=tuple(each.night for each in seen),
        series=tuple(
            _series(key, where[key], seen, today)
            for key in sorted(where, key=lambda key: (*key[:4], key.num_nodes or 0))
        ),
        since=criteria_changes(last, today) if last and today else (),
    )


def _require_same(path: Path, before: Criteria | None, now: Criteria | None) -> None:
    """Refuse criteria that changed between the choice of numbers and their reading."""
    if (before and before.sha256) != (now and now.sha256):
        raise SeatrialError(
            f"{path / KEPT_CRITERIA}: changed while it was read; expected a run that "
            "no process writes to; try again, on a copy of the run"
        )


def _night(
    manifest: Mapping[str, Any], own_criteria: bool, changes: tuple[Change, ...]
) -> Night:
    return Night(
        run=str(manifest["run"]),
        campaign=str(manifest.get("campaign") or ""),
        started=str(manifest["started"]),
        partial=bool(manifest.get("partial")),
        own_criteria=own_criteria,
        changes=changes,
    )


def _ever(judged: Iterable[Criteria | None]) -> tuple[Criterion, ...] | None:
    """Return all criteria that ever held; None if nothing was ever asked for."""
    files = {each.sha256: each.criteria for each in judged if each is not None}
    return tuple(chain.from_iterable(files.values())) if files else None


def _chosen(
    history: History, choice: Choice, ever: tuple[Criterion, ...] | None
) -> bool:
    """Return True if a metric is chosen; by default if it ever had a criterion.

    Where no run has criteria, the metrics that checks promise stand in for them.
    """
    key = history.key
    if choice.environments and key.environment not in choice.environments:
        return False
    if choice.checks or choice.metrics:
        return (not choice.checks or key.check in choice.checks) and (
            not choice.metrics or history.metric in choice.metrics
        )
    if ever is None:
        return history.declared
    return bool(_criteria_of(history, ever))


def _criteria_of(history: History, criteria: Iterable[Criterion]) -> list[Criterion]:
    key = history.key
    case = (key.partition, key.environment, history.parameters, history.num_nodes)
    return [
        each
        for each in criteria
        if each.metric == history.metric and each.applies(key.check, *case)
    ]


def _points(
    history: History, ever: tuple[Criterion, ...] | None
) -> Iterable[tuple[SeriesKey, Point]]:
    """Return the numbers of the statistic that counts, and of those of criteria."""
    present = {str(name) for name in history.rows["statistic"].unique()}
    asked = {each.statistic for each in _criteria_of(history, ever or ())}
    key = history.key
    placed = history.rows.select("node", "source").null_count().row(0)
    of_places = min(placed) < history.rows.height
    for statistic in sorted({judged_statistic(present), *(asked & present)}, key=str):
        yield (
            SeriesKey(
                key.check,
                key.case,
                key.environment,
                key.partition,
                None if of_places else history.num_nodes,
                *(history.metric, str(statistic)),
                history.unit,
                history.direction,
            ),
            _point(history, str(statistic)),
        )


def _point(history: History, statistic: str) -> Point:
    sample = history.sampled(statistic)
    finite = np.isfinite(sample.values)
    if not finite.any():
        return Point(gap="no finite number")
    values = sample.values[:, finite.any(axis=0)]
    each = np.nanmedian(values, axis=0)
    point = Point(
        value=float(np.median(each)),
        low=float(each.min()),
        high=float(each.max()),
        allocations=each.size,
    )
    if len(values) == 1:
        return point
    known = np.asarray(finite.any(axis=1))
    of_place = np.nanmedian(values[known], axis=1)
    worst = int(
        of_place.argmin() if history.direction == "higher" else of_place.argmax()
    )
    named = with_place(sample.places.filter(known), several_rails(sample.places))
    return replace(
        point,
        worst=float(of_place[worst]),
        worst_place=str(named["place"][worst] or ""),
    )


def _series(
    key: SeriesKey,
    where: tuple[Mapping[str, Any], int],
    seen: Sequence[_Seen],
    today: Criteria | None,
) -> Series:
    case = CaseKey(key.check, key.case, key.partition, key.environment)
    points = []
    for each in seen:
        point = each.points.get(key) or Point(
            gap=_gap(each.cases.get(case, ()), key.num_nodes, each.night)
        )
        limits = _limits(key, where, each.criteria)
        points.append(replace(point, limits=limits))
    return Series(key, tuple(points), _limits(key, where, today))


def _gap(cases: Sequence[Case], num_nodes: int | None, night: Night) -> str:
    """Return the reason why a run has no such number."""
    if not cases:
        part = ", of which this is a part" if night.partial else ""
        return f"not in this run of campaign {night.campaign}{part}"
    for case in cases:
        if case.result == "fail":
            where = f" in {case.phase}" if case.phase else ""
            return f"failed{where}: {case.reason or 'no reason given'}"
    for case in cases:
        if case.result == "skip":
            return f"skipped: {case.reason or 'no reason given'}"
    others = sorted({len(case.nodes) for case in cases} - {num_nodes})
    if others and num_nodes is not None:
        return f"ran on {', '.join(map(str, others))} nodes, not {num_nodes}"
    return "ran, and reported no such number"


def _limits(
    key: SeriesKey, where: tuple[Mapping[str, Any], int], criteria: Criteria | None
) -> tuple[Limit, ...]:
    case = (key.partition, key.environment, *where)
    return tuple(
        Limit(each.name, each.kind, each.limit, each.source)
        for each in (criteria.criteria if criteria else ())
        if each.limit is not None
        and (each.metric, each.unit) == (key.metric, key.unit)
        and each.statistic in (None, key.statistic)
        and each.applies(key.check, *case)
    )


def _require_known(option: str, wanted: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name that no run has, and name the nearest."""
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, 4, 0.5) or sorted(known)[:8]
            raise SeatrialError(
                f"--{option} {name}: in none of these runs; expected one that is, for "
                f"example {', '.join(near) or '(they have none)'}"
            )
