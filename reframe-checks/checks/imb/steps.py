# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Intel MPI Benchmarks of several runs: the ring of nodes, MPI_Put, many pairs."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import reframe as rfm
from reframe.core.builtins import run_after, variable

from seatrial.checks.base import Tag, cores_of
from seatrial.checks.job_steps import Step, SteppedCheck
from seatrial.checks.node_numbers import doubled
from seatrial.checks.rank_start import rank_line, verify_rank_lines
from seatrial.checks.ring import ring_rounds
from seatrial.model.records import Sample
from seatrial.parsers.imb import (
    ImbPair,
    parse_imb_each_group,
    parse_imb_groups,
    parse_imb_one_sided,
    parse_imb_pairs,
)


class ImbSteps(SteppedCheck):
    """Base of checks of several runs; repetitions and limits as in ImbCheck."""

    repetitions = variable(int)
    volume_mb = variable(int)
    seconds_per_size = variable(float, value=10.0)

    valid_prog_environs = ["+imb"]
    reference_file = "imb.yaml"
    preamble = r"\s*#.*"
    tags = {Tag.NETWORK}
    needs_nodes = 2
    most_nodes = 2

    def command(self, benchmark, largest_log2, iterations, *more):
        """Return program and options of one run; `more` are its own options."""
        return " ".join(
            (
                benchmark,
                "-npmin 2",
                f"-msglog 0:{largest_log2}",
                f"-iter {iterations}",
                f"-time {self.seconds_per_size}",
                *more,
            )
        )


@rfm.simple_test
class ImbRing(ImbSteps):
    """Is there a bad node or a bad link, and which?

    PingPong between both of every two neighbours in the ring of all nodes. A bad node
    slows both of its pairs, while each neighbour has one good pair. `latency` is half a
    round trip: 8 B shows the cost of a message; 4 MiB, far beyond every protocol's
    switch, the bandwidth of the link. ReFrame sees the worst pair.

    The pairs of a round have no node in common and run at the same time, in one job
    step: nodes 1-2, 3-4 and so on; then 2-3, 4-5 and so on; then the last node and the
    first. So the time hardly grows with the number of nodes. But pairs of a round may
    share links between switches: where these are too few for all, every pair is slower
    than it is alone. Neighbours mostly have a switch in common. `PairSweep` measures a
    suspect pair again alone.
    """

    descr = "PingPong between all neighbours in the ring of nodes"
    tool = "IMB-MPI1 PingPong -multi"
    experiments = ("E18", "E19", "E23", "E24", "E29")
    typical_s = 10
    most_nodes = 0
    repetitions = 1000
    volume_mb = 16
    largest_log2 = variable(int, value=22)
    judged = ["latency_8B", "bw_4MiB"]

    def steps(self):
        """Return a step for each round, with one rank on each of its nodes."""
        prefix = rank_line(by_mpirun="mpirun" in self.current_environ.extras)
        return [
            Step(
                f"round={number}",
                self.command(
                    "IMB-MPI1 PingPong",
                    self.largest_log2,
                    f"{self.repetitions},{self.volume_mb}",
                    *(["-multi 1"] if len(a_round.groups) > 1 else []),
                ),
                num_nodes=len(a_round.members),
                ppn=1,
                read=partial(self.read, a_round),
                options=f"--nodelist={a_round.node_list()}",
                prefix=prefix,
            )
            for number, a_round in enumerate(ring_rounds(self.num_nodes), start=1)
        ]

    def read(self, a_round, output):
        """Return latency and bandwidth of every size for the pairs of a round."""
        verify_rank_lines(output.text, [self.nodes[k] for k in a_round.members])
        tables = parse_imb_each_group(
            output.text, "PingPong", a_round.groups, self.sizes
        )
        return samples_of_pairs(
            ImbPair(*pair, rows)
            for pair, rows in zip(a_round.pairs(self.nodes), tables, strict=True)
        )

    @property
    def sizes(self):
        """Return all message sizes in bytes."""
        return [0, *(1 << k for k in range(self.largest_log2 + 1))]

    def extract(self, text):
        """Return the numbers of all pairs, in the order of the ring."""
        if "\n# pair " in f"\n{text}":  # recorded when every pair had its own step
            ring = [*self.nodes, self.nodes[0]] if len(self.nodes) > 2 else self.nodes
            pairs = parse_imb_pairs(text, list(pairwise(ring)), self.sizes)
            return samples_of_pairs(pairs)
        place = {node: place for place, node in enumerate(self.nodes)}
        return sorted(super().extract(text), key=lambda sample: place[sample.source])


def samples_of_pairs(pairs) -> list[Sample]:
    """Convert the rows of IMB of every pair to samples; 0 bytes have no bandwidth."""
    samples = []
    for pair in pairs:
        for row in pair.rows:
            values = {"latency": row.time_us, "bw": row.bandwidth_mb_per_s}
            samples += [
                Sample(
                    metric,
                    value,
                    row.size_bytes,
                    n=row.repetitions,
                    source=pair.source,
                    destination=pair.destination,
                )
                for metric, value in values.items()
                if metric == "latency" or row.size_bytes > 0
            ]
    return samples


@dataclass(frozen=True)
class OneSided:
    """A run of IMB-RMA in one of its modes, and its metric."""

    metric: str
    benchmark: str
    largest_log2: int
    volume_mb: int
    aggregate: bool = False


