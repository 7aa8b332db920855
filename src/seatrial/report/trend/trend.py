"""A system over nights: every metric of its runs with the limits that held then.

Numbers, limits and changes of the configuration are collected; nothing is judged.
"""

import difflib
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from seatrial.criteria.criteria import Criteria, Criterion, recorded_criteria
from seatrial.errors import SeatrialError
from seatrial.judge.sampling import History, histories
from seatrial.model.cases import Case, CaseKey
from seatrial.model.metrics import judged_statistic
from seatrial.model.places import several_rails, with_place
from seatrial.model.units import counted
from seatrial.report.trend.changes import criteria_changes, night_changes
from seatrial.report.trend.series import (
    Choice,
    Limit,
    Night,
    Point,
    Series,
    SeriesKey,
    Trend,
)
from seatrial.runs.closed_run import KEPT_CRITERIA, Run
from seatrial.runs.verified_cache import verified

_VERSION = 1
"""Version of `_Numbers`; kept ones of others are computed anew."""


class _Numbers(msgspec.Struct, frozen=True):
    """The chosen numbers of one run, and what a trend says about the run.

    `manifest` has no checksums. `criteria` is the SHA-256 of the criteria that the run
    kept, '' without. `names` are all its checks, metrics and environments, by option.
    `measured` has parameters and number of nodes of each series with a number.
    """

    manifest: dict[str, Any]
    criteria: str
    cases: tuple[Case, ...]
    names: dict[str, set[str]]
    points: list[tuple[SeriesKey, Point]]
    measured: list[tuple[SeriesKey, dict[str, Any], int]]


@dataclass(frozen=True)
class _Read:
    """One run, without its table of numbers."""

    night: Night
    criteria: Criteria | None
    cases: dict[CaseKey, list[Case]]
    points: dict[SeriesKey, Point]


def trend(
    system: str, runs: Sequence[Path], today: Criteria | None, choice: Choice
) -> Trend:
    """Read and verify closed runs of a system, in the order of their start.

    Raises SeatrialError for a damaged run, an unknown name, or a choice of no number.
    """
    names: dict[str, set[str]] = {option: set() for option in vars(choice)}
    where: dict[SeriesKey, tuple[Mapping[str, Any], int]] = {}
    nights: list[_Read] = []
    kept = [recorded_criteria(path) for path in runs]
    files = {file.sha256: file.criteria for file in (*kept, today) if file}
    ever = tuple(chain.from_iterable(files.values())) if files else None
    asked = hashlib.sha256(repr((choice, ever)).encode()).hexdigest()[:16]
    before: Mapping[str, Any] = {}
    last: Criteria | None = None
    for path, recorded in zip(runs, kept, strict=True):
        run = verified(
            path,
            f"trend-{_VERSION}-{asked}",
            _Numbers,
            lambda run: _numbers(run, choice, ever),
        )
        if run.criteria != (recorded.sha256 if recorded else ""):
            raise SeatrialError(
                f"{path / KEPT_CRITERIA}: changed while it was read; try again on a "
                "copy of the run that no process writes to"
            )
        cases = _by_key(run.cases)
        for option, known in run.names.items():
            names[option] |= known
        where |= {key: (parameters, nodes) for key, parameters, nodes in run.measured}
        night = Night(
            run=str(run.manifest["run"]),
            campaign=str(run.manifest.get("campaign") or ""),
            started=str(run.manifest["started"]),
            partial=bool(run.manifest.get("partial")),
            own_criteria=recorded is not None,
            changes=night_changes(before, run.manifest)
            + criteria_changes(last, recorded),
            model=bool(run.manifest.get("model")),
        )
        before, last = run.manifest, recorded or last
        nights.append(_Read(night, recorded or today, cases, dict(run.points)))
    _require_known(choice, names)
    if not where:
        raise SeatrialError(
            f"no number of {system} in {counted(len(runs), 'run')} fits: expected "
            "--check, --metric and --environment that occur together, or criteria"
        )
    return Trend(
        system=system,
        nights=tuple(run.night for run in nights),
        series=tuple(
            _series(key, where[key], nights, today)
            for key in sorted(where, key=lambda key: (*key[:4], key.num_nodes or 0))
        ),
        since=criteria_changes(last, today),
    )


def _by_key(cases: Iterable[Case]) -> dict[CaseKey, list[Case]]:
    by_key: dict[CaseKey, list[Case]] = defaultdict(list)
    for case in cases:
        by_key[case.key].append(case)
    return by_key


