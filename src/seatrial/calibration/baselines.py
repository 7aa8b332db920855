"""Measured references: what recorded runs show that a system reaches.

A reference is a one-sided tolerance bound: with the stated confidence, at least the
stated share (coverage) of the allocations of every place reaches it. What is sampled is
the allocation. The places are all those of the system, not a sample of some, so
nothing is inferred from their number: a thousand nodes in one allocation are one. The
bound is that of the worst place, hence it holds for all. It is cautious: how numbers
scatter is learned from all places, but counts as learned from one.

A place whose level is far from all others' is set aside, or the reference would
tolerate the fault that it is to find. Nothing is said where the data cannot bear it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal

import numpy as np
import polars as pl

from seatrial.calibration.tolerance_bounds import (
    normal_factor,
    order_rank,
    smallest_order_n,
)
from seatrial.criteria.criterion import Model
from seatrial.criteria.methods import T_SMALLEST_N
from seatrial.errors import SeatrialError
from seatrial.judge import assumptions
from seatrial.judge.order_statistics import medians
from seatrial.judge.sampling import History, Sampled, Scale, Values, histories
from seatrial.judge.variance_components import Spread, components
from seatrial.model.places import several_rails, with_place
from seatrial.runs.closed_run import Run
from seatrial.runs.fingerprint import differences, fingerprint

_LEAST_SHAPE_P = 1e-3
_LEAST_DRIFT_P = 5e-3
_MOST_NAMED = 5


@dataclass(frozen=True)
class Claim:
    """How much of the population a reference covers, how surely, by which model."""

    model: Model = "any"
    coverage: float = 0.95
    confidence: float = 0.95

    @property
    def smallest_n(self) -> int:
        """The fewest allocations that can support it."""
        if self.model != "any":
            return T_SMALLEST_N
        return smallest_order_n(self.coverage, self.confidence)

    def __str__(self) -> str:
        return (
            f"{self.coverage * 100:g} % coverage with {self.confidence * 100:g} % "
            f"confidence, model {self.model}"
        )


@dataclass(frozen=True)
class Reference:
    """A limit as measured, in the unit of its metric.

    `n` are the allocations of the least measured place, `typical` is the median of all
    places, `aside` names those that do not count, `spread` is on the additive scale.
    """

    history: History
    limit: float
    typical: float
    n: int
    aside: tuple[str, ...]
    spread: Spread


@dataclass(frozen=True)
class Refusal:
    """A metric without a baseline, and the reason."""

    history: History
    reason: str


def measure(
    runs: Sequence[Run],
    claim: Claim,
    checks: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> tuple[list[Reference], list[Refusal]]:
    """Measure references from closed runs of one system, oldest first.

    Of the checks those named, or all; of metrics the flat names given, or those that
    the checks declare. Raises SeatrialError if the runs are not all measurements of
    one system in one configuration with all its nodes, or have no such metric.
    """
    require_alike(runs)
    references: list[Reference] = []
    refused: list[Refusal] = []
    for history in histories(runs, checks):
        if history.metric in metrics if metrics else history.declared:
            answer = _measured(history, claim)
            if isinstance(answer, Reference):
                references.append(answer)
            else:
                refused.append(Refusal(history, answer))
    if not references and not refused:
        chosen = ", ".join((*checks, *metrics)) or "any check"
        raise SeatrialError(
            f"no number of {chosen} in {', '.join(_names(runs))}; expected a metric "
            "that one of its checks declares, or the flat name of another"
        )
    return references, refused


def require_alike(runs: Sequence[Run]) -> dict[str, str]:
    """Return the fingerprint of all runs; SeatrialError if they differ."""
    prints: dict[str, dict[str, str]] = {}
    systems = {run.manifest["system"] for run in runs}
    if len(systems) != 1:
        raise SeatrialError(
            f"runs of {', '.join(sorted(systems)) or 'no system'}; expected those of "
            "one system"
        )
    for run in runs:
        name, nodes = run.manifest["run"], run.manifest["nodes"]
        if run.manifest.get("replay") or any(case.replay for case in run.cases):
            raise SeatrialError(
                f"run {name} is of recorded output: no measurement, no reference"
            )
        if not nodes:
            raise SeatrialError(
                f"run {name} does not say on which nodes it was measured (it was "
                "imported); nobody could tell when its reference expires"
            )
        absent = [node["name"] for node in nodes if node["state"] != "present"]
        if absent:
            raise SeatrialError(
                f"in run {name} delivered nodes were absent: {', '.join(absent)}; "
                "expected a run on the whole machine"
            )
        if name in prints:
            raise SeatrialError(f"run {name} is given twice; its numbers count once")
        prints[name] = fingerprint(run.manifest)
    first, *others = prints
    for name in others:
        differing = differences(prints[first], prints[name])
        differing = differing or differences(prints[name], prints[first])
        if differing:
            raise SeatrialError(
                f"run {name} was taken in another configuration than {first}: "
                f"{'; '.join(differing)}; expected runs of one configuration"
            )
    return prints[first]


def _measured(history: History, claim: Claim) -> Reference | str:
    """Measure one reference, or say why not."""
    if history.faults:
        return f"one of its cases {history.faults[0]}"
    data = history.sampled()
    if data.spoilt.any():
        return "a value is no number"
    missing = _not_measured(history, data)
    if missing:
        return f"nothing was measured of {', '.join(missing)}"
    sign: Literal[1, -1] = 1 if history.direction == "higher" else -1
    logs = claim.model == "lognormal"
    scale = Scale(logs, sign, nan, 0.0, "order" if claim.model == "any" else "t")
    if logs and (data.values <= 0).any():
        return "a value of 0 or less has no logarithm; use --model any"
    levels = scale.levels(data.values)
    counts = np.isfinite(levels).sum(axis=1)
    if counts.min() < claim.smallest_n:
        return _too_few(int(counts.min()), claim)
    if (np.nanmax(levels, axis=1) == np.nanmin(levels, axis=1)).any():
        return (
            "all values of a place are equal: the resolution is too coarse, or it is a "
            "count; promise it instead, with model every"
        )
    spread = components(levels)
    kept = np.delete(np.arange(len(levels)), list(spread.aside))
    objection = _objection(levels[kept], claim)
    if objection:
        return objection
    bound = _bound(levels[kept], spread, claim)
    limit = float(scale.values(np.array(bound)))
    if limit <= 0:
        return (
            f"{int(counts[kept].min())} allocations scatter so much that the limit "
            "would be 0 or less; measure more of them, or use --model lognormal"
        )
    typical = np.median(medians(data.values))
    aside = _place_names(data, spread.aside)
    n = int(counts[kept].min())
    return Reference(history, limit, float(typical), n, aside, spread)


def _not_measured(history: History, data: Sampled) -> list[str]:
    """Return the nodes without a number, if other nodes have some."""
    ends = data.places.select(pl.col("node", "source", "destination").cast(pl.String))
    measured = set(ends.unpivot()["value"].drop_nulls())
    return sorted(history.nodes - measured) if measured else []


def _too_few(n: int, claim: Claim) -> str:
    more = f"{claim.smallest_n} are needed"
    if claim.model == "any":
        factor = normal_factor(T_SMALLEST_N, claim.coverage, claim.confidence)
        more += (
            f"; with --model lognormal {T_SMALLEST_N}, at the price of a limit "
            f"{factor:.2f} standard deviations off"
        )
    are = "allocation is" if n == 1 else "allocations are"
    return f"{n} {are} too few for {claim}: {more}"


def _objection(levels: Values, claim: Claim) -> str:
    """Return why the method does not apply to the counted places; '' if it does."""
    drift = assumptions.drift_p(medians(levels.T))
    if drift < _LEAST_DRIFT_P:
        return (
            f"the numbers drift in the course of the allocations (p = {drift:.1g}): "
            "find out why, then measure again"
        )
    shape = 1.0 if claim.model == "any" else assumptions.t_shape_p(levels)
    if shape < _LEAST_SHAPE_P:
        return (
            f"the values are not {claim.model} (p = {shape:.1g}); use --model any, "
            f"which takes {smallest_order_n(claim.coverage, claim.confidence)} "
            "allocations"
        )
    return ""


def _bound(levels: Values, spread: Spread, claim: Claim) -> float:
    """Return the tolerance bound of the worst place, on the additive scale.

    any: the order statistic of each place. normal, lognormal: mean - k s, with k of the
    least measured place and the scatter that all places share.
    """
    counts = np.isfinite(levels).sum(axis=1)
    if claim.model == "any":
        ordered = np.sort(levels, axis=1)
        ranks = {
            n: order_rank(n, claim.coverage, claim.confidence)
            for n in set(counts.tolist())
        }
        at = np.array([ranks[n] - 1 for n in counts.tolist()])
        return float(np.take_along_axis(ordered, at[:, np.newaxis], axis=1).min())
    factor = normal_factor(int(counts.min()), claim.coverage, claim.confidence)
    return float(np.nanmean(levels, axis=1).min()) - factor * spread.within


def _place_names(data: Sampled, rows: Sequence[int]) -> tuple[str, ...]:
    named = with_place(data.places[list(rows)], several_rails(data.places))
    names = [str(name) for name in named["place"]]
    more = len(names) - _MOST_NAMED
    return (*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else []))


def _names(runs: Sequence[Run]) -> list[str]:
    return [str(run.manifest["run"]) for run in runs]
