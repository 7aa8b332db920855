"""`mp_rdma_lat` and `mp_rdma_bw`: RDMA of many pairs of ranks at once."""

from collections.abc import Callable, Iterator

from seatrial.standins.pairs import Pairs
from seatrial.standins.rows import Value, run_rows, times, validation
from seatrial.standins.run import Run
from seatrial.standins.verbs import (
    CLOCK_US,
    VERBS_OPTIONS,
    Nodes,
    iterations,
    link_fields,
    operation_us,
    pair_counts,
    sizes,
    two_nodes,
)

_OPTIONS = ("--operation", "--pairs", "--spread-limit")
_SPREAD_NS = (60.0, 150.0)
"""Usual and longest time between ranks that leave their barrier."""
_READ_WINDOW = 1.03
"""Time of a window of reads, over that of writes."""

Fields = dict[str, Value]
Measured = tuple[Fields, dict[str, float], int]
"""Fields of a program, its times, and its operations."""
Measure = Callable[[Run, Nodes, str, int, int], Measured]


def _rows(run: Run, measure: Measure) -> Iterator[str]:
    """Print a row of each operation, number of pairs, and size."""
    nodes = two_nodes(run)
    chosen = run.options.get("--operation", "all")
    operations = ("write", "read") if chosen == "all" else (chosen,)
    return run_rows(
        run,
        (
            _row(run, measure, nodes, operation, pairs, size)
            for operation in operations
            for pairs in pair_counts(run)
            for size in sizes(run, "1:4194304")
        ),
    )


def _row(
    run: Run, measure: Measure, nodes: Nodes, operation: str, pairs: int, size: int
) -> Fields:
    """Return a row; no operation is dropped, as ranks start close together."""
    own, of_time, made = measure(run, nodes, operation, pairs, size)
    limit = run.number("--spread-limit", 200)
    usual, longest = (
        0.0 if pairs == 1 else min(limit or value, value * run.machine.noise())
        for value in _SPREAD_NS
    )
    return {
        **link_fields(run, nodes),
        "operation": operation,
        "pairs": pairs,
        "size_bytes": size,
        "clock_us": CLOCK_US,
        **own,
        **of_time,
        "n": made * pairs,
        "spread_limit_ns": limit,
        "spread_p50_ns": min(usual, longest),
        "spread_max_ns": longest,
        "operations": made,
        "dropped": 0,
        **validation(run),
    }


def _latency(run: Run, nodes: Nodes, operation: str, pairs: int, size: int) -> Measured:
    us = operation_us(run, operation, nodes, size, pairs)
    of_time = times(run.machine, us)
    made = iterations(run, 2 * us)
    run.seconds += 2 * made * us / 1e6
    slowest = of_time["mean_us"] * (1 if pairs == 1 else 1.01)
    return {"slowest_us": slowest}, of_time, made


def _bandwidth(
    run: Run, nodes: Nodes, operation: str, pairs: int, size: int
) -> Measured:
    bench = Pairs(run, *nodes)
    us = bench.window_us(size, pairs, _READ_WINDOW if operation == "read" else 1)
    of_time = times(run.machine, us)
    made = iterations(run, us)
    interval_us = made * of_time["mean_us"] * 1.01
    run.seconds += interval_us / 1e6
    usual = bench.window * size / of_time["mean_us"]
    rates = [usual * run.machine.noise() for _ in range(pairs)]
    msg_per_us = pairs * bench.window * made / interval_us
    own: Fields = {
        "window": bench.window,
        "mb_per_s": msg_per_us * size,
        "msg_per_s": msg_per_us * 1e6,
        "interval_us": interval_us,
        "least_mb_per_s": min(rates),
        "most_mb_per_s": max(rates),
        "fairness": sum(rates) ** 2 / pairs / sum(rate**2 for rate in rates),
    }
    return own, of_time, made


def mp_rdma_lat(run: Run) -> Iterator[str]:
    """Print latencies of writes and reads by the number of pairs."""
    run.expect(*VERBS_OPTIONS, *_OPTIONS)
    run.options.setdefault("--iterations", "1000")
    return _rows(run, _latency)


def mp_rdma_bw(run: Run) -> Iterator[str]:
    """Print bandwidths of writes and reads by the number of pairs."""
    run.expect(*VERBS_OPTIONS, *_OPTIONS, "--window")
    run.options.setdefault("--iterations", "100")
    run.options.setdefault("--warmup", "10")
    return _rows(run, _bandwidth)


PROGRAMS = {"mp_rdma_lat": mp_rdma_lat, "mp_rdma_bw": mp_rdma_bw}
