"""Drift: a trend of numbers over the campaign.

A session is one allocation of every case in it; the level of a metric in a session is
the median, over its cases, of the value divided by the case's own median. These levels
are tested for a trend by Kendall's rank correlation with the time (Mann 1945), exact
where there are few. Of the metrics that drift, at most the share `RISK` is expected to
be wrong (Benjamini and Hochberg, over all tested metrics).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import scipy

from seatrial.judge.assumptions import drift_p
from seatrial.judge.judge import Judgement
from seatrial.judge.multiple_testing import discoveries
from seatrial.judge.row_numbers import numbered
from seatrial.model.cases import CaseKey
from seatrial.model.metrics import flat_name, judged_statistic
from seatrial.report.render.text import short
from seatrial.runs.closed_run import Run
from seatrial.runs.row_parts import (
    Blocks,
    distinct_texts,
    filtered,
    parts_in_blocks,
)

RISK = 0.05
LEAST_SESSIONS = 5
"""With fewer, even a perfect trend has a p of at least 0.083."""

_HOUR = 3600.0


@dataclass(frozen=True)
class Level:
    """The level of a metric in one session: 1 is its median over the campaign.

    `hours` count from the first number of the run; `allocations` are those of it.
    """

    session: str
    hours: float
    value: float
    allocations: int


@dataclass(frozen=True)
class Drift:
    """A metric of a check over the campaign.

    `per_hour` is the slope of its levels (Theil and Sen), as a share: 0.03 is 3 % per
    hour; `p` that of no trend, None with fewer than `LEAST_SESSIONS` sessions.
    """

    check: str
    metric: str
    unit: str
    direction: str
    levels: tuple[Level, ...]
    per_hour: float
    p: float | None
    drifts: bool = False

    @property
    def name(self) -> str:
        """Return check and metric."""
        return f"{short(self.check)} {self.metric}"

    @property
    def hours(self) -> float:
        """Return the time from the first to the last session."""
        return self.levels[-1].hours - self.levels[0].hours

    @property
    def worse(self) -> bool:
        """Return True if the metric gets worse."""
        return (self.per_hour > 0) == (self.direction == "lower")


def drifts(run: Run, judgement: Judgement) -> list[Drift]:
    """Test every metric that has a criterion; those that drift come first."""
    first = run.columns("start_time").min().collect().item()
    started = 0.0 if first is None else float(first)
    all_trends = (_drift(rows, started) for rows in _judged(run, judgement))
    trends = [drift for drift in all_trends if drift is not None]
    p = np.array([np.nan if drift.p is None else drift.p for drift in trends])
    tested = ~np.isnan(p)
    marked = np.zeros(len(trends), dtype=bool)
    if tested.any():
        marked[tested] = discoveries(p[tested], RISK)
    results = [replace(d, drifts=bool(m)) for d, m in zip(trends, marked, strict=True)]
    return sorted(results, key=lambda d: (not d.drifts, d.p is None, d.p))


def _judged(run: Run, judgement: Judgement) -> Iterator[Blocks]:
    """Yield the numbers of each check and metric that has a criterion."""
    wanted = {
        (finding.check, finding.metric)
        for finding in judgement.findings
        if finding.metric and finding.criterion
    }
    rows = run.columns(
        *CaseKey._fields,
        "session",
        "metric",
        "size_bytes",
        "statistic",
        "parameters",
        "value",
        "unit",
        "direction",
        "start_time",
    )
    every = parts_in_blocks(rows, "check", "metric", "size_bytes")
    for (check, metric, size), load in every:
        if (check, flat_name(metric, size)) in wanted:
            blocks = load()
            statistics = distinct_texts(blocks, "statistic")
            if len(statistics) > 1:
                judged = pl.col("statistic") == judged_statistic(statistics)
                blocks = filtered(blocks, judged)
            yield blocks


def _drift(blocks: Blocks, started: float) -> Drift | None:
    """Compute the levels of one metric and their trend; None without times."""
    own = (*CaseKey._fields, "parameters")
    first = blocks[0].row(0, named=True)
    timed = blocks
    if any(block["start_time"].has_nulls() for block in blocks):
        timed = filtered(blocks, pl.col("start_time").is_not_null())
    if not timed:
        return None
    number, allocations = numbered(timed, (*own, "session"))
    numbers = pl.concat(block.select("value", "start_time") for block in timed)
    medians = (
        numbers.with_columns(allocation=number)
        .group_by("allocation")
        .agg(pl.col("value").median(), pl.col("start_time").min())
        .sort("allocation")
    )
    levels = (
        allocations.hstack(medians.drop("allocation"))
        .with_columns(middle=pl.col("value").median().over(own))
        .filter(pl.col("middle") > 0)
        .with_columns(level=pl.col("value") / pl.col("middle"))
        .group_by("session", maintain_order=True)
        .agg(pl.col("start_time").min(), pl.col("level").median(), jobs=pl.len())
        .sort("start_time", maintain_order=True)
    )
    if levels.height < 2:
        return None
    sessions = levels["session"].cast(pl.String)
    hours = ((levels["start_time"] - started) / _HOUR).to_list()
    values = levels["level"].to_list()
    moved = hours[-1] > hours[0]
    enough = moved and levels.height >= LEAST_SESSIONS
    slope = scipy.stats.theilslopes(values, hours).slope if moved else 0.0
    return Drift(
        check=first["check"],
        metric=flat_name(first["metric"], first["size_bytes"]),
        unit=first["unit"],
        direction=first["direction"],
        levels=tuple(map(Level, sessions, hours, values, levels["jobs"])),
        per_hour=float(slope),
        p=drift_p(levels["level"].to_numpy(), LEAST_SESSIONS) if enough else None,
    )
