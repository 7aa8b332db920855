"""The numbers of HPCC's summary, and the second place of each in the file.

Names are HPCC 1.5's own. Rates are 10^9 per second, times us, sizes elements.
"""

import re
from dataclasses import dataclass
from typing import Literal

Of = Literal["all", "each", "one", "pair", "ring", "size"]
"""The processes that a number belongs to.

all: the sum over all processes; each: the mean of a process while all of them run
the same beside each other (Star); one: a single, random process while the others wait
(Single); pair: two processes while the others wait; ring: one process while all of them
send to both neighbours; size: no measurement, but the size of the problem.
"""


@dataclass(frozen=True)
class HpccMetric:
    """A number of the summary, the section that measured it, and its line there.

    The line shows the same number times `scale`.
    """

    unit: str
    of: Of
    section: str
    line: re.Pattern[str] | None = None
    scale: float = 1.0


def _line(before: str, after: str = "") -> re.Pattern[str]:
    """Return the pattern of a whole line with one number."""
    return re.compile(f"\n{before}(\\S+){after}(?=\n)")


_KINDS: dict[str, Of] = {"MPI": "all", "Star": "each", "Single": "one"}
_STREAM = {
    f"{kind}STREAM_{kernel}": HpccMetric(
        "GB/s", _KINDS[kind], f"{kind}STREAM", _line(f"{line} {kernel} GB/s ")
    )
    for kernel in ("Copy", "Scale", "Add", "Triad")
    for kind, line in (("Star", "Average"), ("Single", "Single STREAM"))
}
_RANDOM_ACCESS = {
    f"{kind}RandomAccess{which}_GUPs": HpccMetric(
        "GUP/s", _KINDS[kind], f"{kind}RandomAccess{which}", _line(*line)
    )
    for which in ("", "_LCG")
    for kind, line in (
        ("MPI", ("", r" Billion\(10\^9\) Updates    per second \[GUP/s\]")),
        ("Star", ("Average GUP/s ",)),
        ("Single", ("Single GUP/s ",)),
    )
}
_PINGPONG = re.compile(
    "\nPing Pong:"
    "\nLatency   min / avg / max: +(\\S+) / +(\\S+) / +(\\S+) msecs"
    "\nBandwidth min / avg / max: +(\\S+) / +(\\S+) / +(\\S+) MByte/s(?=\n)"
)
_RING = {
    order: re.compile(
        f"\nOn {order} +ordered ring: latency= +(\\S+) msec, "
        "bandwidth= +(\\S+) MB/s(?=\n)"
    )
    for order in ("naturally", "randomly")
}
GROUPS = {
    "MinPingPongLatency_usec": 1,
    "AvgPingPongLatency_usec": 2,
    "MaxPingPongLatency_usec": 3,
    "MinPingPongBandwidth_GBytes": 4,
    "AvgPingPongBandwidth_GBytes": 5,
    "MaxPingPongBandwidth_GBytes": 6,
    "NaturallyOrderedRingLatency_usec": 1,
    "NaturallyOrderedRingBandwidth_GBytes": 2,
    "RandomlyOrderedRingLatency_usec": 1,
    "RandomlyOrderedRingBandwidth_GBytes": 2,
}
"""The group of its pattern that shows a number, if it is not the only one."""

_LATENCY_BANDWIDTH = {
    name: HpccMetric(
        "us" if "Latency" in name else "GB/s",
        "pair" if "PingPong" in name else "ring",
        "LatencyBandwidth",
        _PINGPONG
        if "PingPong" in name
        else _RING["naturally" if name.startswith("Nat") else "randomly"],
        1e-3 if "Latency" in name else 1e3,
    )
    for name in GROUPS
}
METRICS: dict[str, HpccMetric] = {
    "HPL_Tflops": HpccMetric("Tflop/s", "all", "HPL"),
    "PTRANS_GBs": HpccMetric("GB/s", "all", "PTRANS"),
    **_RANDOM_ACCESS,
    **_STREAM,
    "MPIFFT_Gflops": HpccMetric("Gflop/s", "all", "MPIFFT", _line("Gflop/s: +")),
    **{
        f"{kind}{test}_Gflops": HpccMetric(
            "Gflop/s", _KINDS[kind], f"{kind}{test}", _line(f"{line} Gflop/s ")
        )
        for test in ("FFT", "DGEMM")
        for kind, line in (("Star", "Average"), ("Single", f"Single {test}"))
    },
    **_LATENCY_BANDWIDTH,
    "STREAM_VectorSize": HpccMetric(
        "", "size", "StarSTREAM", _line("Array size = ", ", Offset = 0")
    ),
    "DGEMM_N": HpccMetric("", "size", "StarDGEMM"),
    "FFT_N": HpccMetric("", "size", "StarFFT", _line("Vector size: +")),
    "MPIFFT_N": HpccMetric("", "size", "MPIFFT", _line("Vector size: +")),
    **{
        name: HpccMetric("", "size", section, _line(rf"{line} = 2\^\d+ = ", " words"))
        for name, section, line in (
            ("RandomAccess_N", "StarRandomAccess", "Main table size  "),
            ("MPIRandomAccess_N", "MPIRandomAccess", "Total Main table size"),
        )
    },
}
"""The numbers that `parse_hpcc` gives.

Two of them are not what their name says. PTRANS_GBs is the smallest of five runs, each
with another random place of the processes (of several sizes and blocks, the largest of
those). The rates of STREAM are by the fastest of nine turns, each from a barrier before
to one after, so the slowest process sets them: STREAM of HPCC 1.5 is no measure of a
single process. With a small N it stays in the caches: look at STREAM_VectorSize.
"""
