"""Find series that became worse: an e-detector for many series at once.

A series has signals of several metrics at each of its visits, in the order of time.
Higher signals are better. A visit is compared with the baseline of its series: the
earlier visits without the newest, which may already have the fault.

The residual of a visit becomes a normal score by its rank among the residuals of all
series so far, so the shape of the noise does not matter. A bet on low scores multiplies
the evidence. The Shiryaev-Roberts sum adds up the evidence since each possible onset.
Without a change its expectation grows by 1 a visit, for any dependence between series
(Shin, Ramdas and Rinaldo, "E-detectors", 2023). So it reaches c at most once in c
visits, on average.

This holds exactly for a known baseline. A baseline of few visits may be wrong by
chance, and the sum then grows up to twice as fast. So a large sum only begins a watch
(`tracker`).
"""

from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.typing import NDArray

from seatrial.judge.order_statistics import medians

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
Integers = NDArray[np.int64]

DEPTH, LAG, LEAST = 60, 6, 8
"""Visits of a baseline at most; newest visits that do not count; fewest visits."""

_PRIOR = 8.0
"""Weight of the scatter of all series in the scatter of one, in visits."""

_EDGE, _BINS = 8.0, 321
_NORMAL = 200.0
"""Weight of the normal distribution beside the residuals, in residuals."""

_STEPS = np.array([1.0, 2.0, 3.0])
"""Losses that are bet on, in standard deviations of a visit."""

_MOST = np.exp(4.0)
"""Largest payoff of one visit: one night proves little."""


def bet(score: Floats) -> Floats:
    """Return the payoff of a bet on low normal scores; its expectation is 1."""
    return _payoff(score) / _FAIR


def _payoff(score: Floats) -> Floats:
    terms = np.exp(-_STEPS * score[..., np.newaxis] - _STEPS**2 / 2)
    return np.asarray(np.minimum(terms.mean(axis=-1), _MOST))


def _fair() -> float:
    grid = np.linspace(-10, 10, 20_001)
    density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    return float(np.sum(_payoff(grid) * density) * (grid[1] - grid[0]))


_FAIR = _fair()


def independent_share(correlation: float, nights: Floats) -> Floats:
    """Return the independent share of a visit, by the nights since the last visit.

    A payoff to the power of this share allows for AR(1) noise.
    """
    same = correlation ** np.maximum(nights, 1)
    return np.asarray((1 - same) / (1 + same))


