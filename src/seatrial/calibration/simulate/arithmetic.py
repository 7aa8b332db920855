"""Arithmetic and measurement of one value held against one tolerance."""

from dataclasses import dataclass

import numpy as np
import scipy

from seatrial.calibration.simulate.draw import draw
from seatrial.calibration.simulate.machine import Machine
from seatrial.calibration.simulate.rules import RULES, fixed_tolerance

_NODES, _METRICS = 1000, 20
_TRIALS = 2000


@dataclass(frozen=True)
class Fact:
    """A statement, the number by arithmetic and the measured one, of `trials`."""

    statement: str
    expected: float
    measured: float
    trials: int


def facts(seed: int = 1) -> list[Fact]:
    """Measure a healthy machine and a node exactly 5 % slow."""
    healthy = Machine(
        nodes=_NODES,
        metrics=_METRICS,
        repeats=1,
        shape="normal",
        level=1.0,
        spread=0.0,
        allocation=0.0,
    )
    generator = np.random.default_rng(seed)
    drawn = draw(healthy, generator)
    results = _NODES * _METRICS
    measured = [
        Fact(
            f"healthy results that a {k}-sigma rule flags, {_NODES} nodes x "
            f"{_METRICS} metrics",
            results * float(scipy.stats.norm.sf(k)),
            float(RULES[f"{k} sigma"](drawn).sum()),
            results,
        )
        for k in (2, 3)
    ]
    slow = Machine(
        kind="value", metrics=_TRIALS, repeats=5, shape="normal", level=1.0, spread=0.0
    )
    passed = ~fixed_tolerance(draw(slow, generator))
    measured.append(
        Fact(
            "nodes truly 5 % slow that pass a 5 % tolerance, %",
            50.0,
            100 * float(passed.mean()),
            _TRIALS,
        )
    )
    return measured
