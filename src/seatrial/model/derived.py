"""Numbers that follow from measured ones.

All functions raise ValueError for NaN, infinities, and values that are not positive.
"""

import math

from seatrial.model.metrics import Direction

DERIVED = {
    "improvement": "of times: 1 - new / old; of rates: new / old - 1; in %",
    "factor": "of times: old / new; of rates: new / old",
    "balance_ratio": "within a node / between two; 1 is balanced",
    "connection_latency": "sum of half the round trips / (messages x connections)",
    "mpi_overhead": "latency of MPI - that of the user level",
    "mpi_overhead_share": "mpi_overhead / latency of the user level",
    "buffer_reuse_ratio": "latency without re-use of buffers / with full re-use",
    "queue_usage_ratio": "latency behind a queue / that of an empty one",
    "connections_per_nic": "(servers - 1) x (cores of a server)^2 / adapters",
    "logp_gap": "round trip of the size - that of empty messages + their gap",
    "logp_latency": "half the round trip of empty messages - their gap",
    "message_rate": "bandwidth of all pairs / size",
    "scaling_over_pairs": "of all pairs together / of one pair",
    "communication_share": "time in MPI / run time",
    "link_share": "bandwidth / data rate of the link",
    "message_rate_per_ghz": "message rate / clock of the processors",
    "pcie_rate": "transfers per second x lanes, less the coding, one direction",
    "infiniband_rate": "signalling rate x lanes, less the coding, one direction",
}
"""Formulas of the derived metrics of published papers, at the same message size."""


def improvement(new: float, old: float, direction: Direction) -> float:
    """Return in % how much better the new value is; below 0 if it is worse.

    Of a time (lower is better) 100 (old - new) / old, which stays below 100; of a rate
    100 (new / old - 1). Units are any, but the same. As in Liu et al. 2005 and
    Subramoni et al. 2009.
    """
    _positive(new=new, old=old)
    if direction == "lower":
        return 100 * (old - new) / old
    return 100 * (new / old - 1)


def factor(new: float, old: float, direction: Direction) -> float:
    """Return by which factor the new value is better; below 1 if it is worse.

    Units are any, but the same. As in Sur et al. 2007 and Liu et al. 2005.
    """
    _positive(new=new, old=old)
    return old / new if direction == "lower" else new / old


def buffer_reuse_ratio(without_us: float, full_us: float) -> float:
    """Return the latency without re-use of buffers over that with full re-use.

    Both in us, of the same size. As in Rashti and Afsahi 2007: the cost of pinning and
    unpinning new buffers.
    """
    _positive(without_us=without_us, full_us=full_us)
    return without_us / full_us


def queue_usage_ratio(behind_us: float, empty_us: float) -> float:
    """Return the latency behind a queue of messages or receives over that without.

    Both in us, of the same size. Rashti and Afsahi 2007 draw it and give no formula.
    """
    _positive(behind_us=behind_us, empty_us=empty_us)
    return behind_us / empty_us


def logp_gap(rtt_us: float, rtt_0_us: float, gap_0_us: float) -> float:
    """Return the LogP gap g(m) = RTT(m) - RTT(0) + g(0) in us.

    `gap_0_us` is measured by a flood of empty messages. As in Kielmann, Bal and
    Verstoep, Fast Measurement of LogP Parameters, 2000. It is a difference, and may be
    below 0 where round trips are uneven.
    """
    _positive(rtt_us=rtt_us, rtt_0_us=rtt_0_us, gap_0_us=gap_0_us)
    return rtt_us - rtt_0_us + gap_0_us


def logp_latency(rtt_0_us: float, gap_0_us: float) -> float:
    """Return the LogP latency L = RTT(0) / 2 - g(0) in us.

    As in Kielmann, Bal and Verstoep. It is a difference, and below 0 where messages
    overlap so well that g(0) is more than half a round trip.
    """
    _positive(rtt_0_us=rtt_0_us, gap_0_us=gap_0_us)
    return rtt_0_us / 2 - gap_0_us


def connections_per_nic(nodes: int, ranks: int, adapters: int = 1) -> int:
    """Return the reliable connections of an adapter if all ranks talk to all others.

    `ranks` and `adapters` are those of a node; ranks of one node need no adapter. As in
    Rashti and Afsahi 2007: (nodes - 1) x ranks^2, rounded up.
    """
    _positive(nodes=nodes, ranks=ranks, adapters=adapters)
    return -(-(nodes - 1) * ranks**2 // adapters)


def send_queues_mib(connections: int) -> float:
    """Return the memory of the send queues of as many connections, in MiB.

    A model: 256 entries of 64 B for each, as UCX sets them by default
    (UCX_RC_TX_QUEUE_LEN) on adapters whose basic block has 64 B; receive queues are
    shared, and the adapter's own state of a connection is not counted.
    """
    return connections * 256 * 64 / 2**20


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}, expected a number above 0")