def _numbers(run: Run, choice: Choice, ever: tuple[Criterion, ...] | None) -> _Numbers:
    names: dict[str, set[str]] = {option: set() for option in vars(choice)}
    points: list[tuple[SeriesKey, Point]] = []
    measured: list[tuple[SeriesKey, dict[str, Any], int]] = []
    for history in histories([run]):
        names["checks"].add(history.key.check)
        names["metrics"].add(history.metric)
        names["environments"].add(history.key.environment)
        for key, point in _points(history, choice, ever):
            points.append((key, point))
            if point.value is not None:
                measured.append((key, history.parameters, history.num_nodes))
    return _Numbers(
        manifest={k: v for k, v in run.manifest.items() if k != "checksums"},
        criteria=_digest(run.kept.get(KEPT_CRITERIA)),
        cases=run.cases,
        names=names,
        points=points,
        measured=measured,
    )


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _chosen(
    history: History, choice: Choice, ever: tuple[Criterion, ...] | None
) -> bool:
    """Return True if a metric is chosen; by default if it ever had a criterion.

    Where no run has criteria, the metrics that checks promise are chosen.
    """
    key = history.key
    if choice.environments and key.environment not in choice.environments:
        return False
    if choice.checks or choice.metrics:
        return (not choice.checks or key.check in choice.checks) and (
            not choice.metrics or history.metric in choice.metrics
        )
    return history.declared if ever is None else bool(_criteria_of(history, ever))


def _criteria_of(history: History, criteria: Iterable[Criterion]) -> list[Criterion]:
    key = history.key
    case = (key.partition, key.environment, history.parameters, history.num_nodes)
    return [
        criterion
        for criterion in criteria
        if criterion.metric == history.metric and criterion.applies(key.check, *case)
    ]


def _points(
    history: History, choice: Choice, ever: tuple[Criterion, ...] | None
) -> Iterator[tuple[SeriesKey, Point]]:
    """Return the points of the judged statistic and of the statistics of criteria."""
    if not _chosen(history, choice, ever):
        return
    present = {str(name) for name in history.rows["statistic"].unique()}
    asked = {criterion.statistic for criterion in _criteria_of(history, ever or ())}
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
    medians = np.nanmedian(values, axis=0)
    point = Point(
        value=float(np.median(medians)),
        low=float(medians.min()),
        high=float(medians.max()),
        allocations=medians.size,
    )
    if len(values) == 1:
        return point
    known = np.asarray(finite.any(axis=1))
    of_place = np.nanmedian(values[known], axis=1)
    sign = 1 if history.direction == "higher" else -1
    worst = int((sign * of_place).argmin())
    named = with_place(sample.places.filter(known), several_rails(sample.places))
    return replace(
        point,
        worst=float(of_place[worst]),
        worst_place=str(named["place"][worst] or ""),
    )


def _series(
    key: SeriesKey,
    where: tuple[Mapping[str, Any], int],
    nights: Sequence[_Read],
    today: Criteria | None,
) -> Series:
    """Build a series; a night without the number gets a point with the reason."""

    def limits(criteria: Criteria | None, campaign: str) -> tuple[Limit, ...]:
        return tuple(
            Limit(criterion.name, criterion.kind, criterion.limit, criterion.source)
            for criterion in (criteria.criteria if criteria else ())
            if criterion.limit is not None
            and criterion.holds_in(campaign)
            and (criterion.metric, criterion.unit) == (key.metric, key.unit)
            and criterion.statistic in (None, key.statistic)
            and criterion.applies(key.check, key.partition, key.environment, *where)
        )

    case = CaseKey(key.check, key.case, key.partition, key.environment)
    points = []
    for run in nights:
        gap = _gap(run.cases.get(case, ()), key.num_nodes, run.night)
        point = run.points.get(key, Point(gap=gap))
        points.append(replace(point, limits=limits(run.criteria, run.night.campaign)))
    return Series(key, tuple(points), limits(today, nights[-1].night.campaign))


def _gap(cases: Sequence[Case], num_nodes: int | None, night: Night) -> str:
    """Return the reason why a run has no such number."""
    if not cases:
        part = " (this run is a part of it)" if night.partial else ""
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


def _require_known(choice: Choice, names: Mapping[str, set[str]]) -> None:
    """Refuse a chosen name that no run has, and list the nearest."""
    for option, wanted in vars(choice).items():
        known = names[option]
        for name in wanted:
            if name not in known:
                near = difflib.get_close_matches(name, known, 4, 0.5)
                examples = ", ".join(near or sorted(known)[:8]) or "(they have none)"
                raise SeatrialError(
                    f"--{option.removesuffix('s')} {name}: in none of these runs; "
                    f"expected one that is, for example {examples}"
                )
