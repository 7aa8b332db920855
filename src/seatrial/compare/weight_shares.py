"""Groups of numbers, and the share of each number in the score."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seatrial.compare.pairing import Floats
from seatrial.compare.records import Key
from seatrial.criteria.weights import Choice, Group, Weights
from seatrial.errors import SeatrialError


@dataclass(frozen=True)
class Grouping:
    """The groups, and of each number the index of its own, or -1.

    `unmeasured` names what the weights choose and no side has.
    """

    groups: tuple[Group, ...]
    of_number: tuple[int, ...]
    unmeasured: tuple[tuple[str, str], ...] = ()

    @property
    def counting(self) -> set[str]:
        """Return the names of the groups with a weight above 0."""
        return {group.name for group in self.groups if group.weight > 0}

    def of_case(self, check: str, values: Mapping[str, Any]) -> str:
        """Name the first group that takes some number of a case, '' for none."""
        for group in self.groups:
            if any(choice.takes_case(check, values) for choice in group.numbers):
                return group.name
        return ""

    def weights(self) -> Floats:
        """Return the share of each group, (groups,); they sum to 1."""
        given = np.array([group.weight for group in self.groups])
        return np.asarray(given / given.sum())


def grouped(
    keys: Sequence[Key], values: Sequence[Mapping[str, Any]], weights: Weights | None
) -> Grouping:
    """Sort numbers into groups; without weights one per check, or published metric.

    Raises SeatrialError if two groups choose the same number.
    """
    if weights is None:
        names = [key.check or key.metric for key in keys]
        order = {name: number for number, name in enumerate(dict.fromkeys(names))}
        groups = tuple(Group(name, 1.0, (Choice(name),)) for name in order)
        return Grouping(groups, tuple(order[name] for name in names))
    group_of = [-1] * len(keys)
    unmeasured = []
    of_check: dict[str, list[int]] = defaultdict(list)
    for at, key in enumerate(keys):
        of_check[key.check].append(at)
    for number, group in enumerate(weights.groups):
        for choice in group.numbers:
            taken = [
                at
                for at in of_check[choice.check]
                if choice.takes_metric(keys[at].metric, keys[at].size_bytes)
                and choice.takes_case(choice.check, values[at])
            ]
            for at in taken:
                if group_of[at] not in (-1, number):
                    other = weights.groups[group_of[at]].name
                    raise SeatrialError(
                        f"weights {weights.name}: groups {other!r} and {group.name!r} "
                        f"both choose {keys[at]}; expected one group for each number"
                    )
                group_of[at] = number
            if not taken:
                unmeasured.append((group.name, str(choice)))
    return Grouping(weights.groups, tuple(group_of), tuple(unmeasured))


def shares(keys: Sequence[Key], chosen: Sequence[int]) -> Floats:
    """Share 1 among some numbers: by checks, in them by cases, metrics, sizes.

    Returns (numbers,), 0 of those that are not chosen.
    """
    result = np.zeros(len(keys))
    levels = [
        (key.check, key.case_key, key.metric) for key in (keys[at] for at in chosen)
    ]
    cases: dict[str, set[Any]] = defaultdict(set)
    metrics: dict[Any, set[str]] = defaultdict(set)
    sizes: dict[Any, int] = defaultdict(int)
    for check, case, metric in levels:
        cases[check].add(case)
        metrics[case].add(metric)
        sizes[case, metric] += 1
    for at, (check, case, metric) in zip(chosen, levels, strict=True):
        parts = len(cases) * len(cases[check]) * len(metrics[case])
        result[at] = 1 / (parts * sizes[case, metric])
    return result
