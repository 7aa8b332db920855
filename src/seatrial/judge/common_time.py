"""Correlation of successive allocations, pooled over the metrics of a case."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seatrial.judge.group import Group
from seatrial.judge.sampling import Values
from seatrial.judge.scatter import Times, blamed, rest_correlation, split
from seatrial.judge.serial import UNKNOWN, Correlation, correlation, packed


def in_common_time(groups: Sequence[Group]) -> list[Group]:
    """Pool the correlation of successive allocations over the metrics of each case.

    Of the rest, metrics may depend on each other, so the error is that of one metric.
    Of what all places share, the effect of an allocation on each metric is a series,
    and as many count as are independent.
    """
    by_case: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        if group.scale.method == "t":
            key = (group.case, group.units, group.of_pairs, group.alike)
            by_case[key].append(number)
    result = list(groups)
    for numbers in by_case.values():
        of_case = [groups[number] for number in numbers]
        rests = [rest_correlation(_sound(one), shared=not one.alike) for one in of_case]
        known = [rest for rest in rests if np.isfinite(rest.error)]
        rho = float(np.mean([rest.rho for rest in known])) if known else 0.0
        shared = _shared(of_case)
        for number, group, rest in zip(numbers, of_case, rests, strict=True):
            times = Times(Correlation(rho, rest.error), shared)
            result[number] = replace(group, times=times)
    return result


def _shared(groups: Sequence[Group]) -> Correlation:
    series = [split(_sound(group))[0] for group in groups if not group.alike]
    several = [one for one in series if one is not None]
    if not several:
        return UNKNOWN
    return correlation(packed(np.vstack(several)))


def _sound(group: Group) -> Values:
    """Return the levels of places that can be judged and have none of -inf."""
    levels = group.levels
    if not group.sound.all():
        levels = levels[group.sound]
    levels = blamed(levels)
    missing = np.isneginf(levels).any(axis=1)
    return levels[~missing] if missing.any() else levels
