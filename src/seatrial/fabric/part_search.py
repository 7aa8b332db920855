"""The search for parts that explain residuals: gains, the best set, their chances."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csc_array

from seatrial.fabric.routes import Numbers, Shares

CLIP = 5.0
"""Greatest size of a residual that counts, in units of the scatter."""

STARTS = 8
PERMUTATIONS = 40
_EULER = 0.5772156649


@dataclass
class Sample:
    """Paths that were measured under one routing: what they cross, how slow they are.

    `marks` is an incidence, paths x parts, whose shares may be weighted by path.
    Residuals of one `group` may be exchanged if the fabric is sound.
    """

    marks: csc_array
    residual: Shares
    group: Numbers
    squares: Shares = field(init=False)

    def __post_init__(self) -> None:
        self.residual = _centered(self.residual)
        self._variance = float(np.mean(self.residual**2))
        self.squares = np.asarray(self.marks.power(2).sum(axis=0), np.float64)

    def gains(self, given: Sequence[int]) -> Shares:
        """Return the gain of each part, given others."""
        left, basis = self.residual, list[Shares]()
        squares = self.squares.copy()
        for part in given:
            column = self.marks[:, [part]].toarray()[:, 0]
            for known in basis:
                column = column - known * (known @ column)
            length = float(np.sqrt(column @ column))
            if length < 1e-9:
                continue
            basis.append(column / length)
            left = left - basis[-1] * (basis[-1] @ left)
            squares -= (self.marks.T @ basis[-1]) ** 2
        own = squares > 1e-6 * np.maximum(self.squares, 1e-12)
        gain = np.zeros(squares.size)
        sums = (self.marks.T @ left)[own]
        gain[own] = np.maximum(sums, 0) ** 2 / squares[own] / 2 / self._variance
        return gain

    def permuted(self, dice: np.random.Generator) -> Shares:
        """Return the gains of permuted residuals: permutations x parts."""
        order = np.argsort(self.group, kind="stable")
        edges = np.flatnonzero(np.diff(self.group[order])) + 1
        groups = np.split(order, edges)
        mixed = np.tile(self.residual, (PERMUTATIONS, 1))
        for row in mixed:
            for own in groups:
                row[own] = self.residual[dice.permutation(own)]
        sums = np.maximum(self.marks.T @ mixed.T, 0)
        gain = sums**2 / np.maximum(self.squares, 1e-12)[:, None] / 2 / self._variance
        return np.asarray(gain.T)


def _centered(residual: Shares) -> Shares:
    clipped = np.clip(residual, -CLIP, CLIP)
    return np.asarray(clipped - clipped.mean())


@dataclass
class Search:
    """The search among the parts of a fabric; `prior` is what is known of each part.

    Samples are independent, and a part may slow each by another amount: residuals are
    clipped, and shares of adaptive routes are a guess. So their gains are added.
    """

    samples: Sequence[Sample]
    prior: Shares
    _known: dict[frozenset[int], Shares] = field(default_factory=dict, init=False)

    def gains(self, given: Sequence[int] = ()) -> Shares:
        """Return the gain of each part, given others; -inf for these."""
        key = frozenset(given)
        if key not in self._known:
            order = sorted(key)
            gain = self.prior + sum(sample.gains(order) for sample in self.samples)
            gain[order] = -np.inf
            self._known[key] = gain
        return self._known[key]

    def chosen(self, most: int) -> list[tuple[int, float]]:
        """Return `most` parts with their gains, the best set that was found.

        The strongest comes first; the gain of each is given those before it.
        """
        starts = np.argsort(self.gains(), kind="stable")[::-1][:STARTS]
        sets = []
        for start in starts.tolist():
            own = [start]
            while len(own) < most:
                own.append(int(np.argmax(self.gains(own))))
            for place in range(len(own)):
                own[place] = int(np.argmax(self.gains(own[:place] + own[place + 1 :])))
            sets.append([*self._valued(own)])
        return max(sets, key=lambda one: sum(gain for _, gain in one))

    def _valued(self, own: Sequence[int]) -> Iterator[tuple[int, float]]:
        left, before = [*own], list[int]()
        while left:
            gains = self.gains(before)
            strongest = max(left, key=lambda part: gains[part])
            yield strongest, float(gains[strongest])
            left.remove(strongest)
            before.append(strongest)


def chance_of(search: Search, dice: np.random.Generator) -> Callable[[float], float]:
    """Return the chance that a sound fabric reaches a gain: Gumbel, of permutations."""
    gains = sum(sample.permuted(dice) for sample in search.samples)
    greatest = np.asarray(gains).max(axis=1)
    scale = max(float(np.std(greatest, ddof=1)) * 6**0.5 / np.pi, 1e-3)
    place = float(np.mean(greatest)) - _EULER * scale
    return lambda gain: float(-np.expm1(-np.exp(-(gain - place) / scale)))
