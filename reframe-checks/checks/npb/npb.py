# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""NAS Parallel Benchmarks: kernels and solvers with known answers."""

from functools import partial
from pathlib import Path

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, run_after, run_before, variable

from seatrial.checks.base import Tag
from seatrial.checks.job_steps import Step
from seatrial.checks.node_numbers import doubled
from seatrial.checks.npb_ranks import rule_of, runs_on
from seatrial.checks.npb_sizes import largest_class, npb_seconds, ranks_of
from seatrial.checks.scaling import ScalingCheck
from seatrial.checks.sized import SizedCheck
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.npb import parse_npb

TIMED = "with-timers"


@rfm.simple_test
class Npb(SizedCheck, ScalingCheck):
    """What do whole parallel programs reach, and how long do they communicate?

    `Mops_total` is NPB's own rate of all ranks (10^6 operations/s; keys for IS, random
    numbers for EP), of a run with an answer that NPB verified, on the requested number
    of ranks. The time is not reported: NPB prints it to 0.01 s, +-1.3 % of a run of
    0.4 s, while the rate has more digits. By default the ranks are all cores of all
    nodes, reduced to a power of two (BT, SP: a square).

    CG: neighbours and sums at random places; FT, IS: all to all; LU: many small
    messages of a wave; MG: neighbours near and far; EP: nothing; BT, SP: faces. With
    `problem_class` C and 32 ranks as 4 x 8 it is the papers' E35; classes B and A of
    IS and FT on 4 x 1 and 4 x 2 are E22.

    `memory_fraction` chooses the class: the largest whose arrays fit in that share of a
    node's memory, and whose run takes at most 10 minutes at the typical rates of
    seatrial.checks.npb_sizes. With `scaling` it fits on one node, too.

    `communication_share` is of a second run with NPB's own timers (timer.flag): the
    mean of the ranks' times in communication, with waiting, within their mean total.
    The run is separate because the timers read the clock around every message, which
    reduces the rate. `scaling` adds runs on 1, 2, 4, ... nodes and with the ranks in
    block and cyclic order, in the same job.
    """

    benchmark = parameter(["CG", "FT", "IS", "LU", "MG", "EP", "BT", "SP"])
    problem_class = variable(typ.Str["[SWABCDEF]"], value="C")
    """Size of the problem, from S (seconds) by W, A, B, C, D, E to F (largest); unused
    with `memory_fraction`."""
    communication = variable(typ.Bool, value=True)
    """Add the second run, with timers."""

    ppn = 0
    descr = "NAS Parallel Benchmarks, verified, on all ranks"
    valid_prog_environs = ["+npb"]
    reference_file = "npb.yaml"
    preamble = (
        r" *(NAS Parallel Benchmarks .*|[A-Z][A-Za-z ]*:.*"
        r"|(No|Reading from) input file .*)"
    )
    env_vars = {"OMP_NUM_THREADS": 1}
    step_s = 600
    tags = {Tag.COMPUTE, Tag.APPLICATION}
    tool = "NPB-MPI 3.3, 3.4"
    experiments = ("E22", "E35")
    typical_s = 60
    judged = ["Mops_total"]

    def case_parameters(self):
        """Add the class to the parameters."""
        return {**super().case_parameters(), "problem_class": self.problem_class}

    def fill(self, room):
        """Choose the class by memory and ranks."""
        counts = [room.nodes, *(doubled(room.nodes) if self.scaling else [])]
        size = largest_class(self.benchmark, room.node_bytes, counts, room.ppn)
        self.skip_if(
            size is None,
            f"no class of {self.benchmark} fits on {room.nodes} nodes x {room.ppn} "
            f"with {room.node_bytes / 2**30:.1f} GiB of a node; set problem_class",
        )
        self.problem_class = size
        spreads = (ranks_of(self.benchmark, size, n, room.ppn) for n in counts)
        seconds = [
            npb_seconds(self.benchmark, size, nodes * ppn)
            for nodes, ppn in filter(None, spreads)
        ]
        orders = 2 if self.scaling else 1
        return orders * (2 if self.communication else 1) * sum(seconds)

    def can_run(self, ranks):
        """Check the rules of this benchmark and class."""
        return runs_on(self.benchmark, self.problem_class, ranks)

    def takes(self):
        """Describe the rules of the benchmark."""
        return rule_of(self.benchmark, self.problem_class)

    @run_after("setup")
    def place(self):
        """Check that the benchmark has the class, then place the ranks."""
        try:
            self.can_run(1)
        except ValueError as error:
            self.skip(str(error))
        super().place()

    @run_after("setup", always_last=True)
    def need_benchmark(self):
        """Find the program: one for all numbers of ranks, or one for each (3.3)."""
        known = self.current_environ.extras.get("programs", [])
        if self.program(0) not in known and self.program(self.num_tasks) in known:
            self.need_programs(
                "npb", *(self.program(spot.ranks) for spot in self.spots())
            )
        else:
            self.need_programs("npb", self.program(0))

    def program(self, ranks):
        """Return the program for a number of ranks; 0: for any number."""
        return f"{self.benchmark.lower()}.{self.problem_class}.{ranks or 'x'}"

    @run_before("run")
    def switch_timers_on(self):
        """Create the folder with timer.flag for the runs with timers."""
        folder = Path(self.stagedir, TIMED)
        folder.mkdir(exist_ok=True)
        Path(folder, "timer.flag").touch()

    def steps(self):
        """Return the steps on all spots, without and with timers."""
        known = self.current_environ.extras.get("programs", [])
        return [
            Step(
                f"{spot.name},{TIMED}" if timed else spot.name,
                self.program(0 if self.program(0) in known else spot.ranks),
                spot.num_nodes,
                spot.ppn,
                partial(self.read, spot, timed),
                f"{spot.srun_options} {f'--chdir={TIMED}' if timed else ''}".strip(),
            )
            for spot in self.spots()
            for timed in ((False, True) if self.communication else (False,))
        ]

    def read(self, spot, timed, output):
        """Return the rate of a run without timers, or the share of one with timers."""
        problem = (self.benchmark, self.problem_class, spot.ranks)
        run = parse_npb(output.text, *problem, timers=timed)
        metric, value = "Mops_total", run.mops_total
        if timed:
            if run.communication_share is None:
                raise ParseError(0, "its timers show no time: select a larger class")
            metric, value = "communication_share", 100 * run.communication_share
        return [Sample(metric, value, parameters=spot.parameters)]
