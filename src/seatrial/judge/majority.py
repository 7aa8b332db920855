"""The typical place of sameness: levels beside it, and the majority that it needs."""

import numpy as np
import numpy.typing as npt
import scipy

from seatrial.judge.order_statistics import medians
from seatrial.judge.sampling import LEAST_ALIKE, Values

Floats = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]

RISK = 0.01
"""Risk to deny the majority of a machine whose places are alike."""

_MINORITY = 1 / 3
"""Share of better places from which the others are no majority."""

_OF_MEDIAN = 1.2533
"""Standard error of a median over that of a mean."""


def better_than_typical(levels: Floats, tolerance: float) -> Marks:
    """Mark places that are clearly better than the typical one, if they are many.

    `levels` (places, units): higher is better, NaN was not measured. Marks none if they
    are fewer than a third: then the others are the majority. With a third or more, the
    typical place may well be a bad one.

    A place is clearly better if its level exceeds the typical level by the `tolerance`
    and t standard errors; of an even number of places, the worse of the two in the
    middle is the typical. On a machine whose places are alike, the expected number of
    such places is at most the risk times a third of them; by Markov's inequality so is
    the risk that a third are, for any dependence between the places. The noise is that
    of the place with the median variance. Two units are the fewest.
    """
    measured = np.isfinite(levels)
    n = measured.sum(axis=1)
    known = n > 1
    marks = np.zeros(len(levels), dtype=bool)
    places = int(known.sum())
    if places < LEAST_ALIKE:
        return marks
    own = np.where(measured[known], levels[known], np.nan)
    own = own[:, np.isfinite(own).any(axis=0)]
    own = own - medians(own.T)
    centre = medians(own)
    variance = float(np.median(np.nanvar(own, axis=1, ddof=1)))
    typical = np.sort(centre)[(places - 1) // 2]
    fewest = int(np.ceil(_MINORITY * places))
    freedom = (places - 1) * (float(np.median(n[known])) - 1) / 2
    t = scipy.stats.t.isf(RISK * fewest / places, freedom)
    error = _OF_MEDIAN * np.sqrt(variance * (1 / n[known] + 1 / n[known].sum()))
    better = centre > typical + tolerance + t * error
    if better.sum() >= fewest:
        marks[known] = better
    return marks


def beside_the_others(levels: Values) -> Values:
    """Subtract from each level the median of the other places in its allocation.

    Shape (places, allocations) in and out. Effects on all places cancel out, and a
    place has no part in the median that it is compared with. The worst level, -inf,
    stays.
    """
    result = np.full_like(levels, np.nan)
    for column, target in zip(levels.T, result.T, strict=True):
        measured = np.flatnonzero(~np.isnan(column))
        others = measured.size - 1
        if others < LEAST_ALIKE - 1:
            continue
        order = np.argsort(column[measured], kind="stable")
        ranked = column[measured][order]
        rank = np.argsort(order)
        # The median of the others is between these two, counted without the place.
        low, high = (others - 1) // 2, others // 2
        middle = (ranked[low + (low >= rank)] + ranked[high + (high >= rank)]) / 2
        with np.errstate(invalid="ignore"):
            target[measured] = column[measured] - middle
    result[~np.isfinite(result)] = np.nan
    result[np.isneginf(levels)] = -np.inf
    return result
