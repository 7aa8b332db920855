# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Latency and bandwidth beside aggressors, by our own benchmark."""

import reframe as rfm
from reframe.core.builtins import run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.own_benchmark import OwnBenchmark
from seatrial.model.records import Sample
from seatrial.parsers.congestion import parse_congestion
from seatrial.parsers.errors import ParseError

GPCNET_NODES = 10
"""Nodes that GPCNeT takes: two victims, and two nodes for each of four kinds."""


@rfm.simple_test
class Congestion(OwnBenchmark):
    """How much worse do messages get while other nodes load the network?

    The victims are a fifth of the nodes, drawn by a seed: the number of the job. They
    measure latency (8 B) and bandwidth (128 KiB) in random rings, and the time of
    MPI_Allreduce (8 B). They do so alone, then beside aggressors on all other nodes, as
    GPCNeT defines it. `congestion_latency`, `congestion_bw` and `congestion_allreduce`
    are impacts: how many times worse the mean is beside aggressors. `..._p99` is the
    impact on the 99th percentile. An impact of 1 means that the network isolates its
    users.

    With 10 nodes or more, four kinds of aggressors run at once: alltoall, incast, put
    into and get from one rank. With 4 to 9 nodes, which GPCNeT refuses, all aggressors
    are of the kind `alltoall`. Compare impacts of the same kinds only.
    """

    aggressors = variable(str, value="")
    """Kind of aggressors; '': `mixed`, or `alltoall` with fewer than 10 nodes."""
    rings = variable(int, value=30)
    seed = variable(int, value=0)
    """Divides the nodes, and orders the victims; 0: the number of the job."""

    descr = "latency, bandwidth and allreduce beside aggressors over those alone"
    tool = "congestion"
    experiments = ()
    typical_s = 15
    iterations = 200
    warmup = 200
    milliseconds_per_size = 2000
    ppn = 0
    needs_nodes = 4
    valid_prog_environs = ["+congestion"]
    reference_file = "congestion.yaml"
    executable = "congestion"
    tags = {Tag.NETWORK}
    judged = [
        "congestion_latency_8B",
        "congestion_latency_p99_8B",
        "congestion_bw_128KiB",
        "congestion_bw_p99_128KiB",
        "congestion_allreduce_8B",
        "congestion_allreduce_p99_8B",
    ]

    def kind(self):
        """Return the kind of aggressors for the nodes of the case."""
        is_small = self.num_nodes < GPCNET_NODES
        return self.aggressors or ("alltoall" if is_small else "mixed")

    @run_before("run")
    def choose_aggressors(self):
        """Set the options for aggressors, rings and seed."""
        seed = str(self.seed) if self.seed else "${SLURM_JOB_ID:-1}"
        self.executable_opts += [
            f"--aggressors {self.kind()}",
            f"--rings {self.rings}",
            f"--seed {seed}",
        ]

    def extract(self, text):
        """Return the values alone and beside aggressors, and the impacts."""
        rows = parse_congestion(text)
        wanted = {"rings": self.rings, "aggressors": self.kind()}
        self.verify_rows(rows, np=self.num_tasks, nodes=self.num_nodes, **wanted)
        if len(rows) != 3:
            raise ParseError(0, f"{len(rows)} rows, expected 3, one for each victim")
        return [sample for row in rows for sample in _samples(row)]


def _samples(row):
    """Return the samples of a victim."""
    n = min(row.isolated_n, row.congested_n)
    name, size = f"congestion_{row.victim}", row.size_bytes
    yield Sample(name, row.impact_mean, size, "mean", n)
    yield Sample(f"{name}_p99", row.impact_p99, size, "p99", n)
    for when in ("isolated", "congested"):
        for statistic in ("mean", "p99"):
            value = getattr(row, f"{when}_{statistic}")
            count = getattr(row, f"{when}_n")
            yield Sample(f"{when}_{row.victim}", value, size, statistic, count)
