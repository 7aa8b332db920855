"""`memlat`, `fixedwork` and `osnoise`: programs of one node, without MPI."""

import os
from collections.abc import Iterator

from seatrial.standins.rows import Value, row_text, run_rows, times, validation
from seatrial.standins.run import Run

_CACHES_NS = ((48 << 10, 1.1), (2 << 20, 4.0), (32 << 20, 20.0))
"""Sizes of the caches in bytes, and how long a load from each takes."""

_FLOPS = 24
"""Operations of an iteration of fixedwork."""

_LOST_PERCENT, _DETOUR_US, _TICK_US = 0.05, 8.0, 4000.0
"""Noise of a sound node: time lost, p99.9 of a quantum, and the kernel's tick."""


def memlat(run: Run) -> Iterator[str]:
    """Print the latency of loads from working sets of growing size."""
    run.expect("--huge-pages", "--validate", "--json", "--sizes")
    run.options.setdefault("--iterations", "200")
    run.options.setdefault("--warmup", "1")
    return run_rows(run, (_load_row(run, size) for size in run.span("--sizes", "0:0")))


def _load_row(run: Run, size: int) -> dict[str, Value]:
    """Mix the caches by their share of the working set, as random loads do."""
    pages = run.options.get("--huge-pages", "off")
    slow = run.machine.slowness(run.job.node, "memory")
    levels = [*_CACHES_NS, (size, run.machine.numbers["memory_latency_ns"] * slow)]
    seen, load_ns = 0, 0.0
    for level, (room, cost_ns) in enumerate(levels):
        is_last = level + 1 == len(levels)
        until = size if is_last else min(size, room)
        load_ns += max(0, until - seen) / size * cost_ns
        seen = max(seen, until)
    load_ns *= run.machine.noise()
    run.seconds += 200 * 4096 * load_ns / 1e9
    return {
        "host": run.job.node,
        "stride": 64,
        "loads": 4096,
        "cache_bytes": _CACHES_NS[-1][0],
        "huge_pages": pages,
        "size_bytes": size,
        "huge_bytes": 0 if pages == "off" else size,
        "cpu": min(os.sched_getaffinity(0)),
        **times(run.machine, load_ns, "ns"),
        "n": 200,
        **validation(run),
    }


def fixedwork(run: Run) -> Iterator[str]:
    """Print the rate of fixed work of every core."""
    run.expect("--validate", "--json", "--time", "--threads", "--cpus")
    run.options["--iterations"] = "250000"
    run.options["--warmup"] = "1"
    bound = run.options.get("--cpus")
    cpus = bound.split(",") if bound else [*map(str, range(run.number("--threads", 1)))]
    run.seconds = run.number("--time", 20_000) / 1e3
    rows = (_work_row(run, int(cpu), len(cpus), bound is not None) for cpu in cpus)
    return run_rows(run, rows)


def _work_row(run: Run, cpu: int, cores: int, is_bound: bool) -> dict[str, Value]:
    machine, iterations = run.machine, 250_000
    slow = machine.slowness(run.job.node, "compute")
    gflops = machine.numbers["gflops"] / cores / slow * machine.noise()
    mean_us = iterations * _FLOPS / gflops / 1e3
    n = max(4, round(run.seconds * 1e6 / mean_us))
    late_us = mean_us * (1.02 + machine.jitter(0.02))
    seconds = n * mean_us / 1e6
    return {
        "host": run.job.node,
        "time_ms": run.number("--time", 20_000),
        "bound": "yes" if is_bound else "no",
        "cpu": cpu,
        "seconds": seconds,
        "cpu_seconds": seconds * (1 - machine.jitter(0.002)),
        "gflops": gflops,
        "first_per_s": 1e6 / mean_us * machine.noise(),
        "last_per_s": 1e6 / mean_us * machine.noise(),
        "min_us": mean_us * 0.995,
        "p50_us": mean_us,
        "p99_us": late_us,
        "max_us": late_us * (1.01 + machine.jitter(0.1)),
        "mean_us": mean_us,
        "n": n,
        **validation(run),
    }


def osnoise(run: Run) -> Iterator[str]:
    """Print the noise of a node: the usual tick, and a daemon once in a while."""
    run.expect("--time", "--quantum", "--odds", "--node", "--validate", "--json")
    machine, cores = run.machine, int(os.environ.get("SLURM_CPUS_ON_NODE", "2"))
    quantum_us = run.number("--quantum", 100)
    run.seconds = run.number("--time", 10_000) / 1e3
    slow = machine.slowness(run.job.node, "noise")
    lost = _LOST_PERCENT * slow * machine.noise()
    late_us = _DETOUR_US * slow * machine.noise()
    yield row_text(
        {
            "program": "osnoise",
            "version": "0.1.0",
            "commit": "model",
            "host": run.job.node,
            "time_ms": run.number("--time", 10_000),
            "quantum_us": quantum_us,
            "odds": run.number("--odds", 1_000_000),
            "iterations": 25 * quantum_us,
            "cores": cores,
            "lost_percent": lost,
            "worst_lost_percent": lost * (1 + machine.jitter(0.1) * (cores > 1)),
            "worst_cpu": 0,
            "p99_9_us": late_us,
            "p99_9_cpu": cores - 1,
            "max_us": late_us * (2 + machine.jitter(1)),
            "max_cpu": 0,
            "periodic_cores": cores,
            "period_us": _TICK_US,
            "period_lost_percent": lost / 2,
            "period_cpu": 0,
            "n": max(cores, round(cores * run.seconds * 1e6 / quantum_us)),
            **validation(run),
        }
    )


PROGRAMS = {"memlat": memlat, "fixedwork": fixedwork, "osnoise": osnoise}
