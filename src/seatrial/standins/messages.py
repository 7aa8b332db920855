"""`bufreuse`, `mq_unexp` and `mq_posted`: what surrounds a message costs, too."""

from collections.abc import Iterator

from seatrial.standins.rows import (
    OWN_OPTIONS,
    Value,
    run_rows,
    slope,
    times,
    validation,
)
from seatrial.standins.run import Run

_NEW_BUFFER = {"eager": 1.08, "rendezvous": 1.15}
"""Latency from ever new buffers over that from the same one."""

_ENTRY_US = {"mq_unexp": 0.006, "mq_posted": 0.004}
"""Time of one more entry in the queue that a message searches."""


def _trip_us(run: Run, size: int) -> float:
    """Return half a round trip between the two ranks, with noise."""
    nodes = (run.job.node_of(0), run.job.node_of(run.job.ranks - 1))
    return run.machine.half_trip(*nodes, size) * run.machine.noise()


def bufreuse(run: Run) -> Iterator[str]:
    """Print latencies by the share of messages that re-use one buffer."""
    run.expect(*OWN_OPTIONS, "--buffers", "--sizes", "--eager-limit", "--reuse")
    shares = [*map(int, run.options.get("--reuse", "100,0").split(","))]
    rows = []
    for size in run.span("--sizes", "2048:65536"):
        full_us = _trip_us(run, size)
        for share in shares:
            rows.append(_reuse_row(run, size, share, full_us, shares))
    return run_rows(run, rows)


def _reuse_row(
    run: Run, size: int, share: int, full_us: float, shares: list[int]
) -> dict[str, Value]:
    limit, buffers = run.number("--eager-limit", 8192), run.number("--buffers", 1024)
    count = run.number("--iterations", 1000)
    protocol = "eager" if size <= limit else "rendezvous"
    cost = 1 + (_NEW_BUFFER[protocol] - 1) * (100 - share) / 100
    time = full_us if share == 100 else cost * _trip_us(run, size)
    run.seconds += 2 * count * time / 1e6
    return {
        "buffers": buffers,
        "eager_limit_bytes": limit,
        "swept_bytes": 1 << 26,
        "size_bytes": size,
        "protocol": protocol,
        "reuse_percent": share,
        "buffers_used": max(1, min(buffers, count) * (100 - share) // 100),
        **times(run.machine, time),
        "n": count,
        "ratio": time / full_us if 100 in shares else None,
        **validation(run),
    }


def match_queue(run: Run) -> Iterator[str]:
    """Print latencies behind a queue of growing depth, and what an entry adds."""
    run.expect(*OWN_OPTIONS, "--sizes", "--depth")
    depths = run.span("--depth", "0:8192")
    rows = []
    for size in run.span("--sizes", "8:8"):
        latencies = [
            _trip_us(run, size) + depth * _ENTRY_US[run.program] * run.machine.noise()
            for depth in depths
        ]
        slope_ns = 1e3 * slope(depths, latencies) if len(depths) > 1 else None
        for depth, time in zip(depths, latencies, strict=True):
            run.seconds += 2 * run.number("--iterations", 1000) * time / 1e6
            row: dict[str, Value] = {
                "tags": "ordered" if run.program == "mq_unexp" else "same",
                "entry_bytes": 8,
                "size_bytes": size,
                "depth": depth,
                **times(run.machine, time),
                "n": run.number("--iterations", 1000),
                "ratio": time / latencies[0],
                "slope_ns": slope_ns,
                **validation(run),
            }
            rows.append(row)
    return run_rows(run, rows)


PROGRAMS = {"bufreuse": bufreuse, **dict.fromkeys(_ENTRY_US, match_queue)}
