"""Sequential designs: what judging the same criterion several times costs and saves."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from seatrial.criteria.methods import Method
from seatrial.judge import bounds
from seatrial.judge.multiple_testing import share_of_look

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
    """Lay out looks of `repeats` more allocations each, up to the cap.

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
