"""Numbers that follow from measured ones, or from a link's rate alone.

`DERIVED` has the unit, formula and source of each. All raise ValueError for NaN,
infinities, times, bandwidths and counts that are not positive, and for sizes or numbers
of pairs that differ where they must be the same.
"""

import math
from dataclasses import dataclass

from seatrial.model.derived_table import DERIVED as DERIVED
from seatrial.model.link_rates import infiniband_rate as infiniband_rate
from seatrial.model.link_rates import pcie_rate as pcie_rate
from seatrial.model.metrics import Direction


@dataclass(frozen=True)
class Point:
    """A latency in us or a bandwidth of all pairs in MB/s, at a size and its pairs."""

    value: float
    size_bytes: int
    pairs: int = 1

    def __post_init__(self) -> None:
        _positive(value=self.value, pairs=self.pairs)
        if self.size_bytes < 0:
            raise ValueError(f"size_bytes is {self.size_bytes}, expected at least 0")


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

    Of a time (lower is better) old / new, of a rate new / old. Units are any, but the
    same. As in Sur et al. 2007 and Liu et al. 2005.
    """
    _positive(new=new, old=old)
    return old / new if direction == "lower" else new / old


def balance_ratio(within: Point, between: Point) -> float:
    """Return the communication balance: within a node over between two; 1 is balanced.

    Of latencies, bandwidths of one or both directions, or those of many pairs, at the
    same size and number of pairs. As in Subramoni et al. 2009, section V-A. (Our check
    Balance reports the inverse of it for latencies, so that more is always a network
    that lags behind the node.)
    """
    _same(within, between, "size_bytes", "pairs")
    return within.value / between.value


def connection_latency(total_us: float, messages: int, connections: int) -> float:
    """Return the normalised latency over many connections in us.

    `total_us` is half the sum of all round trips, of `messages` on each connection.
    As in Rashti and Afsahi 2007. Its fall says that connections work in parallel.
    """
    _positive(total_us=total_us, messages=messages, connections=connections)
    return total_us / (messages * connections)


def mpi_overhead(mpi: Point, user: Point) -> float:
    """Return in us what MPI adds to the latency of the user level, at the same size.

    Rashti and Afsahi 2007 name it and give no formula. Below 0 where MPI uses a faster
    way than the user-level test did.
    """
    _same(mpi, user, "size_bytes", "pairs")
    return mpi.value - user.value


def mpi_overhead_share(mpi: Point, user: Point) -> float:
    """Return `mpi_overhead` in % of the latency of the user level."""
    return 100 * mpi_overhead(mpi, user) / user.value


def buffer_reuse_ratio(without_us: float, full_us: float) -> float:
    """Return the latency without re-use of buffers over that with full re-use.

    Both in us, of the same size. As in Rashti and Afsahi 2007: what pinning and
    unpinning of ever new buffers costs.
    """
    _positive(without_us=without_us, full_us=full_us)
    return without_us / full_us


def queue_usage_ratio(behind_us: float, empty_us: float) -> float:
    """Return the latency behind a queue of messages or receives over that without.

    Both in us, of the same size. Rashti and Afsahi 2007 draw it and give no formula.
    """
    _positive(behind_us=behind_us, empty_us=empty_us)
    return behind_us / empty_us


def connections_per_nic(servers: int, processors: int, cores: int) -> int:
    """Count the connections of a server when all processes know each other.

    One process runs on each of the `cores` of each of the `processors`. Connections
    within the server do not count: (servers - 1) (processors cores)^2, which gives all
    rows of the table of Rashti and Afsahi 2007.
    """
    _positive(servers=servers, processors=processors, cores=cores)
    return (servers - 1) * (processors * cores) ** 2


def logp_gap(rtt_us: float, rtt_0_us: float, gap_0_us: float) -> float:
    """Return the LogP gap g(m) = RTT(m) - RTT(0) + g(0) in us.

    `gap_0_us` is measured by a flood of empty messages. As in Kielmann, Bal and
    Verstoep. It is a difference, and may be below 0 where round trips are uneven.
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


def message_rate(mb_per_s: float, size_bytes: int) -> float:
    """Return the messages per second of a bandwidth in MB/s (10^6 B/s) of all pairs.

    As osu_mbw_mr computes it.
    """
    _positive(mb_per_s=mb_per_s, size_bytes=size_bytes)
    return mb_per_s * 1e6 / size_bytes


def scaling_over_pairs(many: Point, one: Point) -> float:
    """Return what all pairs do together over what one does, at the same size.

    A bandwidth of all pairs that is below 1 suffers from their number; a latency
    above 1 does. As Sur et al. 2007 compare 8 pairs with 1.
    """
    _same(many, one, "size_bytes")
    if one.pairs != 1:
        raise ValueError(f"the baseline is of {one.pairs} pairs, expected 1")
    return many.value / one.value


def communication_share(communication_s: float, run_s: float) -> float:
    """Return the time in MPI in % of the run time, both in s, as in Liu et al. 2005.

    The time in MPI is that of the program's own timers or of a profiler such as mpiP,
    on the mean rank; it may be 0 and is never more than the run time.
    """
    _positive(run_s=run_s)
    if not 0 <= communication_s <= run_s:
        raise ValueError(f"{communication_s} s in MPI, expected 0 to {run_s} s")
    return 100 * communication_s / run_s


def link_share(mb_per_s: float, link_mb_per_s: float) -> float:
    """Return a bandwidth in % of the data rate of its link or bus, both in MB/s.

    Of as many directions: a bandwidth of both against twice the rate of one. More than
    100 is a bandwidth that the link cannot have carried. As Liu et al. 2005 compare
    adapters with their buses.
    """
    _positive(mb_per_s=mb_per_s, link_mb_per_s=link_mb_per_s)
    return 100 * mb_per_s / link_mb_per_s


def message_rate_per_ghz(msg_per_s: float, clock_ghz: float) -> float:
    """Return a message rate per GHz of the processors' clock while it was measured.

    Schoenemeyer and El-Harake 2011 found small messages proportional to the clock.
    """
    _positive(msg_per_s=msg_per_s, clock_ghz=clock_ghz)
    return msg_per_s / clock_ghz


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}, expected a number above 0")


def _same(one: Point, other: Point, *names: str) -> None:
    for name in names:
        found, expected = getattr(one, name), getattr(other, name)
        if found != expected:
            raise ValueError(f"{name} is {found} and {expected}, expected the same")
