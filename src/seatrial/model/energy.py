"""Energy of loads: three quantities that are never mixed, and results per joule."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

SOURCES: Mapping[str, str] = {
    "rapl": "processor packages and DRAM, by RAPL",
    "board": "whole nodes, by the power command of the site",
    "slurm": "the job, as Slurm's energy plugin reads it",
}
"""The scope of each quantity, by the first word of its metrics."""

WORK: Mapping[str, tuple[str, str]] = {
    "gflop": ("Gflop/J", "10^9 floating-point operations"),
    "mop": ("Mop/J", "10^6 operations of NPB"),
    "atom_steps": ("1/J", "time steps of one atom"),
}
"""Unit of a result per joule and meaning of the result, by kind of work."""

RATES: Mapping[str, tuple[str, float]] = {
    "Gflop/s": ("gflop", 1.0),
    "Tflop/s": ("gflop", 1e3),
    "Mop/s": ("mop", 1.0),
}
"""Kind of work and factor to its unit per second, by units of rates."""

_OTHER_RATES = ("GUP/s",)


def work_rates(rates: Iterable[tuple[str, str, float]], nodes: int) -> dict[str, float]:
    """Return the work of a job per second, by kind, from its numbers.

    These are metric, unit and value: one number of all nodes, or one of each. Without
    a single rate of operations there is none: a job of several programs has several,
    and its power is the mean of all.
    """
    known = [rate for rate in rates if rate[1] in (*RATES, *_OTHER_RATES)]
    if len({metric for metric, _, _ in known}) != 1 or len(known) not in (1, nodes):
        return {}
    work, factor = RATES.get(known[0][1], ("", 0.0))
    total = factor * math.fsum(value for _, _, value in known)
    return {work: total} if work else {}


_SIZE = "message size"
_Row = tuple[
    str, str, Literal["higher", "lower"], str, str, Literal["nodes", "machine"]
]


def energy_metrics() -> Iterator[_Row]:
    """Yield the fields of the metrics of loads, in the order of `Metric`."""
    words = "times that a power limit slowed a core"
    yield "power_limit_events", "count", "lower", words, _SIZE, "nodes"
    for source, of in SOURCES.items():
        yield f"{source}_energy", "J", "lower", f"energy: {of}", _SIZE, "machine"
        yield f"{source}_power", "W", "lower", f"power: {of}", _SIZE, "nodes"
        for work, (unit, meaning) in WORK.items():
            words = f"{meaning} per joule: {of}"
            yield per_joule(work, source), unit, "higher", words, _SIZE, "machine"


def per_joule(work: str, source: str) -> str:
    """Return the name of the metric of a kind of work per joule of a source."""
    return f"{work}_per_{source}_joule"
