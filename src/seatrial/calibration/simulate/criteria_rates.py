"""Judge drawn machines by the criteria of a file, and count the wrong verdicts."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import polars as pl

from seatrial.calibration.simulate.machines import (
    TRUTHS,
    Layout,
    Metric,
    Numbers,
    Setting,
    Truth,
    draw,
)
from seatrial.calibration.simulate.rates import Rate
from seatrial.criteria.criteria import Criteria, Criterion
from seatrial.judge.counted import counted
from seatrial.judge.findings import Finding
from seatrial.judge.group import Group
from seatrial.judge.multiple_testing import share_of_look
from seatrial.judge.place_groups import groups_of
from seatrial.judge.sampling import UNIT, Sampled, Values
from seatrial.judge.screening import Tried, tried
from seatrial.judge.verdicts import FAIL, VERDICTS, Ruling, rulings
from seatrial.model.places import PLACE

_TYPICAL = 1000.0
"""Level of places that have a sameness criterion only, in any unit."""

_ROUNDING = 1e-9
_CHUNK = 10
"""Machines that a process judges before it reports."""


def node_name(node: int) -> str:
    """Return the name of a node by its number, from 0."""
    return f"cn{node + 1:05}"


@dataclass(frozen=True)
class Question:
    """Criteria on the same numbers, and the value that is their bound."""

    criteria: tuple[Criterion, ...]
    metric: Metric
    bound: float

    @property
    def lower(self) -> bool:
        """Whether lower values are better."""
        return self.criteria[0].direction == "lower"

    def values(self, numbers: Values) -> Values:
        """Convert numbers relative to the bound, higher is better, to values."""
        if not self.bound:
            return (1 - numbers) if self.lower else (numbers - 1)
        if not self.lower:
            return self.bound * numbers
        return np.where(np.isneginf(numbers), np.inf, self.bound / numbers)

    def floor(self, healthy: float) -> float:
        """Return the relative level that all criteria take."""
        alike = [1 - c.tolerance for c in self.criteria if c.tolerance is not None]
        absolute = len(alike) < len(self.criteria)
        return max([*(healthy * ratio for ratio in alike), float(absolute)])

    def places(self, nodes: int) -> pl.DataFrame:
        """Return the places of its metric, as the judge names them."""
        names = pl.Series([node_name(node) for node in range(nodes)])
        columns: dict[str, pl.Series] = {}
        if self.metric.layout == "nodes":
            columns = {"node": names}
        elif self.metric.layout == "pairs":
            first, second = self.metric.ends(nodes).T
            columns = {
                "source": names.gather(first),
                "destination": names.gather(second),
            }
        count = len(next(iter(columns.values()), [None]))
        types = {"socket": pl.Int64}
        empty = {
            name: pl.Series([None] * count, dtype=types.get(name, pl.String))
            for name in PLACE
        }
        return pl.DataFrame(empty | columns)


def questions(criteria: Criteria, layouts: Mapping[str, Layout]) -> list[Question]:
    """Sort criteria by the numbers that they are about.

    Criteria of one check, metric, statistic and `where` share their numbers, but those
    of model `every` have steady numbers of their own. `layouts` say where a check
    measures; nodes by default.
    """
    same: dict[tuple[Any, ...], list[Criterion]] = defaultdict(list)
    for one in criteria.criteria:
        where = repr(sorted(one.where.items()))
        every = one.model == "every"
        same[one.check, one.metric, one.statistic, one.unit, where, every].append(one)
    asked = []
    for rules in same.values():
        first = rules[0]
        lower = first.direction == "lower"
        limits = [one.limit for one in rules if one.limit is not None]
        bound, margin = _TYPICAL, None
        if limits:
            bound = min(limits) if lower else max(limits)
        else:
            rest = 1 - min(one.tolerance or 0.0 for one in rules)
            bound, margin = _TYPICAL * (1 / rest if lower else rest), 1 / rest - 1
        metric = Metric(
            layout=layouts.get(first.check, "nodes"),
            margin=margin,
            steady=first.model == "every",
            both_ways=not lower,
        )
        asked.append(Question(tuple(rules), metric, bound))
    return asked


@dataclass(frozen=True)
class Study:
    """Criteria, and the machines that are judged by them."""

    criteria: Criteria
    layouts: Mapping[str, Layout]
    setting: Setting
    truth: Truth

    @cached_property
    def asked(self) -> list[tuple[Question, pl.DataFrame, list[Finding]]]:
        """The questions with their places, and the subject of each criterion."""
        nodes = self.setting.nodes
        return [
            (each, each.places(nodes), [_subject(one) for one in each.criteria])
            for each in questions(self.criteria, self.layouts)
        ]

    def ruled(
        self, run: Sequence[Numbers], look: int = 1
    ) -> tuple[list[Ruling], list[Tried]]:
        """Judge the numbers of one run; return also the trial of all places.

        The ledger counts the runs: the second of a campaign is its second look.
        """
        groups: list[Group] = []
        ruled: list[Ruling] = []
        for (asked, places, subjects), numbers in zip(self.asked, run, strict=True):
            data = Sampled(
                places=places,
                values=asked.values(numbers.values),
                units=_units(numbers.values.shape[1]),
                spoilt=np.zeros(numbers.values.shape, dtype=bool),
                higher=asked.criteria[0].direction == "higher",
            )
            for criterion, subject in zip(asked.criteria, subjects, strict=True):
                if criterion.model == "every":
                    ruled.append(counted(subject, criterion, data))
                else:
                    groups += groups_of(subject, criterion, data)
        share = share_of_look(look)
        groups = [replace(group, share=share) for group in groups]
        trials = tried(groups, self.criteria.risks)
        return [*ruled, *rulings(trials)], trials

    def judged(self, generator: np.random.Generator) -> dict[str, bool]:
        """Draw and judge a machine; return what is counted, and if it was so."""
        metrics = [asked.metric for asked, _, _ in self.asked]
        drawn = draw(self.truth, self.setting, metrics, generator)
        looks = (self.ruled(run, look)[0] for look, run in enumerate(drawn.runs, 1))
        ruled = max(looks, key=_worst)
        verdict = VERDICTS[_worst(ruled)]
        counts: dict[str, bool] = {each: verdict == each for each in VERDICTS}
        reached = [
            float(numbers.levels.min()) - asked.floor(numbers.healthy)
            for (asked, _, _), numbers in zip(self.asked, drawn.runs[0], strict=True)
        ]
        if min(reached) > -_ROUNDING:
            counts["false_fail"] = verdict == "fail"
        # A count that meets its limit exactly does so for sure.
        most = [-_ROUNDING if metric.steady else _ROUNDING for metric in metrics]
        if any(np.less(reached, most)):
            counts["false_pass"] = verdict == "pass"
        bad = {node_name(node) for node in drawn.bad}
        blamed = list(_blamed(ruled))
        if bad:
            whole = frozenset() in blamed
            counts["found"] = whole or bad <= frozenset().union(*blamed)
        counts["sound_blamed"] = any(nodes and not nodes & bad for nodes in blamed)
        return counts


def _worst(ruled: Sequence[Ruling]) -> int:
    """Return the code of the worst verdict at any place."""
    return min(int(ruling.verdict.min()) for ruling in ruled)


@cache
def _units(count: int) -> pl.DataFrame:
    """Return the allocations of a run, a job each."""
    numbers = [str(number) for number in range(count)]
    jobs = pl.DataFrame({"session": numbers, "job_id": numbers})
    return jobs.with_columns(run=pl.lit("run"), attempt=1).select(UNIT)


def _subject(criterion: Criterion) -> Finding:
    return Finding(
        kind="sameness" if criterion.kind == "sameness" else "limit",
        check=criterion.check,
        case=criterion.check,
        environment="simulated",
    ).held_to(criterion)


def _blamed(ruled: Iterable[Ruling]) -> Iterator[frozenset[str]]:
    """Yield the nodes of each failing place: one, two of a pair, none of the whole."""
    for ruling in ruled:
        fails = ruling.verdict == FAIL
        if not fails.any():
            continue
        failing = ruling.names.filter(pl.Series(fails))
        for row in failing.select("node", "source", "destination").iter_rows():
            yield frozenset(name for name in row if name is not None)


@dataclass(frozen=True)
class Row:
    """The rates of the machines of one truth and one noise."""

    truth: Truth
    setting: Setting
    machines: int
    rates: Mapping[str, Rate]


def rows(
    criteria: Criteria,
    layouts: Mapping[str, Layout],
    settings: Sequence[Setting],
    truths: Iterable[str],
    *,
    machines: int,
    seed: int,
    workers: int = 1,
    judged: Callable[[int], object] = lambda _: None,
) -> list[Row]:
    """Judge machines of each truth in each setting; the same seed, the same rates.

    `workers` processes judge them; `judged` is called with the number of machines that
    are done.
    """
    studies = [
        Study(criteria, layouts, setting, TRUTHS[name])
        for name in truths
        for setting in settings
    ]
    starts = range(0, machines, _CHUNK)
    chunks = [range(start, min(start + _CHUNK, machines)) for start in starts]
    answers = []
    with _mapped(workers) as each:
        for study in studies:
            rates: dict[str, Rate] = defaultdict(lambda: Rate(0, 0))
            for outcomes in each(partial(_judged, study, seed), chunks):
                for name, hit in (item for one in outcomes for item in one.items()):
                    hits, trials = rates[name]
                    rates[name] = Rate(hits + hit, trials + 1)
                judged(len(outcomes))
            answers.append(Row(study.truth, study.setting, machines, dict(rates)))
    return answers


@contextmanager
def _mapped(workers: int) -> Iterator[Callable[..., Iterable[list[dict[str, bool]]]]]:
    """Yield `map`, or that of a pool of processes."""
    if workers == 1:
        yield map
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield pool.map


def _judged(study: Study, seed: int, chunk: range) -> list[dict[str, bool]]:
    """Judge the machines of these numbers."""
    name = f"{study.truth.name} {study.setting.noise}".encode()
    return [
        study.judged(np.random.default_rng([seed, number, *name])) for number in chunk
    ]
