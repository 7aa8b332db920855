"""`mqp_lat`: messages over many connections of one adapter."""

from collections.abc import Iterator

from seatrial.standins.rows import Value, run_rows, times, validation
from seatrial.standins.run import Run, UsageError
from seatrial.standins.verbs import (
    CLOCK_US,
    VERBS_OPTIONS,
    Nodes,
    doubled,
    iterations,
    link_fields,
    operation_us,
    sizes,
    span,
    two_nodes,
)

_OPTIONS = ("--connections", "--mode", "--test", "--depth", "--duration")
_AT_HAND = 128
"""Connections whose state the adapter keeps."""
_FETCH_US = 0.15
"""Time to fetch the state of another one."""


def mqp_lat(run: Run) -> Iterator[str]:
    """Print latency and throughput by the number of connections."""
    run.expect(*VERBS_OPTIONS, *_OPTIONS)
    run.options.setdefault("--iterations", "100")
    run.options.setdefault("--warmup", "10")
    if run.job.ranks != 2:
        ranks = run.job.ranks
        raise UsageError(f"found {ranks} ranks: mqp_lat takes two, one on each node")
    nodes = two_nodes(run)
    mode, test = run.options.get("--mode", "all"), run.options.get("--test", "all")
    return run_rows(
        run,
        (
            _row(run, nodes, way, kind, connections, size)
            for way in ("send", "write")
            for kind in ("latency", "throughput")
            for connections in doubled(*span(run, "--connections", "1:256"))
            for size in sizes(run, "1:16384")
            if mode in ("all", way) and test in ("all", kind)
        ),
    )


def _row(
    run: Run, nodes: Nodes, mode: str, test: str, connections: int, size: int
) -> dict[str, Value]:
    machine, depth = run.machine, run.number("--depth", 4)
    fetch_us = _FETCH_US * max(0.0, 1 - _AT_HAND / connections)
    message_us = 1 / machine.window_rate(*nodes, size) + fetch_us
    trip_us = operation_us(run, mode, nodes, size)
    names = ("min_us", "p50_us", "p99_us", "max_us", "mean_us")
    values: dict[str, Value] = {"mb_per_s": None, "msg_per_s": None}
    if test == "latency":
        middle_us = message_us + (trip_us - message_us) / connections
        made = iterations(run, 2 * connections * middle_us)
        run.seconds += 2 * made * connections * middle_us / 1e6
        values |= {**times(machine, middle_us), "n": made}
    else:
        at_once = connections * depth / (2 * trip_us)
        msg_per_s = 2e6 * min(1 / message_us, at_once) * machine.noise()
        run.seconds += run.number("--duration", 100) / 1e3
        values |= {"mb_per_s": msg_per_s * size / 1e6, "msg_per_s": msg_per_s}
        values |= {**dict.fromkeys(names), "n": 0}
    return {
        **link_fields(run, nodes),
        "depth": depth,
        "duration_ms": run.number("--duration", 100),
        "mode": mode,
        "test": test,
        "connections": connections,
        "size_bytes": size,
        "clock_us": CLOCK_US,
        **values,
        **validation(run),
    }


PROGRAMS = {"mqp_lat": mqp_lat}