@dataclass
class Baselines:
    """The last visits of all series, (series, metrics, DEPTH + LAG), the newest last.

    `counts` (metrics, bins) has the residuals of all series, in standard deviations.
    """

    recent: NDArray[np.float32]
    counts: Floats = field(init=False)

    @classmethod
    def empty(cls, series: int, metrics: int) -> "Baselines":
        """Return the baselines of series without visits."""
        return cls(np.full((series, metrics, DEPTH + LAG), np.nan, np.float32))

    def __post_init__(self) -> None:
        """Begin with normal residuals."""
        self.counts = np.zeros((self.recent.shape[1], _BINS))

    def of(self, series: Integers) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of a next visit, (series, metrics).

        NaN where the baseline has too few visits.
        """
        past = self.recent[series, :, :DEPTH].astype(np.float64)
        known = ~np.isnan(past)
        n = known.sum(axis=2)
        enough = n >= LEAST
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(known, past, 0).sum(axis=2) / n
            rest = np.where(known, past - mean[..., np.newaxis], 0)
            squares = (rest**2).sum(axis=2)
            own = np.where(enough, squares / (n - 1), np.nan)
        typical = np.fmax(medians(own.T), 0.0)  # 0: not known
        variance = (_PRIOR * typical + squares) / (_PRIOR + n - 1)
        spread = np.sqrt(variance * (1 + 1 / np.maximum(n, 1)))
        return np.where(enough, mean, np.nan), np.where(enough, spread, np.nan)

    def scores(self, residuals: Floats) -> Floats:
        """Return normal scores of residuals, (series, metrics), in standard deviations.

        By their rank among all residuals so far; NaN stays.
        """
        below = np.cumsum(self.counts, axis=1) - self.counts / 2
        total = self.counts.sum(axis=1)
        known = np.where(np.isnan(residuals), 0.0, residuals)
        column = np.broadcast_to(np.arange(residuals.shape[1]), residuals.shape)
        rank = below[column, _bin(known)] + 1 + _NORMAL * scipy.special.ndtr(known)
        share = rank / (total[column] + 2 + _NORMAL)
        return np.where(np.isnan(residuals), np.nan, scipy.special.ndtri(share))

    def note(self, residuals: Floats) -> None:
        """Add residuals to the distribution of all."""
        row, column = np.nonzero(~np.isnan(residuals))
        np.add.at(self.counts, (column, _bin(residuals[row, column])), 1)

    def add(self, series: Integers, signals: Floats) -> None:
        """Add a visit of each of these series, (series, metrics)."""
        self.recent[series, :, :-1] = self.recent[series, :, 1:]
        self.recent[series, :, -1] = signals

    def forget(self, series: Integers) -> None:
        """Begin the baselines of these series anew."""
        self.recent[series] = np.nan


def _bin(residuals: Floats) -> Integers:
    place = (residuals + _EDGE) / (2 * _EDGE) * (_BINS - 1)
    return np.asarray(np.clip(np.rint(place), 0.0, _BINS - 1.0), dtype=np.int64)


@dataclass
class Detector:
    """Evidence of a loss in each series since each possible onset.

    `sums` (series, metrics) are the Shiryaev-Roberts sums, `mean` of the same shape is
    that of the baseline at the last visit (NaN if it is too short), `last` (series,)
    the last night of each, -1 before it.
    """

    correlation: float
    baselines: Baselines
    sums: Floats
    mean: Floats
    last: Integers

    @classmethod
    def empty(cls, series: int, metrics: int, correlation: float) -> "Detector":
        """Return a detector before the first visit."""
        baselines = Baselines.empty(series, metrics)
        sums = np.zeros((series, metrics))
        mean = np.full((series, metrics), np.nan)
        return cls(correlation, baselines, sums, mean, np.full(series, -1))

    def visit(
        self, night: int, series: Integers, signals: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Update the evidence by the visits of a night.

        `signals` has the shape (series, metrics), NaN without a number. Returns the
        mean sum of each series, (series,), then mean and spread of its baseline.
        """
        mean, spread = self.baselines.of(series)
        with np.errstate(invalid="ignore", divide="ignore"):
            residuals = (signals - mean) / spread
        residuals[~np.isfinite(residuals)] = np.nan
        scores = self.baselines.scores(residuals)
        power = self.news(night, series)[:, np.newaxis]
        before = self.sums[series]
        grown = (1 + before) * bet(scores) ** power
        self.sums[series] = np.where(np.isnan(scores), before, grown)
        self.baselines.note(residuals)
        self.baselines.add(series, signals)
        self.last[series], self.mean[series] = night, mean
        return mean_of(self.sums[series], ~np.isnan(signals)), mean, spread

    def news(self, night: int, series: Integers) -> Floats:
        """Return the independent share of a visit of each series in this night."""
        last = self.last[series]
        nights = np.where(last >= 0, night - last, 365)
        return independent_share(self.correlation, nights)

    def forget(self, series: Integers) -> None:
        """Forget baselines and evidence of these series."""
        self.baselines.forget(series)
        self.mean[series] = np.nan
        self.restart(series)

    def restart(self, series: Integers) -> None:
        """Forget the evidence of these series; their baselines stay."""
        self.sums[series] = 0


def mean_of(values: Floats, known: Marks) -> Floats:
    """Return the mean over the metrics that a visit has; 0 without any."""
    count = np.maximum(known.sum(axis=1), 1)
    return np.asarray(np.where(known, values, 0).sum(axis=1) / count)
