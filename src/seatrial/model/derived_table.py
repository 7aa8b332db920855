"""Derived metrics: unit, direction, formula and source."""

from dataclasses import dataclass

from seatrial.model.metrics import Direction


@dataclass(frozen=True)
class Derived:
    """A derived metric; `direction` says which values are better, if any."""

    name: str
    unit: str
    direction: Direction | None
    formula: str
    source: str


SUR, LIU = "Sur et al. 2007", "Liu et al. 2005"
SUBRAMONI, RASHTI = "Subramoni et al. 2009", "Rashti and Afsahi 2007"
CSCS = "Schoenemeyer and El-Harake 2011"
KIELMANN = "Kielmann, Bal and Verstoep, Fast Measurement of LogP Parameters, 2000"

DERIVED = {
    derived.name: derived
    for derived in (
        Derived(
            "improvement",
            "%",
            "higher",
            "of times: the part by which the new is shorter than the old; "
            "of rates: the part by which it is higher",
            f"{LIU}, {SUBRAMONI}",
        ),
        Derived(
            "factor",
            "1",
            "higher",
            "of times: old over new; of rates: new over old",
            f"{SUR}, {LIU}",
        ),
        Derived(
            "balance_ratio",
            "1",
            None,
            "within a node over between two, of the same size and number of pairs; "
            "1 is balanced",
            f"{SUBRAMONI}, section V-A",
        ),
        Derived(
            "connection_latency",
            "us",
            "lower",
            "sum of half the round trips over messages times connections",
            f"{RASHTI}, Multiple Connection Scalability",
        ),
        Derived(
            "mpi_overhead",
            "us",
            "lower",
            "latency of MPI minus that of the user level, of the same size",
            f"{RASHTI}, MPI ping-pong latency (names it, without a formula)",
        ),
        Derived(
            "mpi_overhead_share",
            "%",
            "lower",
            "mpi_overhead over the latency of the user level",
            f"{RASHTI}, MPI ping-pong latency (names it, without a formula)",
        ),
        Derived(
            "buffer_reuse_ratio",
            "1",
            "lower",
            "latency without re-use of buffers over that with full re-use, same size",
            f"{RASHTI}, Effect of Message Buffer Re-use",
        ),
        Derived(
            "queue_usage_ratio",
            "1",
            "lower",
            "latency behind a queue over that of an empty one, same size",
            f"{RASHTI}, queues of unexpected messages and receive calls (no formula)",
        ),
        Derived(
            "connections_per_nic",
            "count",
            "lower",
            "servers less one, times the square of the cores of a server",
            f"{RASHTI}, table (which this formula gives)",
        ),
        Derived(
            "logp_gap",
            "us",
            "lower",
            "round trip of the size minus that of empty messages plus their gap",
            KIELMANN,
        ),
        Derived(
            "logp_latency",
            "us",
            "lower",
            "half the round trip of empty messages minus their gap",
            KIELMANN,
        ),
        Derived(
            "message_rate",
            "msg/s",
            "higher",
            "bandwidth of all pairs over size",
            "OSU micro-benchmarks, osu_mbw_mr",
        ),
        Derived(
            "scaling_over_pairs",
            "1",
            None,
            "of all pairs together over one pair, same size: "
            "more is better of bandwidths, less of latencies",
            f"{SUR}, sections 3.1 to 3.3",
        ),
        Derived(
            "communication_share",
            "%",
            "lower",
            "time in MPI over run time",
            f"{LIU}, figure 7",
        ),
        Derived(
            "link_share",
            "%",
            "higher",
            "bandwidth over the data rate of the link, of as many directions",
            f"{LIU}, introduction",
        ),
        Derived(
            "message_rate_per_ghz",
            "msg/s/GHz",
            "higher",
            "message rate over the clock of the processors",
            f"{CSCS}, figure 10",
        ),
        Derived(
            "pcie_rate",
            "MB/s",
            "higher",
            "transfers per second times lanes, less the coding, one direction; "
            "what packets cost is not taken off",
            f"{LIU}, {SUBRAMONI}, PCI Express Base Specification",
        ),
        Derived(
            "infiniband_rate",
            "MB/s",
            "higher",
            "signalling rate times lanes, less the coding, one direction; "
            "what packets cost is not taken off",
            f"{LIU}, {SUBRAMONI}, InfiniBand Architecture Specification",
        ),
    )
}
