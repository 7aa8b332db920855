"""Samples of a metric as arrays (places, allocations), and a criterion's scale.

What is sampled is the allocation: a job, on its nodes. Numbers that one job took of
one place are back to back, share its luck, and count as one: their median.
"""

from dataclasses import dataclass
from math import log, log1p
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from seatrial.criteria.criteria import Criterion
from seatrial.criteria.methods import Method
from seatrial.model.cases import CaseKey
from seatrial.model.metrics import judged_statistic
from seatrial.model.places import PLACE, turned
from seatrial.runs.closed_run import Run

Values = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]

UNIT = ("run", "session", "attempt", "job_id")
"""The columns that make an allocation. (A job that is tried again is another one.)"""

COLUMNS = (
    *UNIT,
    "parameters",
    *PLACE,
    "metric",
    "size_bytes",
    "statistic",
    "value",
    "unit",
    "direction",
)
"""What is read of the measurements."""

_LARGEST = 2**62
"""No number of a row grows beyond this."""


def rows_of(run: Run) -> pl.DataFrame:
    """Return the numbers of a run with their cases; `run` is its name."""
    rows = run.columns(*CaseKey._fields, "nodes", *COLUMNS)
    return rows.with_columns(run=pl.lit(run.manifest["run"]).cast(pl.Categorical))


@dataclass(frozen=True)
class Sampled:
    """The numbers of one metric of one case.

    `values` has the shape (places, allocations), in the order in which they were
    taken, NaN where a place was not measured; `spoilt` marks places (places,) of which
    some number is NaN or infinite. `places` has the columns of `PLACE`. `per_run`
    counts the allocations of each run, in their order.
    """

    places: pl.DataFrame
    values: Values
    spoilt: Marks
    per_run: tuple[int, ...]


def sampled(rows: pl.DataFrame, statistic: str | None) -> Sampled:
    """Sort the rows of one metric by place and allocation.

    Of several statistics `statistic` counts, by default the first that is known.
    """
    wanted = statistic or judged_statistic(rows["statistic"].unique())
    rows = turned(rows.filter(pl.col("statistic") == wanted))
    of_place, places = _numbered(rows, PLACE)
    of_unit, units = _numbered(rows, UNIT)
    taken = rows["value"].to_numpy()
    spoilt = np.zeros(places.height, dtype=bool)
    spoilt[of_place[~np.isfinite(taken)]] = True
    cells = of_place * units.height + of_unit
    values = np.full(places.height * units.height, np.nan)
    if np.bincount(cells, minlength=1).max() <= 1:
        values[cells] = taken
    else:
        each = pl.DataFrame({"cell": cells, "value": taken})
        middle = each.group_by("cell").agg(pl.col("value").median())
        values[middle["cell"].to_numpy()] = middle["value"].to_numpy()
    values[~np.isfinite(values)] = np.nan
    return Sampled(
        places=places,
        values=values.reshape(places.height, units.height),
        spoilt=spoilt,
        per_run=tuple(units.group_by("run", maintain_order=True).len()["len"]),
    )


def _numbered(
    rows: pl.DataFrame, columns: tuple[str, ...]
) -> tuple[npt.NDArray[np.int64], pl.DataFrame]:
    """Number the distinct rows of some columns in the order of their appearance.

    A sweep has millions of rows: texts are compared by their numbers, not as texts.
    """
    numbers = np.zeros(rows.height, dtype=np.int64)
    distinct = 1
    for name in columns:
        column = rows[name]
        if column.dtype == pl.Categorical:
            column = column.to_physical()
        code = column.cast(pl.Int64).fill_null(-1).to_numpy()
        code = code - code.min(initial=0)
        span = int(code.max(initial=0)) + 1
        if distinct * span > _LARGEST:
            _, numbers = np.unique(numbers, return_inverse=True)
            distinct = int(numbers.max(initial=0)) + 1
        numbers = numbers * span + code
        distinct *= span
    _, first, numbers = np.unique(numbers, return_index=True, return_inverse=True)
    appearance = np.argsort(first)
    rank = np.empty_like(appearance)
    rank[appearance] = np.arange(first.size)
    return rank[numbers], rows.select(columns)[first[appearance]]


LEAST_ALIKE = 3
"""Minimum places for a sameness criterion: 3."""


@dataclass(frozen=True)
class Scale:
    """How values become levels to compare with `limit`, and back.

    `logs`: levels are logarithms. `sign` is -1 where lower values are better. Within
    `width` of the limit lies the indifference zone.
    """

    logs: bool
    sign: Literal[1, -1]
    limit: float
    width: float
    method: Method

    def levels(self, values: Values) -> Values:
        """Convert values to levels; NaN where there is no logarithm."""
        if not self.logs:
            return self.sign * values
        positive = np.where(values > 0, values, np.nan)
        return self.sign * np.log(positive)

    def values(self, levels: Values) -> Values:
        """Convert levels to values."""
        turned = self.sign * levels
        return np.exp(turned) if self.logs else turned


def scale_of(criterion: Criterion) -> Scale:
    """Return the scale of a criterion with a limit or a tolerance."""
    sign: Literal[1, -1] = 1 if criterion.direction == "higher" else -1
    method: Method = "order" if criterion.model == "any" else "t"
    if criterion.tolerance is not None:
        limit = log1p(-criterion.tolerance)
        return Scale(True, sign, limit, -limit * criterion.zone, method)
    assert criterion.limit is not None, "a criterion has a limit or a tolerance"
    if criterion.model == "lognormal":
        width = log1p(criterion.zone)
        return Scale(True, sign, sign * log(criterion.limit), width, method)
    width = criterion.zone * abs(criterion.limit)
    return Scale(False, sign, sign * criterion.limit, width, method)


def beside_the_others(levels: Values) -> Values:
    """Subtract from each level the median of the other places in its allocation.

    Shape (places, allocations) in and out. What befell all places at once is gone, and
    a place does not count for what it is compared with.
    """
    result = np.full_like(levels, np.nan)
    for column in range(levels.shape[1]):
        here = np.flatnonzero(np.isfinite(levels[:, column]))
        if here.size < LEAST_ALIKE:
            continue
        found = levels[here, column]
        order = np.argsort(found, kind="stable")
        ranked = found[order]
        others = here.size - 1
        rank = np.empty(here.size, dtype=np.int64)
        rank[order] = np.arange(here.size)
        # The median of the others is between these two, counted without the place.
        low, high = (others - 1) // 2, others // 2
        middle = (ranked[low + (low >= rank)] + ranked[high + (high >= rank)]) / 2
        result[here, column] = found - middle
    return result
