"""Rows of a sweep of all pairs (`pairsweep`, `seatrial.checks.pairsweep`)."""

from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern
from typing import Literal

from seatrial.parsers.rows import Decoder, Setting, decode_object, require

Stage = Literal["start", "init", "hello", "sweep", "after"]
PairKey = tuple[str, str, int]
"""Two nodes in alphabetical order, and the rail."""


@dataclass(frozen=True)
class RunRow:
    """A start of the program: its settings, and how many pairs it has to measure.

    `pairs` counts the pairs of all rails, `resumed` those done before. `rails` are
    the names of the adapters, separated by commas, None if every node has but one.
    `start_time` is UTC seconds since the epoch.
    """

    type: Literal["run"]
    program: Literal["pairsweep", "pairsweep_verbs"]
    version: Setting[str]
    commit: Setting[str]
    mpi: Setting[str]
    np: int
    nodes: int
    rounds: int
    rails: Setting[str | None]
    rail_variable: Setting[str | None]
    seed: Setting[int]
    latency_bytes: Setting[int]
    bandwidth_bytes: Setting[int]
    iterations: Setting[int]
    warmup: Setting[int]
    window: Setting[int]
    windows: Setting[int]
    time_ms: Setting[int]
    suspect_percent: Setting[float]
    pairs: int
    resumed: int
    start_time: float

    @property
    def rail_names(self) -> tuple[str | None, ...]:
        """The adapters in the order of their rails; (None,) if there is no choice."""
        return tuple(self.rails.split(",")) if self.rails else (None,)


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two nodes measured on one rail, in a round with others or alone (`quiet`).

    Latency is half a round trip of `latency_bytes` in us, bandwidth that of messages
    of `bandwidth_bytes` in 10^6 B/s, from source to destination and back.
    `start_spread_us` is how far apart both left the barrier of the round.
    """

    type: Literal["pair"]
    mode: Literal["sweep", "quiet"]
    status: Literal["ok"]
    source: str
    destination: str
    hca: str | None
    rail: int
    round: int
    at_once: int
    start_time: float
    start_spread_us: float
    latency_min_us: float
    latency_p50_us: float
    latency_p99_us: float
    latency_max_us: float
    latency_n: int
    bw_mb_per_s: float
    bw_back_mb_per_s: float
    bw_n: int
    validation: Literal["pass", "off"]

    @property
    def key(self) -> PairKey:
        """Return the nodes and the rail."""
        return pair_key(self.source, self.destination, self.rail)

    def verify(self) -> None:
        """Raise ValueError if the numbers contradict each other."""
        in_order = (
            self.latency_min_us
            <= self.latency_p50_us
            <= self.latency_p99_us
            <= self.latency_max_us
        )
        require(in_order, "latencies are out of order")
        require(self.latency_p50_us > 0, "latency_p50_us is not positive")
        least_bw = min(self.bw_mb_per_s, self.bw_back_mb_per_s)
        require(least_bw > 0, "a bandwidth is not positive")
        require(self.latency_n > 0 and self.bw_n > 0, "no samples")
        require(self.source != self.destination, "a node with itself")
        require(self.round > 0 and self.at_once > 0, "rounds and pairs begin with 1")


@dataclass(frozen=True)
class HungRow:
    """Two nodes that do not get through to each other, while both answer.

    `mode` quiet: they did so in the sweep, and hung when they were tested again.
    """

    type: Literal["pair"]
    mode: Literal["sweep", "quiet"]
    status: Literal["hung"]
    source: str
    destination: str
    rail: int
    round: int
    reason: str

    @property
    def key(self) -> PairKey:
        """Return the nodes and the rail."""
        return pair_key(self.source, self.destination, self.rail)


@dataclass(frozen=True)
class LeftOut:
    """A node without which the sweep went on, or (stage `after`) ended."""

    type: Literal["event"]
    event: Literal["left_out"]
    node: str
    stage: Stage
    reason: str
    time: float


@dataclass(frozen=True)
class PhaseRow:
    """The begin of a phase of an adaptive sweep: its pairs, on each rail.

    The first phase has `rounds` rounds of all nodes, the others have suspects.
    """

    type: Literal["event"]
    event: Literal["phase"]
    phase: int
    rounds: int
    pairs: int
    time: float


@dataclass(frozen=True)
class EndRow:
    """The end of the program, with counts of what it did since its row `run`."""

    type: Literal["end"]
    measured: int
    suspects: int
    retested: int
    rounds_made: int
    round_overhead_p50_us: float | None
    elapsed_s: float


def pair_key(source: str, destination: str, rail: int) -> PairKey:
    """Return the key of a pair on a rail; a million keys share the names of nodes."""
    source, destination = intern(source), intern(destination)
    return min(source, destination), max(source, destination), rail


def read_quiet(lines: Iterable[str]) -> dict[PairKey, PairRow]:
    """Read only the pairs that were tested again alone: they come last in a sweep.

    Raises ParseError if such a row is damaged.
    """
    decode = Decoder(PairRow)
    rows = (
        decode(number, values)
        for number, line in enumerate(lines, start=1)
        if '"quiet"' in line
        and (values := decode_object(number, line)).get("status") == "ok"
        and values.get("mode") == "quiet"
        and values.get("validation") != "fail"
    )
    return {row.key: row for row in rows}
