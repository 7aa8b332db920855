"""Criteria of model every: each single value meets the limit."""

import numpy as np

from seatrial.criteria.criterion import LEAST_COUNTED, Criterion
from seatrial.judge.findings import Finding
from seatrial.judge.sampling import Sampled, missing_words
from seatrial.judge.verdicts import FAIL, PASS, UNDECIDED, Ruling, allocations_text


def counted(subject: Finding, criterion: Criterion, data: Sampled) -> Ruling:
    """Judge every value: one that misses is a fail; an empty allocation blames none."""
    sign = 1 if criterion.direction == "higher" else -1
    assert criterion.limit is not None, "a criterion of model every has a limit"
    levels = sign * data.values
    lost = np.isneginf(levels).all(axis=0) & (len(levels) > 1)
    missed = (levels[:, ~lost] < sign * criterion.limit).sum(axis=1)
    n = (~np.isnan(levels)).sum(axis=1)
    unknown = lost.any() | (n < LEAST_COUNTED)
    verdict = np.where(missed > 0, FAIL, np.where(unknown, UNDECIDED, PASS))
    worst = np.fmin.reduce(levels, axis=1, initial=np.inf)

    def reason(place: int) -> str:
        missing, which = missing_words(levels[place]), f"{missed[place]} of {n[place]}"
        if missed[place]:
            return f"a value misses the limit in {which} allocations{missing}"
        if lost.any():
            return missing.removeprefix("; ")
        if n[place] < LEAST_COUNTED:
            return f"{allocations_text(n[place])}; it takes at least {LEAST_COUNTED}"
        return f"all values of {n[place]} allocations meet the limit"

    return Ruling(
        subject=subject,
        names=data.places,
        of_nodes=False,
        verdict=verdict.astype(np.int8),
        n=n,
        value=sign * worst,
        lower=np.full(n.size, np.nan),
        upper=np.full(n.size, np.nan),
        more=np.maximum(LEAST_COUNTED - n, 0),
        hidden=np.zeros(n.size, dtype=bool),
        discovered=np.zeros(n.size, dtype=bool),
        reason=reason,
    )
