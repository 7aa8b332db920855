"""Convert the rows of a sweep over single nodes to samples."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from seatrial.checks.nodesweep.readings import COUNTERS
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.nodesweep import NodeSweep
from seatrial.parsers.nodesweep_rows import (
    CountersRow,
    FixedworkRow,
    HpccRow,
    MemlatRow,
    SensorsRow,
)

_BEYOND_CACHES = 4


def samples_of(sweep: NodeSweep, nodes: Sequence[str]) -> list[Sample]:
    """Return all numbers of a sweep."""
    curves: dict[tuple[str, int | None], list[MemlatRow]] = defaultdict(list)
    for row in sweep.memlat:
        curves[row.node, row.socket].append(row)
    return [
        *(sample for row in sweep.hpcc for sample in _of_hpcc(row)),
        *(sample for curve in curves.values() for sample in _of_memlat(curve)),
        *(sample for row in sweep.fixedwork for sample in _of_fixedwork(row)),
        *(sample for row in sweep.sensors for sample in _of_sensors(row)),
        *(sample for row in sweep.counters.values() for sample in _of_counters(row)),
        *(
            Sample("programs_passed", 100 * passed / expected, n=expected, node=node)
            for node, (passed, expected) in sweep.passed(nodes).items()
        ),
    ]


def verify_sizes(sweep: NodeSweep) -> None:
    """Raise ParseError unless STREAM and memlat measured memory, not the caches.

    Each array of STREAM must be four times as large as all last-level caches, by its
    run rules (J. McCalpin). So must the largest working set of memlat: then three
    quarters of its loads come from memory.
    """
    for row in sweep.hpcc:
        node = sweep.nodes[row.node]
        caches = node.cache_bytes * row.ranks / node.ranks
        if row.stream_bytes / 3 < _BEYOND_CACHES * caches:
            raise ParseError(
                0,
                f"{row.node}: each array of STREAM has {row.stream_bytes / 3:.3g} "
                f"bytes, its caches {caches:.3g}: N = {row.n} is too small to measure "
                "memory",
            )
    for largest in {(row.node, row.socket): row for row in sweep.memlat}.values():
        if largest.size_bytes < _BEYOND_CACHES * largest.cache_bytes:
            raise ParseError(
                0,
                f"{largest.node}: the largest working set has {largest.size_bytes} "
                f"bytes, its cache {largest.cache_bytes}: too small to measure memory",
            )


def _of_hpcc(row: HpccRow) -> Iterator[Sample]:
    """Return the numbers of a node, or of one of its sockets."""
    place: dict[str, Any] = {"node": row.node, "start_time": row.start_time}
    triad, dgemm = row.stream_triad_gb_per_s, row.dgemm_gflops
    if row.socket is not None:
        place["socket"] = row.socket
        yield Sample("socket_mem_bw", triad, **place)
        yield Sample("socket_dgemm", dgemm, **place)
        yield Sample("socket_hpl", row.hpl_gflops, **place)
        return
    one = {**place, "parameters": {"ranks": 1}}
    yield Sample("mem_bw", triad, **place)
    for kernel in ("copy", "scale", "add"):
        rate = getattr(row, f"stream_{kernel}_gb_per_s")
        yield Sample("mem_bw", rate, parameters={"kernel": kernel}, **place)
    yield Sample("mem_bw", row.stream_triad_single_gb_per_s, **one)
    yield Sample("dgemm", dgemm, **place)
    yield Sample("dgemm", row.dgemm_single_gflops, **one)
    yield Sample("hpl", row.hpl_gflops, **place)
    for metric, size_bytes, unit in (("latency", 8, "us"), ("bw", 2000000, "mb_per_s")):
        for statistic in ("mean", "min", "max"):
            value = getattr(row, f"{metric}_{statistic}_{unit}")
            if value is not None:
                yield Sample(metric, value, size_bytes, statistic, **place)
    if row.ring_latency_us is not None and row.ring_bw_mb_per_s is not None:
        yield Sample("RandomlyOrderedRingLatency_usec", row.ring_latency_us, **place)
        rate = row.ring_bw_mb_per_s / 1e3
        yield Sample("RandomlyOrderedRingBandwidth_GBytes", rate, **place)


def _of_memlat(curve: Sequence[MemlatRow]) -> Iterator[Sample]:
    """Return the latency of each working set, and of the largest as that of memory."""
    sizes = [(row, row.size_bytes, "p50") for row in curve]
    memory = [(curve[-1], None, name) for name in ("p50", "p99", "min", "max")]
    for row, size_bytes, statistic in (*sizes, *memory):
        yield Sample(
            "mem_latency",
            getattr(row, f"{statistic}_ns"),
            size_bytes,
            statistic,
            row.n,
            node=row.node,
            socket=row.socket,
            start_time=row.start_time,
        )


def _of_fixedwork(row: FixedworkRow) -> Iterator[Sample]:
    """Return the rates of a node, and whether its cores keep them."""
    place: dict[str, Any] = {"n": row.n, "node": row.node, "start_time": row.start_time}
    yield Sample("fixed_work", row.gflops, **place)
    yield Sample("slowest_core", row.slowest_gflops, **place)
    yield Sample("work_kept", row.kept_percent, **place)
    yield Sample("cpu_share", row.cpu_share_percent, statistic="min", **place)


def _of_sensors(row: SensorsRow) -> Iterator[Sample]:
    """Return clocks before and under load, and temperatures under load."""
    metric = {"quiet": "clock_idle", "hpcc": "clock_load"}.get(row.phase)
    if metric is None:
        return
    place: dict[str, Any] = {"node": row.node, "socket": row.socket, "n": row.n}
    for statistic in ("p50", "min"):
        value = getattr(row, f"clock_{statistic}_ghz")
        if value is not None:
            yield Sample(metric, value, statistic=statistic, **place)
    value = row.temperature_max_c
    if row.phase == "hpcc" and value is not None:
        yield Sample("temperature_max", value, statistic="max", **place)


def _of_counters(row: CountersRow) -> Iterator[Sample]:
    """Return the events of each counter under load, and those since boot before."""
    for name in COUNTERS:
        added, before = getattr(row, name), getattr(row, f"{name}_before")
        if added is not None:
            yield Sample(name, float(added), node=row.node)
        if before is not None:
            since_boot = {"since": "boot"}
            yield Sample(name, float(before), node=row.node, parameters=since_boot)
