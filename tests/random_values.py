"""Random values, (places, units), whose median is 0: for tests of declared risks."""

from collections.abc import Callable

import numpy as np

from seatrial.judge.serial import Floats

Shape = tuple[int, int]
Draw = Callable[[np.random.Generator, Shape], Floats]


def normal(rng: np.random.Generator, shape: Shape) -> Floats:
    return rng.normal(0, rng.lognormal(0, 1, (shape[0], 1)), shape)


def log_of_lognormal(rng: np.random.Generator, shape: Shape) -> Floats:
    return np.asarray(np.log(rng.lognormal(0, 0.4, shape)))


def heavy_tail(rng: np.random.Generator, shape: Shape) -> Floats:
    return rng.standard_t(2, shape)


def exponential(rng: np.random.Generator, shape: Shape) -> Floats:
    return np.asarray(rng.exponential(1, shape) - np.log(2))


def bimodal(rng: np.random.Generator, shape: Shape) -> Floats:
    return rng.normal(rng.choice([-1, 1], shape), 0.2)


def coarse(rng: np.random.Generator, shape: Shape) -> Floats:
    return np.asarray(np.rint(rng.normal(0, 2, shape)))


def autoregressive(rng: np.random.Generator, shape: Shape, rho: float) -> Floats:
    """Draw series of standard normal values; neighbours have the correlation rho."""
    values = rng.normal(0, 1, shape)
    for unit in range(1, shape[1]):
        noise = np.sqrt(1 - rho**2) * values[:, unit]
        values[:, unit] = rho * values[:, unit - 1] + noise
    return values
