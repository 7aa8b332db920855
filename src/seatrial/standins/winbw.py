"""`winbw`: windows of RDMA writes by one port, and by two."""

from collections.abc import Iterator

from seatrial.standins.pairs import Pairs
from seatrial.standins.rows import Value, run_rows, times, validation
from seatrial.standins.run import Run, UsageError
from seatrial.standins.verbs import (
    VERBS_OPTIONS,
    Nodes,
    devices,
    iterations,
    link_fields,
    operation_us,
    sizes,
    two_nodes,
)

_POLICIES = ("single", "striped", "bound")
_BOTH_WAYS = 1.05
"""Time of a window while the other direction has one too, over that of one alone."""
_TWO_PORTS = 1.95
"""Bandwidth of two ports, over that of one."""


def winbw(run: Run) -> Iterator[str]:
    """Print a row of each use of the ports, direction, and size."""
    own = ("--direction", "--policy", "--threshold", "--window")
    run.expect(*VERBS_OPTIONS, *own)
    run.options.setdefault("--iterations", "100")
    run.options.setdefault("--warmup", "10")
    ports = devices(run)
    if len(ports) > 2:
        raise UsageError(f"--device has {len(ports)} ports, expected 1 or 2")
    nodes = two_nodes(run)
    policy = run.options.get("--policy", "all")
    direction = run.options.get("--direction", "all")
    return run_rows(
        run,
        (
            _row(run, nodes, use, way, size)
            for use in _POLICIES[: 1 if len(ports) == 1 else None]
            for way in ("uni", "bi")
            for size in sizes(run, "1:4194304")
            if policy in ("all", use) and direction in ("all", way)
        ),
    )


def _row(run: Run, nodes: Nodes, use: str, way: str, size: int) -> dict[str, Value]:
    bench, pairs = Pairs(run, *nodes), run.job.ranks // 2
    ports = devices(run)
    threshold = run.number("--threshold", 8192)
    is_cut = use == "striped" and size > threshold
    sharing, scale = pairs, 1.0
    if use == "bound" and pairs > 1:
        sharing = -(-pairs // len(ports))
    if way == "bi" and (use != "bound" or pairs > 1):
        scale *= _BOTH_WAYS
    if is_cut:
        scale /= _TWO_PORTS
    reply_us = operation_us(run, "send", nodes, 0)
    window_us = bench.window_us(size, sharing, scale) + reply_us
    of_time = times(run.machine, window_us)
    made = iterations(run, window_us)
    interval_us = made * of_time["mean_us"] * 1.01
    run.seconds += interval_us / 1e6
    messages = pairs * bench.window * made * (2 if way == "bi" else 1)
    other = ports[1] if len(ports) > 1 else None
    return {
        **link_fields(run, nodes),
        "device_2": other,
        "peer_device_2": other,
        "rails": len(ports),
        "threshold_bytes": threshold,
        "window": bench.window,
        "policy": use,
        "direction": way,
        "pairs": pairs,
        "size_bytes": size,
        "pieces": len(ports) if is_cut else 1,
        "mb_per_s": messages / interval_us * size,
        "msg_per_s": messages / interval_us * 1e6,
        "interval_us": interval_us,
        **of_time,
        "n": made * pairs,
        **validation(run),
    }


PROGRAMS = {"winbw": winbw}
