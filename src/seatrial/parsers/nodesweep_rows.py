"""The rows of a sweep over single nodes, as `seatrial.checks.nodesweep` writes them."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from seatrial.parsers.printed import half_digit_of, is_at_most
from seatrial.parsers.rows import require

Program = Literal["sensors", "memlat", "hpcc", "fixedwork"]
Part = tuple[Program, int | None]
"""A program, and the socket that it has to itself; None: it has the whole node."""


@dataclass(frozen=True)
class RunRow:
    """The settings of the sweep.

    `n` is the order of HPL's matrix; 0: it fills `memory_percent` of each node's
    memory. `no_memlat` says why memlat is not run, None if it is; it goes over sizes
    from `memlat_min_bytes` to `memlat_max_bytes`. `no_fixedwork` is the same of
    fixedwork, which takes `fixedwork_ms`; old recordings have neither. `start_time` is
    UTC seconds since the epoch, here and in all rows.
    """

    type: Literal["run"]
    program: Literal["nodesweep"]
    version: str
    nodes: int
    n: int
    memory_percent: float
    block: int
    no_memlat: str | None
    memlat_min_bytes: int
    memlat_max_bytes: int
    start_time: float
    no_fixedwork: str | None = "recorded before NodeSweep ran fixedwork"
    fixedwork_ms: int = 0


@dataclass(frozen=True)
class NodeRow:
    """The hardware of a node: CPUs that are online, their cores, last-level caches.

    `ranks` is how many of its cores HPCC has; where they cannot be bound, its sockets
    are not measured each by itself.
    """

    type: Literal["node"]
    node: str
    sockets: int
    cores: int
    cpus: int
    ranks: int
    is_bound: Literal[True, False]
    cache_bytes: int
    memory_bytes: int
    available_bytes: int
    start_time: float

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        in_order = 0 < self.sockets <= self.cores <= self.cpus
        counts = f"{self.sockets} sockets, {self.cores} cores, {self.cpus} CPUs"
        require(in_order, counts)
        require(0 < self.ranks <= self.cores, f"{self.ranks} ranks")
        require(self.memory_bytes > 0, "no memory")


@dataclass(frozen=True)
class SensorsRow:
    """The readings of a socket while a phase lasted; None: the node offers none.

    `clock_p50_ghz` is the median of `n` readings of the median CPU, `clock_min_ghz`
    that of the slowest. The row of socket None has temperatures of no known socket.
    """

    type: Literal["sensors"]
    node: str
    phase: str
    socket: int | None
    n: int
    seconds: float
    clock_p50_ghz: float | None
    clock_min_ghz: float | None
    temperature_max_c: float | None

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(self.n > 0, "no readings")
        low, middle = self.clock_min_ghz, self.clock_p50_ghz
        require((low is None) == (middle is None), "one clock of two")
        if low is not None and middle is not None:
            require(0 < low <= middle < 20, f"clocks of {low} and {middle} GHz")


@dataclass(frozen=True)
class CountersRow:
    """Events that were added during the whole sweep, and those since boot before it.

    Old recordings do not have `quota_stops`.
    """

    type: Literal["counters"]
    node: str
    seconds: float
    throttle_events: int | None
    throttle_events_before: int | None
    ecc_corrected: int | None
    ecc_corrected_before: int | None
    ecc_uncorrected: int | None
    ecc_uncorrected_before: int | None
    machine_checks: int | None
    machine_checks_before: int | None
    quota_stops: int | None = None
    quota_stops_before: int | None = None


@dataclass(frozen=True)
class AbsentRow:
    """A reading that a node does not offer, and why."""

    type: Literal["absent"]
    node: str
    what: str
    reason: str


@dataclass(frozen=True)
class SkipRow:
    """A program that makes no sense on a node, and why."""

    type: Literal["skip"]
    node: str
    program: Program
    reason: str


@dataclass(frozen=True)
class HpccRow:
    """HPCC on all cores of a node, or of one socket, with a rank on each.

    Rates are sums over all ranks; `..._single_...` is one rank while the others wait.
    Latency is of 8 B, bandwidth of 2,000,000 B: ping-pongs between pairs of ranks, and
    what one rank has of a ring of all in random order; None with one rank alone.
    `stream_bytes` is the memory of STREAM's three arrays in all ranks.
    """

    type: Literal["hpcc"]
    node: str
    socket: int | None
    ranks: int
    n: int
    block: int
    seconds: float
    start_time: float
    hpl_gflops: float
    dgemm_gflops: float
    dgemm_single_gflops: float
    stream_copy_gb_per_s: float
    stream_scale_gb_per_s: float
    stream_add_gb_per_s: float
    stream_triad_gb_per_s: float
    stream_triad_single_gb_per_s: float
    stream_bytes: int
    latency_min_us: float | None
    latency_mean_us: float | None
    latency_max_us: float | None
    bw_min_mb_per_s: float | None
    bw_mean_mb_per_s: float | None
    bw_max_mb_per_s: float | None
    ring_latency_us: float | None
    ring_bw_mb_per_s: float | None

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        numbers = vars(self)
        for name, value in numbers.items():
            if isinstance(value, float) or name in ("ranks", "n", "stream_bytes"):
                require(value > 0, f"{name} is not positive")
        for kind in ("latency_{}_us", "bw_{}_mb_per_s"):
            names = [kind.format(bound) for bound in ("min", "mean", "max")]
            values = [numbers[name] for name in names]
            known = [value for value in values if value is not None]
            missing = 3 if self.ranks == 1 else 0
            require(3 - len(known) == missing, f"{self.ranks} ranks, {names}: {values}")
            # HPCC prints 6 digits. Its mean is a sum in double precision: it may miss
            # a bound by the last bit, which printing makes one digit of both.
            in_order = all(
                is_at_most(one, other, 2 * half_digit_of(other, 6))
                for one, other in pairwise(known)
            )
            require(in_order, f"{', '.join(names)} are out of order")


@dataclass(frozen=True)
class MemlatRow:
    """Loads from one working set on one core, as `memlat` measured them.

    `socket` is None where the core could not be chosen.
    """

    type: Literal["memlat"]
    node: str
    socket: int | None
    cpu: int
    huge_pages: str
    cache_bytes: int
    size_bytes: int
    huge_bytes: int
    min_ns: float
    p50_ns: float
    p99_ns: float
    max_ns: float
    n: int
    start_time: float

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        in_order = 0 < self.min_ns <= self.p50_ns <= self.p99_ns <= self.max_ns
        require(in_order, "min_ns, p50_ns, p99_ns, max_ns are out of order")
        require(self.n > 0, "no samples")


@dataclass(frozen=True)
class FixedworkRow:
    """Fixed work on all cores of a node at the same time, as `fixedwork` measured it.

    `gflops` is the sum over `cores`, `slowest_gflops` that of the slowest core, in
    `seconds` of the longest run. `kept_percent` is the rate of all cores in the last
    quarter over that in the first. `cpu_share_percent` is CPU time over elapsed time of
    the core with the least. `longest_us` is the longest of all `n` quanta.
    """

    type: Literal["fixedwork"]
    node: str
    socket: None
    cores: int
    seconds: float
    gflops: float
    slowest_gflops: float
    kept_percent: float
    cpu_share_percent: float
    longest_us: float
    n: int
    start_time: float

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        require(self.cores > 0 and self.n >= self.cores, "fewer quanta than cores")
        require(self.seconds > 0, "seconds is not positive")
        in_order = 0 < self.slowest_gflops <= self.gflops
        require(in_order, f"{self.slowest_gflops} of {self.gflops} Gflop/s")
        require(self.longest_us <= 1e6 * self.seconds * (1 + 1e-9), "a longer quantum")


@dataclass(frozen=True)
class EventRow:
    """A program that gave no numbers on a node; `left_out`: nothing more ran there."""

    type: Literal["event"]
    event: Literal["failed", "left_out"]
    node: str
    program: Program
    socket: int | None
    reason: str
    time: float

    @property
    def part(self) -> Part:
        """The program, and the socket that it was to have."""
        return self.program, self.socket

    @property
    def text(self) -> str:
        """Return the event in one line."""
        where = "" if self.socket is None else f" on socket {self.socket}"
        return f"{self.node}: {self.program}{where}: {self.reason}"


@dataclass(frozen=True)
class EndRow:
    """The end of the sweep: how many programs of all nodes passed, how many events."""

    type: Literal["end"]
    passed: int
    events: int
    elapsed_s: float
