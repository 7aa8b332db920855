"""`congestion`: victims alone, and beside aggressors."""

from collections.abc import Iterator

from seatrial.standins.collectives import time_us
from seatrial.standins.rows import OWN_OPTIONS, Value, run_rows, validation
from seatrial.standins.run import Run, UsageError

_KINDS = ("mixed", "alltoall", "incast", "put", "get", "none")
_IMPACTS = {"latency": (1.3, 2.1), "bw": (1.5, 1.9), "allreduce": (1.4, 2.6)}
"""Factors on mean and 99th percentile beside aggressors."""
_TAIL = 1.15
_SIZES = {"latency": 8, "bw": 131_072, "allreduce": 8}


def congestion(run: Run) -> Iterator[str]:
    """Print mean and 99th percentile of the three victims."""
    own = ("--aggressors", "--rings", "--seed", "--sizes", "--window", "--windows")
    run.expect(*OWN_OPTIONS, *own)
    kind = run.options.get("--aggressors", "mixed")
    if kind not in _KINDS:
        raise UsageError(f"--aggressors {kind}, expected {', '.join(_KINDS)}")
    nodes = len(run.job.nodes)
    victims = max(2, nodes - 4 * nodes // 5)

    def row(victim: str) -> dict[str, Value]:
        size, is_rate = _SIZES[victim], victim == "bw"
        name = "allreduce" if victim == "allreduce" else "exchange"
        us = time_us(run, name, size) * run.machine.noise()
        mean = 2 * size / us if is_rate else us
        p99 = mean / _TAIL if is_rate else mean * _TAIL
        impacts = (1.0, 1.0) if kind == "none" else _IMPACTS[victim]
        noisy = [impact * run.machine.noise() for impact in impacts]
        loaded = [
            value / impact if is_rate else value * impact
            for value, impact in zip((mean, p99), noisy, strict=True)
        ]
        option = "--windows" if is_rate else "--iterations"
        each = run.number(option, 8 if is_rate else 200)
        n = victims * run.job.ppn * run.number("--rings", 30) * each
        run.seconds += 2 * us * n / 1e6
        return {
            "nodes": nodes,
            "victim_nodes": victims,
            "aggressor_nodes": nodes - victims,
            "seed": run.number("--seed", 1),
            "aggressors": kind,
            "rings": run.number("--rings", 30),
            "window": run.number("--window", 8),
            "windows": run.number("--windows", 8),
            "aggressor_bytes": 4096,
            "victim": victim,
            "size_bytes": size,
            "unit": "MB/s" if is_rate else "us",
            "isolated_mean": mean,
            "isolated_p99": p99,
            "isolated_n": n,
            "congested_mean": loaded[0],
            "congested_p99": loaded[1],
            "congested_n": n,
            "impact_mean": _ratio(mean, loaded[0], is_rate),
            "impact_p99": _ratio(p99, loaded[1], is_rate),
            "aggressor_operations": 0 if kind == "none" else 4096,
            "aggressor_mb_per_s": 0.0 if kind == "none" else 900.0,
            **validation(run),
        }

    return run_rows(run, map(row, _SIZES))


def _ratio(alone: float, loaded: float, is_rate: bool) -> float:
    return alone / loaded if is_rate else loaded / alone


PROGRAMS = {"congestion": congestion}
