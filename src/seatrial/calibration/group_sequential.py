"""Sequential designs: cost and savings of several looks at one criterion."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seatrial.criteria.criterion import Criterion
from seatrial.criteria.methods import Method
from seatrial.judge import bounds
from seatrial.judge.multiple_testing import share_of_look
from seatrial.judge.sampling import scale_of

_PATHS = 4000
_SEED = 7


@dataclass(frozen=True)
class Look:
    """One look at the data: allocations so far, the share of the risks it spends."""

    units: int
    share: float


@dataclass(frozen=True)
class Outcome:
    """What a design comes to at one level: mean allocations until it is decided or all
    looks are used, and the shares that pass, fail and stay undecided."""

    units: float
    passed: float
    failed: float
    undecided: float


def looks_of(repeats: int, looks: int, cap: int) -> tuple[Look, ...]:
    """Return looks of `repeats` further allocations each, up to the cap.

    Risk is spent as the judge does; the last look spends what is left.
    """
    units = [min(cap, repeats * number) for number in range(1, looks + 1)]
    return tuple(
        Look(number, share_of_look(units[:at], looks, cap))
        for at, number in enumerate(units, 1)
    )


def outcome(
    looks: Sequence[Look],
    method: Method,
    distance: float,
    seller: float,
    buyer: float,
) -> Outcome:
    """Simulate a design: one place, `distance` standard deviations above the limit.

    Negative distances are below it. Values are normal; the same every time.
    """
    values = _normal(looks[-1].units) + distance
    left = np.ones(len(values), dtype=bool)
    total, passed, failed, earlier = 0.0, 0.0, 0.0, 0
    for look in looks:
        total += (look.units - earlier) * float(left.mean())
        earlier = look.units
        if not look.share or not left.any():
            continue
        seen = values[left, : look.units]
        passes = bounds.lower_bound(seen, method, buyer * look.share) >= 0
        fails = bounds.p_below(seen, 0.0, method) <= seller * look.share
        passed += float(passes.sum()) / len(left)
        failed += float((fails & ~passes).sum()) / len(left)
        left[left] = ~(passes | fails)
    return Outcome(total, passed, failed, float(left.mean()))


@lru_cache(maxsize=64)
def _normal(units: int) -> NDArray[np.float64]:
    return np.random.default_rng(_SEED).standard_normal((_PATHS, units))


@dataclass(frozen=True)
class Design:
    """A criterion judged at several looks, one run each.

    `units` and `risk` are those of each look; `mean_worse` and `mean_better` the mean
    allocations until it is decided, or all looks are used, at a level that is worse or
    better than the limit by its zone, `undecided_...` the chance that it never is.
    """

    criterion: str
    looks: int
    units: tuple[int, ...]
    risk: tuple[float, ...]
    mean_worse: float
    undecided_worse: float
    mean_better: float
    undecided_better: float


def designs_of(criterion: Criterion, within: float, repeats: int) -> Iterator[Design]:
    """Yield the criterion's designs with one look, two, and up to what it allows.

    `within` is the standard deviation of a place between allocations, as a level.
    """
    scale, risks = scale_of(criterion), criterion.risks
    distance = scale.width / within
    for number in range(1, criterion.looks + 1):
        looks = looks_of(repeats, number, criterion.cap)
        worse, better = (
            outcome(looks, scale.method, away, risks.seller, risks.buyer)
            for away in (-distance, distance)
        )
        yield Design(
            criterion=criterion.name,
            looks=number,
            units=tuple(look.units for look in looks),
            risk=tuple(risks.seller * look.share for look in looks),
            mean_worse=worse.units,
            undecided_worse=worse.undecided,
            mean_better=better.units,
            undecided_better=better.undecided,
        )
