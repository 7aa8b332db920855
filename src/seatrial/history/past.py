"""The last visits of each series, and the nights in which a loss may have begun."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.history.detector import Floats, Integers, independent_share

VISITS = 80
"""Visits that are kept of each series."""

_DISTANCE = 4.0
"""Log likelihood below the best split at which a night is still possible.

The true night is outside with a probability of about 2 exp(-4), 4 %, as the two sides
of a likelihood of splits are random walks.
"""

_FAR = 8.0
"""The same for what two losses may have in common: one in 1,500 is outside."""

_PART = 0.25
"""A metric with this part of the largest evidence, as a logarithm, contributes."""


@dataclass
class Past:
    """The last visits, (series, metrics, VISITS), and their nights, -1 without one."""

    signals: NDArray[np.float32]
    nights: NDArray[np.int32]

    @classmethod
    def empty(cls, series: int, metrics: int) -> "Past":
        """Return the past of series without visits."""
        signals = np.full((series, metrics, VISITS), np.nan, np.float32)
        return cls(signals, np.full((series, VISITS), -1, np.int32))

    def add(self, night: int, series: Integers, signals: Floats) -> None:
        """Add a visit of each of these series, (series, metrics)."""
        self.signals[series, :, :-1] = self.signals[series, :, 1:]
        self.signals[series, :, -1] = signals
        self.nights[series, :-1] = self.nights[series, 1:]
        self.nights[series, -1] = night

    def since(self, one: int, night: int) -> tuple[Integers, Floats]:
        """Return the nights and signals, (visits, metrics), from a night on."""
        later = self.nights[one] >= max(night, 0)
        signals = self.signals[one][:, later].T.astype(np.float64)
        return self.nights[one, later].astype(np.int64), signals

    def losses(self, metrics: Integers, since: Integers) -> Floats:
        """Return the loss of each series from a night of its own on, (series,).

        The mean of these metrics before less that after; NaN without one of them.
        """
        visited = self.nights >= 0
        later = self.nights >= since[:, np.newaxis]
        signals = self.signals[:, metrics]
        means = []
        for chosen in (visited & ~later, visited & later):
            known = chosen[:, np.newaxis] & ~np.isnan(signals)
            total = np.where(known, signals, 0).sum(axis=(1, 2))
            count = known.sum(axis=(1, 2))
            means.append(np.where(count, total / np.maximum(count, 1), np.nan))
        return np.asarray(means[0] - means[1], dtype=np.float64)


@dataclass(frozen=True)
class Fall:
    """A loss of a series: the first and the last night at which it may have begun.

    `possible` is a wider span of nights, to look for common causes.
    `metrics` lost from level `before` to `after` (as signals), worst first.
    """

    onset: tuple[int, int]
    possible: tuple[int, int]
    metrics: Integers
    before: Floats
    after: Floats


def fall_of(
    nights: Integers,
    signals: Floats,
    mean: Floats,
    spread: Floats,
    logs: Floats,
    *,
    margin: float,
    correlation: float,
) -> Fall:
    """Find the onset of a loss in the visits of a convicted series, (visits, metrics).

    The likelihood of a split compares the visits from it on with the known baseline;
    the new level is their mean. Visits of successive nights count less. Metrics are
    those with much of the evidence, `logs`, and a loss above the margin.
    """
    usable = np.where(np.isnan(mean), -np.inf, logs)
    chosen = np.flatnonzero(usable >= max(_PART * usable.max(), 0))
    if not chosen.size:
        chosen = np.array([int(np.argmax(usable))])
    known = ~np.isnan(signals[:, chosen])
    scale = np.maximum(spread[chosen], 1e-9)
    lost = np.where(known, (mean[chosen] - signals[:, chosen]) / scale, 0)
    count = np.maximum(np.cumsum(known[::-1], axis=0)[::-1], 1)
    total = np.maximum(np.cumsum(lost[::-1], axis=0)[::-1], 0)
    news = independent_share(correlation, np.diff(nights, prepend=nights[0] - 1))
    news = np.cumsum(news[::-1])[::-1] / np.arange(len(nights), 0, -1)
    likelihood = news * (total**2 / count / 2).sum(axis=1)
    best = int(np.argmax(likelihood))
    spans = []
    for distance in (_DISTANCE, _FAR):
        splits = np.flatnonzero(likelihood >= likelihood[best] - distance)
        first, last = int(splits[0]), int(splits[-1])
        begins = int(nights[first - 1]) + 1 if first else int(nights[0])
        spans.append((begins, int(nights[last])))
    losses = np.nan_to_num(scale * total[best] / count[best])
    after = mean[chosen] - losses
    order = np.argsort(-losses, kind="stable")
    order = order[: max(int((losses >= margin).sum()), 1)]
    chosen = chosen[order]
    return Fall(spans[0], spans[1], chosen, mean[chosen], after[order])
