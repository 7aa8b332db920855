"""The scale on which a criterion is judged: differences add, and higher is better."""

from dataclasses import dataclass
from math import log, log1p
from typing import Literal

import numpy as np

from seatrial.criteria.criteria import Criterion
from seatrial.criteria.methods import Method
from seatrial.judge.sampling import Values

LEAST_ALIKE = 3
"""Places that sameness takes: of two, nobody knows which one is the typical."""


@dataclass(frozen=True)
class Scale:
    """How values become levels to compare with `limit`, and back.

    `logs`: levels are logarithms. `sign` is -1 where lower values are better. Within
    `width` of the limit nobody asks for a decision.
    """

    logs: bool
    sign: Literal[1, -1]
    limit: float
    width: float
    method: Method

    def levels(self, values: Values) -> Values:
        """Turn values into levels; NaN where there is no logarithm."""
        if not self.logs:
            return self.sign * values
        positive = np.where(values > 0, values, np.nan)
        return self.sign * np.log(positive)

    def values(self, levels: Values) -> Values:
        """Turn levels back into values."""
        turned = self.sign * levels
        return np.exp(turned) if self.logs else turned


def scale_of(criterion: Criterion) -> Scale:
    """Give the scale of a criterion with a limit or a tolerance."""
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
    """Take from each level the median of the other places' in the same allocation.

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
