"""Correlation of successive allocations, pooled over the metrics of a case."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seatrial.judge.levels import rest_correlation
from seatrial.judge.place_groups import Group
from seatrial.judge.serial import Correlation


def in_common_time(groups: Sequence[Group]) -> list[Group]:
    """Pool the correlation of successive allocations over the metrics of each case.

    Metrics may depend on each other, so the error is that of one metric.
    """
    own = [
        rest_correlation(group.levels[group.sound], shared=not group.alike)
        if group.scale.method == "t"
        else None
        for group in groups
    ]
    keys = [(group.case, group.units, group.of_pairs) for group in groups]
    pooled: dict[tuple[object, ...], list[tuple[float, float]]] = defaultdict(list)
    for key, group, one in zip(keys, groups, own, strict=True):
        if one is not None and np.isfinite(one.error):
            pooled[key].append((one.rho, float(group.sound.sum())))
    means = {key: _weighted_mean(of) for key, of in pooled.items()}
    return [
        group
        if one is None or key not in means
        else replace(group, correlation=Correlation(means[key], one.error))
        for key, group, one in zip(keys, groups, own, strict=True)
    ]


def _weighted_mean(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the mean of values, each given with its weight."""
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total
