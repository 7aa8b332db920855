"""Published systems as sides: history beside each other, or beside a run.

Two published systems pair by metric, what was measured, its parameters and its size. A
run pairs with a published number by an experiment of its check (the checks name those
they repeat), metric, unit and size; if several numbers of a system fit, none does. What
contradicts something else in its paper is not compared.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from seatrial.compare.pairing import Paired
from seatrial.compare.records import Key, Unpaired
from seatrial.compare.sides import Entrant
from seatrial.criteria.published_numbers import Number

_SMALL = 8
"""The most bytes of what a paper calls small, without saying how small."""

NOT_IN_PAPER = "the paper has no such number"
_SEVERAL = "several numbers of the paper fit"


def usable(entrant: Entrant) -> dict[str, Number]:
    """Return the numbers of a published system that can be compared, by name."""
    if entrant.system is None:
        return {}
    return {
        name: number
        for name, number in entrant.system.numbers.items()
        if number.kind == "absolute" and number.conflict is None
    }


def left_out(entrants: Sequence[Entrant]) -> list[str]:
    """List numbers that contradict others of their paper: they do not count."""
    return [
        f"{entrant.side.name}: {number.metric} of {number.value:g} {number.unit} "
        f"({number.what}; {number.place}) is left out: {number.conflict}"
        for entrant in entrants
        if entrant.system is not None
        for number in entrant.system.numbers.values()
        if number.conflict is not None and number.value is not None
    ]


def published_key(number: Number) -> Key:
    """Return the key of a published number."""
    more = [f"{name}={value}" for name, value in number.parameters.items()]
    return Key(
        check="",
        case=", ".join([number.what, *more]),
        environment="",
        partition="",
        num_nodes=None,
        metric=number.metric,
        size_bytes=number.size_bytes,
        size=number.size or "",
    )


def add_published(
    numbers: Paired,
    entrants: Sequence[Entrant],
    experiments: Mapping[str, Collection[str]],
) -> list[Unpaired]:
    """Add the numbers of published systems; return those that pair with nothing.

    `experiments` are those of each check.
    """
    used: set[tuple[int, str]] = set()
    for side, entrant in enumerate(entrants):
        if entrant.system is not None:
            used |= {
                (side, n) for n in _beside_runs(numbers, side, entrant, experiments)
            }
    published: dict[Key, dict[int, Number]] = defaultdict(dict)
    for side, entrant in enumerate(entrants):
        for name, number in usable(entrant).items():
            # A number that pairs with a run only is listed once.
            if (side, name) not in used or sum(bool(e.system) for e in entrants) > 1:
                published[published_key(number)][side] = number
    alone = []
    for key, by_side in published.items():
        if len(by_side) > 1:
            row = np.full(len(entrants), math.nan)
            for side, number in by_side.items():
                row[side] = math.log(number.sound_value())
            first = next(iter(by_side.values()))
            numbers.add(key, str(first.unit), first.direction, row)
        else:
            alone.append(_alone(key, by_side, entrants))
    return alone


def _alone(
    key: Key, by_side: Mapping[int, Number], entrants: Sequence[Entrant]
) -> Unpaired:
    reasons = []
    for side, entrant in enumerate(entrants):
        other = NOT_IN_PAPER if entrant.system else "no check of the run measured this"
        reasons.append("" if side in by_side else other)
    flat = " ".join(filter(None, [key.flat, key.size and f"({key.size})"]))
    return Unpaired("", key.case, flat, "", tuple(reasons))


def _beside_runs(
    numbers: Paired,
    side: int,
    entrant: Entrant,
    experiments: Mapping[str, Collection[str]],
) -> set[str]:
    """Add the numbers of a paper to those of runs; return the names of those used."""
    assert entrant.system is not None
    known = usable(entrant)
    sizes: dict[object, list[int]] = defaultdict(list)
    for key in numbers.keys:
        if key.size_bytes is not None:
            sizes[key.case_key, key.metric].append(key.size_bytes)
    used = set()
    for row, key in enumerate(numbers.keys):
        own = experiments.get(key.check, ())
        fitting = [
            name
            for name, number in known.items()
            if number.experiment in own
            and number.metric == key.metric
            and number.unit == numbers.units[row]
            and _same_size(number, key, sizes[key.case_key, key.metric])
            and _same_parameters(number, numbers.values[row])
        ]
        if len(fitting) > 1:
            numbers.bad[row, side] = _SEVERAL
        if len(fitting) != 1:
            continue
        number = known[fitting[0]]
        used.add(fitting[0])
        numbers.means[row, side] = math.log(number.sound_value())
        note = f"of another machine, of {entrant.side.started}"
        place = f"({number.what}; {number.place})"
        numbers.add_note(row, f"{entrant.side.name} is {note} {place}")
    return used


def _same_size(number: Number, key: Key, sizes: Sequence[int]) -> bool:
    """Compare the size; `sizes` are all sizes of the metric of the case."""
    if number.size == "small":
        return bool(sizes) and key.size_bytes == min(sizes) <= _SMALL
    if number.size == "large":
        return bool(sizes) and key.size_bytes == max(sizes)
    return number.size is None and number.size_bytes == key.size_bytes


def _same_parameters(number: Number, values: Mapping[str, Collection[object]]) -> bool:
    """Return True if the parameters that both state are equal."""
    return all(
        value in values[name]
        for name, value in number.parameters.items()
        if name in values
    )