@rfm.simple_test
class ImbOneSided(ImbSteps):
    """What does MPI_Put and MPI_Get cost between two nodes, and what does Put carry?

    `put_latency` and `get_latency` are IMB's t[usec] of the mode NON-AGGREGATE: the
    mean of one call with the MPI_Win_flush that completes it at the target, on the
    rank that calls, while the other waits in a barrier. Nothing is halved: a Get waits
    for its data, so its latency is a whole round trip. `put_bw` is IMB's Mbytes/sec of
    the mode AGGREGATE: one Put per repetition, then one MPI_Win_flush: 64 Puts of
    4 MiB, more of smaller sizes, up to 1000.

    OSU (OsuOneSided) measures the same with these differences: OSU's windows of memory
    come from MPI_Win_allocate, IMB's from MPI_Win_create over its own memory, which MPI
    may have to register; OSU flushes after 64 Puts of any size and repeats that, IMB
    flushes once; OSU begins at 1 byte, IMB at 0, which is left out here. So latencies
    are comparable, and put_bw of 4 MiB; that of small messages may be higher with IMB,
    which waits less often. IMB validates only in a special build, OSU cannot.
    """

    descr = "Unidir_put and Unidir_get between two nodes"
    tool = "IMB-RMA Unidir_put, Unidir_get"
    experiments = ()
    typical_s = 15
    repetitions = 1000
    volume_mb = 16
    bandwidth_volume_mb = variable(int, value=256)
    """As `volume_mb`, of put_bw: with 256, there are 64 Puts of 4 MiB."""
    judged = ["put_latency_8B", "get_latency_8B", "put_bw_4MiB"]

    @run_after("setup")
    def need_benchmarks(self):
        """Skip a stack that has IMB-MPI1 only."""
        self.need_programs("imb", "IMB-RMA")

    def runs(self):
        """Return the runs: latency up to 64 KiB, bandwidth up to 4 MiB."""
        volume_mb = self.bandwidth_volume_mb
        return [
            OneSided("put_latency", "Unidir_put", 16, self.volume_mb),
            OneSided("get_latency", "Unidir_get", 16, self.volume_mb),
            OneSided("put_bw", "Unidir_put", 22, volume_mb, aggregate=True),
        ]

    def steps(self):
        """Return a step for each run, with its mode and repetitions."""
        return [
            Step(
                run.metric,
                self.command(
                    f"IMB-RMA {run.benchmark}",
                    run.largest_log2,
                    f"{self.repetitions},{run.volume_mb},{self.repetitions}",
                    f"-aggregate_mode {'' if run.aggregate else 'non_'}aggregate",
                ),
                num_nodes=2,
                ppn=1,
                read=partial(self.read, run),
            )
            for run in self.runs()
        ]

    def read(self, run, output):
        """Return the time or the bandwidth of every size but 0."""
        source, destination = self.nodes
        sizes = [0, *(1 << k for k in range(run.largest_log2 + 1))]
        rows = parse_imb_one_sided(
            output.text, run.benchmark, sizes, aggregate=run.aggregate
        )
        return [
            Sample(
                run.metric,
                row.bandwidth_mb_per_s if run.aggregate else row.time_us,
                row.size_bytes,
                n=row.repetitions,
                source=source,
                destination=destination,
            )
            for row in rows[1:]
        ]


@rfm.simple_test
class ImbMultiLatency(ImbSteps):
    """What does a message cost when all cores of a node send theirs at once?

    PingPong of 1, 2, 4 and so on pairs up to all cores, at the same time. `latency` is
    half a round trip, the mean over all pairs: IMB's t_avg of `-multi 0`, as the mean
    that OSU prints. (IMB's t_max is the slowest pair, and so is its Mbytes/sec.) Only
    numbers of all cores are judged; the others have the parameter `pairs`.

    Ranks fill a node before the next (placement is block), and `-map` of P x 2 pairs
    rank r with rank r + P, on the other node; IMB prints the ranks of every pair, and a
    run with other pairs is refused. In IMB all pairs wait for each other before a
    few repetitions of every size that are not timed; the timed ones follow at once.
    """

    most_ranks = variable(int, value=256)
    """Maximum of ranks per node."""

    descr = "PingPong of 1, 2, 4 and so on pairs up to all cores"
    tool = "IMB-MPI1 PingPong -multi"
    experiments = ()
    typical_s = 60
    placement = "block"
    repetitions = 500
    volume_mb = 8
    largest_log2 = variable(int, value=16)
    judged = ["latency_8B", "latency_64KiB"]

    @run_after("setup")
    def place(self):
        """Place a rank on every core of two nodes, as in ReFrame's settings."""
        self.ppn = min(cores_of(self.current_partition), self.most_ranks)
        super().place()

    def steps(self):
        """Return a step for every number of pairs, without the row of 0 bytes."""
        return [
            Step(
                f"pairs={pairs}",
                self.command(
                    "IMB-MPI1 PingPong",
                    self.largest_log2,
                    f"{self.repetitions},{self.volume_mb}",
                    "-zero_size off",
                    f"-multi 0 -map {pairs}x2",
                ),
                num_nodes=2,
                ppn=pairs,
                read=partial(self.read, pairs),
            )
            for pairs in doubled(self.ppn)
        ]

    def read(self, pairs, output):
        """Return the latency of every size for a number of pairs."""
        source, destination = self.nodes
        sizes = [1 << k for k in range(self.largest_log2 + 1)]
        groups = [(rank, rank + pairs) for rank in range(pairs)]
        return [
            Sample(
                "latency",
                row.time_us,
                row.size_bytes,
                n=row.repetitions,
                source=source,
                destination=destination,
                parameters={} if pairs == self.ppn else {"pairs": pairs},
            )
            for row in parse_imb_groups(output.text, "PingPong", groups, sizes)
        ]
