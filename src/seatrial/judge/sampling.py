"""Samples of metrics of runs as arrays (places, allocations), and a criterion's scale.

The unit of sampling is the allocation: a job, on its nodes. Numbers that one job took
of one place share its conditions, and count as one: their median; where every single
value must meet the limit, the worst of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import log, log1p
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.criteria import Criterion
from seatrial.criteria.methods import Method
from seatrial.judge.row_numbers import RowNumbers, numbered, wide_enough, with_rows
from seatrial.judge.turned_pairs import with_turned
from seatrial.model.cases import Case, CaseKey, parameters_text
from seatrial.model.metrics import flat_name, judged_statistic
from seatrial.model.places import PLACE
from seatrial.runs.closed_run import Run
from seatrial.runs.port_totals import port_cases
from seatrial.runs.row_parts import Blocks, distinct_texts, filtered

Values = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]
OfSeveral = Literal["median", "min", "max"]

UNIT = ("run", "session", "attempt", "job_id")
"""Columns of an allocation; each further try of a job is another allocation."""

TIME = "time"
"""Column of `rows_of`: start of a number, else of its session; null if unknown."""

_NAMES = ("session", "job_id")

_SAMPLED = (*PLACE, *UNIT, TIME, "repeat", "value", "direction")

LEAST_ALIKE = 3
"""Minimum places for a sameness criterion: 3."""


def rows_of(run: Run) -> pl.LazyFrame:
    """Return the numbers of a run with their cases, and `TIME`; `run` is its name."""
    case = (*CaseKey._fields, "nodes", "parameters", *UNIT, *PLACE, "repeat")
    number = ("metric", "size_bytes", "statistic", "value", "unit", "direction")
    name = pl.lit(run.manifest["run"]).cast(pl.Categorical)
    rows = run.columns(*case, *number, "start_time").with_columns(run=name)
    rows = rows.rename({"start_time": TIME})
    starts = {
        session["name"]: datetime.fromisoformat(session["started"]).timestamp()
        for session in run.manifest.get("sessions", ())
    }
    if not (starts and rows.select(pl.col(TIME).has_nulls()).collect().item()):
        return rows
    session = pl.col("session").cast(pl.String)
    of_session = session.replace_strict(starts, default=None, return_dtype=pl.Float64)
    return rows.with_columns(pl.col(TIME).fill_null(of_session))


@dataclass(frozen=True)
class Sampled:
    """The numbers of one metric of one case.

    `values` has the shape (places, allocations), in the order of time, NaN where a
    place was not measured. A missing number that counts as the worst value is infinite:
    -inf if `higher` is better, else inf; completeness.py adds it. `spoilt`, of the same
    shape, marks numbers that came as NaN or infinity. `places` has the columns of
    `PLACE`, `units` those of `UNIT`. `drawn`: the check measured some of its pairs, and
    perhaps others in each allocation.
    """

    places: pl.DataFrame
    units: pl.DataFrame
    values: Values
    spoilt: Marks
    higher: bool
    drawn: bool = False


def sampled(
    blocks: Blocks, statistic: str | None, of_several: OfSeveral = "median"
) -> Sampled:
    """Sort the rows of one metric by place and allocation.

    Only `statistic` counts, by default the first that is known. `of_several` numbers of
    a place in one allocation, that one counts.
    """
    statistics = distinct_texts(blocks, "statistic")
    wanted = statistic or judged_statistic(statistics)
    blocks = [block.select(*_SAMPLED, "statistic") for block in blocks]
    if statistics != [wanted]:
        blocks = filtered(blocks, pl.col("statistic") == wanted)
    of_unit, units = _in_time_order(blocks)
    cell, places = with_turned(*numbered(blocks, PLACE), of_unit, units)
    shape = (places.height, units.height)
    cells = places.height * units.height
    cell = cell.astype(wide_enough(cells), copy=False)
    cell *= units.height
    cell += of_unit
    del of_unit
    values, seen = np.full(cells, np.nan), np.zeros(cells, dtype=bool)
    seen[cell] = True
    if np.count_nonzero(seen) < cell.size:
        value = getattr(pl.col("value"), of_several)
        several = pl.concat(block.select("value") for block in blocks)
        one = several.with_columns(cell=cell).group_by("cell").agg(value())
        values[one["cell"].to_numpy()] = one["value"].to_numpy()
    else:
        for block, rows in with_rows(blocks):
            values[cell[rows]] = block["value"].to_numpy()
    spoilt = seen
    spoilt &= ~np.isfinite(values)
    values[spoilt] = np.nan
    return Sampled(
        places=places,
        units=units,
        values=values.reshape(shape),
        spoilt=spoilt.reshape(shape),
        higher=blocks[0].select("direction").row(0)[0] == "higher",
    )


def _in_time_order(blocks: Blocks) -> tuple[RowNumbers, pl.DataFrame]:
    """Number the allocations by run, then by time: the order of rows means nothing."""
    of_unit, units = numbered(blocks, UNIT)
    times = [
        block.select(TIME, "repeat", unit=of_unit[rows]).group_by("unit").min()
        for block, rows in with_rows(blocks)
    ]
    least = pl.concat(times).group_by("unit").min().sort("unit")
    units = units.hstack(least.drop("unit"))
    run = pl.int_range(pl.len()).min().over("run")
    by = [run, TIME, "repeat", "attempt", *(pl.col(c).cast(pl.String) for c in _NAMES)]
    ordered = units.with_row_index("unit").sort(by, nulls_last=True)["unit"].to_numpy()
    rank = np.empty(units.height, dtype=of_unit.dtype)
    rank[ordered] = np.arange(units.height)
    return rank[of_unit], units[ordered]


@dataclass(frozen=True)
class History:
    """One metric of one case, on one number of nodes, in one or several runs.

    `nodes` are those of its allocations, `metric` is the flat name, `rows` have all its
    numbers in the order of the runs, of every statistic. `faults` are the reasons of
    its failed cases. `declared`: the check promises the metric.
    """

    key: CaseKey
    parameters: dict[str, Any]
    num_nodes: int
    nodes: frozenset[str]
    metric: str
    unit: str
    direction: str
    declared: bool
    faults: tuple[str, ...]
    rows: pl.DataFrame

    def sampled(self, statistic: str | None = None) -> Sampled:
        """Sort the numbers of all runs by place and allocation."""
        return sampled([self.rows], statistic)

    @property
    def case_text(self) -> str:
        """The case as listings name it."""
        return str(self.key.listed)

    def __str__(self) -> str:
        return f"{self.case_text} {self.metric}"


def histories(runs: Sequence[Run], checks: Sequence[str] = ()) -> Iterator[History]:
    """Yield every metric of every case (of some `checks`), oldest run first.

    Of ports, a node is a case. Numbers with parameters of their own are left out.
    """
    cases: dict[tuple[CaseKey, int], list[Case]] = {}
    tables = []
    for run in runs:
        own = (*run.cases, *port_cases(run))
        chosen = [case for case in own if not checks or case.check in checks]
        for case in chosen:
            cases.setdefault((case.key, len(case.nodes)), []).append(case)
        names = sorted({case.check for case in chosen})
        tables.append(rows_of(run).filter(pl.col("check").is_in(names)).collect())
    if not tables:
        return
    nodes = pl.col("nodes").cast(pl.String)
    count = pl.when(nodes == "").then(0).otherwise(nodes.str.count_matches(" ") + 1)
    table = pl.concat(tables).with_columns(num_nodes=count.cast(pl.Int64))
    parts = table.partition_by(*CaseKey._fields, "num_nodes", as_dict=True)
    for (key, num_nodes), group in cases.items():
        if (rows := parts.get((*key, num_nodes))) is not None:
            yield from _metrics(key, num_nodes, group, rows)


def _metrics(
    key: CaseKey, num_nodes: int, cases: Sequence[Case], rows: pl.DataFrame
) -> Iterator[History]:
    own = {parameters_text(case.parameters) for case in cases}
    declared = {name for case in cases for name in case.declared}
    faults = tuple(
        f"failed in {case.phase or 'some phase'}: {case.reason or 'no reason given'}"
        for case in cases
        if case.result == "fail"
    )
    rows = rows.filter(pl.col("parameters").cast(pl.String).is_in(own))
    by = ("metric", "size_bytes", "unit", "direction")
    for (name, size, unit, direction), group in rows.group_by(*by, maintain_order=True):
        flat = flat_name(str(name), size)
        yield History(
            key=key,
            parameters=cases[-1].parameters,
            num_nodes=num_nodes,
            nodes=frozenset(node for case in cases for node in case.nodes),
            metric=flat,
            unit=str(unit),
            direction=str(direction),
            declared=flat in declared,
            faults=faults,
            rows=group,
        )


@dataclass(frozen=True)
class Scale:
    """Conversion of values to levels, which are compared with `limit`, and back.

    `logs`: levels are logarithms. `sign` is -1 where lower values are better. The
    indifference zone reaches `width` to both sides of the limit. The level of a place
    is its mean (t), or the value that a share `below` of its values misses (order).
    """

    logs: bool
    sign: Literal[1, -1]
    limit: float
    width: float
    method: Method
    below: float = 0.5

    def levels(self, values: Values) -> Values:
        """Convert values to levels; a value without a logarithm counts as worst."""
        if not self.logs:
            return self.sign * values
        with np.errstate(invalid="ignore", divide="ignore"):
            levels = np.log(values)
        levels *= self.sign
        levels[values <= 0] = -np.inf
        return levels

    def values(self, levels: Values) -> Values:
        """Convert levels to values."""
        signed = self.sign * levels
        return np.exp(signed) if self.logs else signed


def scale_of(criterion: Criterion) -> Scale:
    """Return the scale of a criterion with a limit or a tolerance."""
    sign: Literal[1, -1] = 1 if criterion.direction == "higher" else -1
    method: Method = "order" if criterion.model == "any" else "t"
    below = 0.5 if criterion.bad_share is None else criterion.bad_share
    if criterion.tolerance is not None:
        limit = log1p(-criterion.tolerance)
        return Scale(True, sign, limit, -limit * criterion.zone, method, below)
    assert criterion.limit is not None, "a criterion has a limit or a tolerance"
    if criterion.model == "lognormal":
        width = log1p(criterion.zone)
        return Scale(True, sign, sign * log(criterion.limit), width, method)
    width = criterion.zone * abs(criterion.limit)
    return Scale(False, sign, sign * criterion.limit, width, method, below)


def missing_words(levels: Values) -> str:
    """Describe the missing levels of a place, to follow other words; '' if none."""
    missing, planned = int(np.isneginf(levels).sum()), int((~np.isnan(levels)).sum())
    if not missing:
        return ""
    return f"; {missing} of {planned} numbers are missing, and count as the worst value"
