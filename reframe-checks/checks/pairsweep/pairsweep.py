# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""All pairs of nodes in one job, by our own benchmark."""

import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.job_steps import conduct
from seatrial.checks.own_benchmark import OwnBenchmark
from seatrial.checks.pair_samples import pair_blocks
from seatrial.checks.pairsweep.adaptive import ADAPTIVE_ROUNDS
from seatrial.checks.pairsweep.pair_list import PairList, read_pair_list
from seatrial.checks.tabled import TabledCheck
from seatrial.checks.time_limits import start_s
from seatrial.checks.verbs_check import MPI_OVER_TCP
from seatrial.fabric.leafs import by_leaf, kept_leafs
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.pairsweep import SweepReader
from seatrial.parsers.pairsweep_rows import RunRow, read_quiet
from seatrial.paths import etc_dir, home

PHASE_FACTOR = 3
"""Time of a phase, at most, over that of its measurement: synchronisation, warm-up."""
HANGS = 5
"""Pairs that hang, or nodes that are lost, within the time limit."""


@rfm.simple_test
class PairSweep(TabledCheck, OwnBenchmark):
    """Which pair of nodes is slow, and which node does not answer?

    Every pair of nodes is measured once, on every rail, in the rounds of a
    tournament: N nodes take N - 1 rounds of N/2 pairs at once. `latency` is half a
    round trip of 8 B, the cost of a message; `bw` that of messages of 1 MiB, beyond
    every protocol's switch, for each direction. A pair that is more than
    `suspect_percent` worse than the median is measured again alone, and that number
    counts; the first becomes `crowded_latency` and `crowded_bw`. `start_spread` is
    the time between the starts of both nodes.

    seatrial.checks.pairsweep leaves out nodes and pairs that fail. They show in
    `pairs_answered`, the share of a node's pairs that could be measured: 0 for a node
    that was left out, and without it for the others.

    With `rounds` only so many pairs of each node are measured: enough for slow nodes
    and leafs. `adaptive` then takes more pairs of suspects: nodes that look slow, nodes
    with a slow pair, and leafs with several. It finds what many pairs share, such as a
    bad up-link; a fault of a single pair needs the full sweep. `pairs` takes the pairs
    of a file.
    """

    warmup = 20
    milliseconds_per_size = 100
    window = variable(int, value=4)
    windows = variable(int, value=10)
    seed = variable(int, value=1)
    suspect_percent = variable(int, value=20)
    rounds = variable(int, value=0)
    """Rounds of the sweep, which is also the number of partners of a node; 0: all."""
    pairs = variable(str, value="")
    """Measure only the pairs of this file, of `seatrial fabric locate --pairs`."""
    adaptive = variable(bool, value=False)
    """First some `rounds` (12), then as many more of suspects."""
    retest = variable(int, value=1000)
    """Pairs to measure again alone, at most."""
    pair_limit = variable(int, value=60)
    """Seconds for each of the four phases of a pair, then it hangs."""
    step_limit = variable(int, value=60)
    """Seconds, beside those of a start, until nodes must have greeted each other.

    Nodes that have not by then are left out.
    """

    descr = "latency and bandwidth of every pair of nodes"
    tool = "pairsweep"
    experiments = ("E18", "E19", "E23", "E24", "E29")
    typical_s = 10
    valid_prog_environs = ["+pairsweep"]
    reference_file = "pairsweep.yaml"
    executable = "pairsweep"
    output_file = "pairsweep.jsonl"
    needs_nodes = 2
    tags = {Tag.NETWORK}
    judged = ["latency_8B", "bw_1MiB", "pairs_answered"]

    @run_after("setup")
    def take_rails(self):
        """Start a rank for every rail of a node, where the MPI stack can select it."""
        self.rail_variable = self.current_environ.extras.get("rail_variable")
        self.rails = []
        if self.rail_variable:
            self.rails = self.current_partition.extras.get("rails", [])
        self.ppn = max(1, len(self.rails))
        self.num_tasks = self.num_nodes * self.ppn
        self.num_tasks_per_node = self.ppn

    def programs_s(self):
        """Add up the rounds, the pairs to measure again, and some that hang.

        A round or a pair has four phases, on each rail in turn. The sweep starts again
        after a pair that hangs.
        """
        others = self.num_nodes - 1
        rounds = min(self.rounds or others, others)
        if self.pairs:
            rounds = len(self.listed().rounds)
        again = min(self.retest, rounds * self.num_nodes // 2)
        phase_s = PHASE_FACTOR * self.milliseconds_per_size / 1000
        measuring_s = 4 * phase_s * (rounds + again) * self.ppn
        start = start_s(self.num_nodes)
        hangs_s = HANGS * (self.pair_limit + start)
        return self.greeting_s() + start + measuring_s + hangs_s

    def greeting_s(self):
        """Return the seconds that the test of all nodes may take."""
        return self.step_limit + start_s(self.num_nodes)

    @run_before("run")
    def start_sweep(self):
        """Run seatrial.checks.pairsweep, which starts the program repeatedly."""
        self.executable_opts += [
            f"--window {self.window}",
            f"--windows {self.windows}",
            f"--seed {self.seed}",
            f"--suspect {self.suspect_percent}",
            f"--retest {self.retest}",
            f"--pair-limit {self.pair_limit}",
        ]
        if self.rails:
            self.executable_opts += [f"--rails {','.join(self.rails)}"]
        if self.rail_variable:
            self.executable_opts += [f"--rail-variable {self.rail_variable}"]
        options = [
            f"--ppn {self.ppn}",
            f"--step-limit {self.greeting_s():.0f}",
            f"--stall-limit {5 * self.pair_limit}",
        ]
        if self.pairs:
            options += [f"--pairs {shlex.quote(self.pairs)}"]
        elif rounds := self.drawn_rounds(self.num_nodes):
            options += [f"--rounds {rounds}", f"--seed {self.seed}"]
            options += self.adaptive_options() if self.adaptive else []
        conduct(self, "seatrial.checks.pairsweep", options)

    def adaptive_options(self) -> list[str]:
        """Add rounds for suspects, with the leafs of the class.

        They are those of the inventory, else of the fabric that the system keeps; else
        seatrial.checks.pairsweep asks Slurm.
        """
        extras = self.current_partition.extras
        folder = etc_dir(home(), self.current_system.name)
        nodes = extras.get("nodes", [])
        leafs = extras.get("leafs") or by_leaf(kept_leafs(folder, nodes))
        named = (shlex.quote(f"{leaf}={nodes}") for leaf, nodes in leafs.items())
        return ["--adaptive", *(f"--leaf {leaf}" for leaf in named)]

    def listed(self) -> PairList:
        """Return the pairs of the file `pairs`."""
        return read_pair_list(Path(self.pairs))

    def drawn_rounds(self, nodes: int) -> int:
        """Return the rounds in which every node takes part; 0: all pairs are taken."""
        rounds = self.rounds or (ADAPTIVE_ROUNDS if self.adaptive else 0)
        return rounds if rounds < nodes - 1 else 0

    def blocks(self, lines):
        """Yield the numbers of pairs, then each node's count of measured pairs."""
        from seatrial.runs.sample_table import sample_block

        reader = SweepReader()
        yield from pair_blocks(reader.pairs(lines()), read_quiet(lines()))
        sweep, rounds = reader.result(), self.drawn_rounds(len(self.nodes))
        if self.pairs:
            sweep.verify_complete(self.nodes, listed=self.listed().keys)
            rounds = 1  # not all pairs
        else:
            sweep.verify_complete(self.nodes, rounds)
        self.draws_pairs = bool(rounds or sweep.phases)
        for run in sweep.runs:
            self.verify_run(run)
        answered = sweep.answered(self.nodes, rounds)
        yield sample_block(
            [
                Sample("pairs_answered", 100 * count / expected, n=expected, node=node)
                for node, (count, expected) in answered.items()
            ]
        )

    def verify_run(self, run: RunRow):
        """Raise ParseError if the run has other settings."""
        settings = (run.latency_bytes, run.bandwidth_bytes, run.rails, run.np)
        rails = ",".join(self.rails) or None
        expected = (8, 1 << 20, rails, run.nodes * self.ppn)
        if settings != expected:
            raise ParseError(0, f"a run of {settings}, expected {expected}")


@rfm.simple_test
class VerbsPairSweep(PairSweep):
    """Which pair of adapters is slow, below MPI?

    As `PairSweep`, on every rail of the inventory, with RDMA writes of reliable
    connections: `latency` is half a round trip, awaited by the last byte; `bw` that of
    windows of `window` writes, each answered by an empty message. MPI, over TCP where
    it takes UCX, only starts the ranks and brings them together. A pair that does not
    connect or whose connection breaks counts as one that hangs, with its error.
    """

    rdma_cm = variable(bool, value=False)
    """Connect by rdma_cm, as iWARP needs; tried over RoCE only."""

    descr = "RDMA writes of every pair of nodes on every rail"
    tool = "pairsweep_verbs"
    experiments = ("E09", "E12", "E36", "E37")
    valid_systems = ["+verbs"]
    valid_prog_environs = ["+pairsweep_verbs"]
    reference_file = "verbs.yaml"
    executable = "pairsweep_verbs"
    env_vars = MPI_OVER_TCP

    @run_after("setup")
    def take_rails(self):
        """Start a rank for every rail; it opens the adapter by name."""
        extras = self.current_partition.extras
        self.rail_variable = None
        self.rails = extras.get("rails", [])
        indexes = sorted(set(extras.get("gid_indexes", {}).values()))
        self.skip_if(not self.rails, "node_classes names no rails of this class")
        self.skip_if(
            len(indexes) > 1 and not self.rdma_cm,
            f"gid_indexes differ ({', '.join(map(str, indexes))}), expected one for "
            "all rails; set rdma_cm",
        )
        if self.rdma_cm:
            self.executable_opts += ["--rdma-cm"]
        elif indexes:
            self.executable_opts += [f"--gid-index {indexes[0]}"]
        self.ppn = len(self.rails)
        self.num_tasks = self.num_nodes * self.ppn
        self.num_tasks_per_node = self.ppn
