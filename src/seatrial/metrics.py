"""The one table of metrics: unit, direction and meaning of every number taken.

Metrics of upstream tools keep their own names (`RandomlyOrderedRingLatency_usec`).
"""

from dataclasses import dataclass
from typing import Literal

from seatrial.units import parse_size, size_label

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Metric:
    """What a metric is; `direction` says which values are better."""

    name: str
    unit: str
    direction: Direction
    meaning: str


METRICS = {
    metric.name: metric
    for metric in (
        Metric("latency", "us", "lower", "half round trip, or mean time of a call"),
        Metric("bw", "MB/s", "higher", "bandwidth, 10^6 B/s"),
        Metric("exchange_time", "us", "lower", "one halo exchange, slowest rank"),
        Metric("loop_time", "s", "lower", "LAMMPS time of the 100 timed steps"),
        Metric("HPL_Tflops", "Tflop/s", "higher", "HPL rate of all processes"),
        Metric("MaxPingPongLatency_usec", "us", "lower", "HPCC, worst pair, 8 B"),
        Metric(
            "MinPingPongBandwidth_GBytes", "GB/s", "higher", "HPCC, worst pair, 2 MB"
        ),
        Metric(
            "NaturallyOrderedRingLatency_usec", "us", "lower", "HPCC ring in rank order"
        ),
        Metric(
            "NaturallyOrderedRingBandwidth_GBytes",
            "GB/s",
            "higher",
            "HPCC ring in rank order, per process",
        ),
        Metric(
            "RandomlyOrderedRingLatency_usec", "us", "lower", "HPCC ring, random order"
        ),
        Metric(
            "RandomlyOrderedRingBandwidth_GBytes",
            "GB/s",
            "higher",
            "HPCC ring, random order, per process",
        ),
    )
}


def flat_name(metric: str, size_bytes: int | None = None) -> str:
    """Name a metric at ReFrame's edge: `latency_8B`, `loop_time`."""
    return metric if size_bytes is None else f"{metric}_{size_label(size_bytes)}"


def split_flat_name(flat: str) -> tuple[Metric, int | None]:
    """Turn a flat name back into its metric and size; ValueError if it is none."""
    if flat in METRICS:
        return METRICS[flat], None
    name, _, label = flat.rpartition("_")
    if name not in METRICS:
        raise ValueError(
            f"unknown metric {flat!r}, expected a name such as latency_8B, of "
            + ", ".join(METRICS)
        )
    return METRICS[name], parse_size(label)
