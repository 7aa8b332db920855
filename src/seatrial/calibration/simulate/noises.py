"""Noise of simulated machines: series of numbers with mean 0 and variance 1."""

import math
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Noise = Literal["normal", "lognormal", "ar1", "skewed", "bimodal", "one-sided", "heavy"]

NOISES: tuple[Noise, ...] = get_args(Noise)
RHO = 0.5
"""Correlation of the noise `ar1` from one allocation to the next."""

_SYMMETRIC = ("normal", "lognormal", "ar1", "heavy")
_TURBO_SHARE, _MODE_WIDTH = 0.7, 0.25
_SKEWED_SHAPE = 2.0
_FOR_MEDIAN = 1 << 20


def errors(
    noise: Noise, shared: float, size: tuple[int, int], generator: np.random.Generator
) -> Floats:
    """Draw errors of (places, allocations) with median 0 and variance 1.

    `shared` is the part of the variance that all places of an allocation share: its
    luck, a series of the same noise.
    """
    own = unit_noise(noise, size, generator)
    luck = unit_noise(noise, (1, size[1]), generator)
    return _mixed(shared, own, luck) - _median(noise, shared)


def _mixed(shared: float, own: Floats, luck: Floats) -> Floats:
    return math.sqrt(1 - shared) * own + math.sqrt(shared) * luck


@lru_cache
def _median(noise: Noise, shared: float) -> float:
    """Return the median of the errors, so that a level is a median."""
    if noise in _SYMMETRIC:
        return 0.0
    both = unit_noise(noise, (2, _FOR_MEDIAN), np.random.default_rng(1))
    return float(np.median(_mixed(shared, *both)))


def unit_noise(
    noise: Noise, size: tuple[int, int], generator: np.random.Generator
) -> Floats:
    """Draw noise of mean 0 and standard deviation 1, a series in each row.

    ar1: normal, rho 0.5 from one to the next. skewed: gamma of shape 2, with the tail
    on the good side. one-sided: interference, exponential, which only makes numbers
    worse. bimodal: with turbo 7 times of 10. heavy: Student's t, 3 degrees of freedom.
    """
    if noise == "ar1":
        series = generator.standard_normal(size)
        for number in range(1, size[1]):
            series[:, number] *= math.sqrt(1 - RHO**2)
            series[:, number] += RHO * series[:, number - 1]
        return series
    if noise == "skewed":
        drawn = generator.gamma(_SKEWED_SHAPE, size=size)
        return np.asarray((drawn - _SKEWED_SHAPE) / math.sqrt(_SKEWED_SHAPE))
    if noise == "one-sided":
        return 1 - generator.exponential(size=size)
    if noise == "bimodal":
        turbo = generator.random(size) < _TURBO_SHARE
        apart = math.sqrt((1 - _MODE_WIDTH**2) / (_TURBO_SHARE * (1 - _TURBO_SHARE)))
        scatter = _MODE_WIDTH * generator.standard_normal(size)
        return apart * (turbo - _TURBO_SHARE) + scatter
    if noise == "heavy":
        return generator.standard_t(3, size) / math.sqrt(3)
    return generator.standard_normal(size)
